r"""The headless contract, cases in: one JSON object a line.

Responsible for reading cases with clear errors. It knows nothing of how predictions are made, written or scored.

Lone surrogates and every line end inside a text survive unchanged. Only `\n` separates lines; `-` is standard input,
`.gz` is decompressed.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from diffing.hunks import parse_unified
from diffing.positions import LineIndex, Position
from model.evaluation.languages import language_of
from model.protocol import Mode, Request, Snippet

Id = str | int


class CaseError(ValueError):
    """A line is not a case; the message names the field and what is wrong with it."""


@dataclass(frozen=True)
class Case:
    """One question with its right answers: whole buffers, `(request.text,)` where silence is right.

    `expected` is None where no answer is known. `row` is the object that the case was read from.
    """

    id: Id
    request: Request
    expected: tuple[str, ...] | None = None
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BadCase:
    """A line that could not be read as a case."""

    id: Id
    error: str


def parse_line(line: bytes | str, number: int) -> Case | BadCase:
    """Read one line; `number` counts from 1 and is the `id` of a case that has none."""
    name: Id = str(number)
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
        row = json.loads(text.removeprefix("\ufeff"))
        if not isinstance(row, dict):
            raise CaseError(f"the line must be an object, not {_kind(row)}")
        name = _id(row, name)
        return parse_row(row, name)
    except UnicodeDecodeError as error:
        return BadCase(name, f"line {number}: not UTF-8 ({error.reason} at byte {error.start})")
    except json.JSONDecodeError as error:
        return BadCase(name, f"line {number}: not JSON ({error.msg} at column {error.colno})")
    except (ValueError, RecursionError) as error:
        return BadCase(name, f"line {number}: {error}")


def parse_row(row: Mapping[str, Any], default_id: Id = "") -> Case:
    """Read one object; raises `CaseError`."""
    text = _string(row, "text")
    path = _string(row, "path")
    mode = row.get("mode") or "next_edit"
    if mode not in ("fim", "next_edit"):
        raise CaseError(f"`mode` must be 'fim' or 'next_edit', not {mode!r}")
    if not isinstance(row.get("meta") or {}, dict):
        raise CaseError(f"`meta` must be an object, not {_kind(row['meta'])}")
    expected = None if row.get("expected") is None else _strings(row, "expected")
    options: dict[str, Any] = {
        name: _integer(row[name], name, 1)
        for name in ("max_tokens", "max_lines")
        if row.get(name) is not None
    }
    request = Request(
        mode=cast(Mode, mode),
        path=path,
        text=text,
        cursor=_cursor(row, text),
        language=_string(row, "language") if row.get("language") else language_of(path),
        history=_diffs(row, "history"),
        related=tuple(_snippets(row)),
        diagnostics=tuple(_diagnostics(row)),
        **options,
    )
    return Case(_id(row, default_id), request, expected, row)


def _id(row: Mapping[str, Any], default: Id) -> Id:
    value = row.get("id")
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise CaseError(f"`id` must be a string or an integer, not {_kind(value)}")
    return value


def _cursor(row: Mapping[str, Any], text: str) -> int:
    if row.get("cursor") is None:
        raise CaseError("`cursor` is missing")
    cursor = row["cursor"]
    if not isinstance(cursor, dict):
        raise CaseError(f"`cursor` must be an object with line and character, not {_kind(cursor)}")
    for name in ("line", "character"):
        if name not in cursor:
            raise CaseError(f"`cursor.{name}` is missing")
    line = _integer(cursor["line"], "cursor.line", 0)
    character = _integer(cursor["character"], "cursor.character", 0)
    lines = LineIndex(text)
    if line >= lines.line_count:
        raise CaseError(
            f"`cursor.line` is {line}, and the text ends in line {lines.line_count - 1}"
        )
    if character > (last := len(lines.line_text(line))):
        raise CaseError(
            f"`cursor.character` is {character}, and line {line} ends at character {last}"
        )
    return lines.offset_at(Position(line, character), "utf-32")


def _integer(value: object, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise CaseError(f"`{name}` must be an integer, not {_kind(value)}")
    if value < least:
        raise CaseError(f"`{name}` must be at least {least}, not {value}")
    return value


def _string(row: Mapping[str, Any], name: str) -> str:
    if name not in row:
        raise CaseError(f"`{name}` is missing")
    value = row[name]
    if not isinstance(value, str):
        raise CaseError(f"`{name}` must be a string, not {_kind(value)}")
    return value


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise CaseError(f"`{name}` must be a list, not {_kind(value)}")
    return value


def _strings(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = _list(row, name)
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise CaseError(f"`{name}[{index}]` must be a string, not {_kind(value)}")
    return tuple(values)


def _diffs(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    diffs = _strings(row, name)
    for index, diff in enumerate(diffs):
        try:
            parse_unified(diff)
        except ValueError as error:
            raise CaseError(f"`{name}[{index}]`: {error}") from error
    return diffs


def _snippets(row: Mapping[str, Any]) -> Iterator[Snippet]:
    for index, value in enumerate(_list(row, "related")):
        fields = (value.get("path"), value.get("text")) if isinstance(value, dict) else (None, None)
        if not all(isinstance(part, str) for part in fields):
            raise CaseError(f"`related[{index}]` must be an object with the strings path and text")
        yield Snippet(value["path"], value["text"])


def _diagnostics(row: Mapping[str, Any]) -> Iterator[str]:
    for index, value in enumerate(_list(row, "diagnostics")):
        message = value.get("message") if isinstance(value, dict) else value
        if not isinstance(message, str):
            raise CaseError(f"`diagnostics[{index}]` must be a string or an object with a message")
        yield message


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    names |= {int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def read_cases(source: str | Path) -> Iterator[Case | BadCase]:
    """Read the cases of a file, of a `.gz` file or (`-`) of standard input; empty lines are
    skipped.

    Raises `OSError` when the file can't be read.
    """
    with open_lines(source) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield parse_line(line, number)


@contextmanager
def open_lines(source: str | Path) -> Iterator[IO[bytes]]:
    r"""The bytes of a file, line by line at `\n` only."""
    if str(source) == "-":
        yield sys.stdin.buffer
    elif str(source).endswith(".gz"):
        with gzip.open(source, "rb") as file:
            yield cast(IO[bytes], file)
    else:
        with open(source, "rb") as file:
            yield file
