r"""The headless contract: cases in, predictions out, one JSON object a line.

Responsible for reading cases with clear errors, for writing predictions exactly as documented and
for what makes a long run safe (every line flushed, order kept, resumable). It knows nothing of how
predictions are made or scored.

Input and output are ASCII-safe JSON lines: lone surrogates and every line end inside a text survive
unchanged. Only `\n` separates lines; `-` is standard input or output, `.gz` is (un)compressed.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from diffing import edits as editing
from diffing.positions import LineIndex, Position
from model.evaluation.languages import language_of
from model.protocol import Mode, Prediction, Request, Snippet

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
    """Read one object; raises `CaseError`.

    A cursor past the end of its line, or of the text, is taken as that end, as in LSP.
    """
    text = _string(row, "text")
    path = _string(row, "path")
    mode = row.get("mode") or "next_edit"
    if mode not in ("fim", "next_edit"):
        raise CaseError(f"`mode` must be 'fim' or 'next_edit', not {mode!r}")
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
        history=_strings(row, "history"),
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
    return LineIndex(text).offset_at(Position(line, character), "utf-32")


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


def prediction_row(case: Case, prediction: Prediction) -> dict[str, Any]:
    """The answer to one case as the contract has it.

    `edits` and `text` are what the user would see (nothing when suppressed), `candidate` is the
    buffer with the suppressed edits too; `where` pairs lines (from 0) with the probability that the
    next edit is there.
    """
    text = case.request.text
    candidate = editing.apply(text, prediction.edits)
    shown = prediction.edits if prediction.shown else ()
    lines = LineIndex(text)
    return {
        "id": case.id,
        "shown": bool(prediction.shown),
        "suppressed": prediction.suppressed,
        "confidence": finite(prediction.confidence, 6),
        "edits": [
            {
                "range": {
                    "start": lines.position_at(edit.start)._asdict(),
                    "end": lines.position_at(edit.end)._asdict(),
                },
                "new_text": edit.new_text,
            }
            for edit in shown
        ],
        "text": candidate if prediction.shown else text,
        "candidate": candidate,
        "latency_ms": finite(prediction.latency_ms, 3),
        "forwards": int(prediction.forwards),
        "tokens": int(prediction.tokens),
        "denoising_steps": int(prediction.features.get("denoising_steps", 0)),
        "where": [[line, finite(chance, 6)] for line, chance in prediction.where],
        "model": prediction.model,
    }


def finite(value: float, digits: int) -> float:
    """A plain Python float that JSON can hold; what is not finite becomes 0."""
    number = float(value)
    return round(number, digits) if math.isfinite(number) else 0.0


def error_row(bad: BadCase) -> dict[str, Any]:
    return {"id": bad.id, "error": bad.error}


def encode(row: Mapping[str, Any]) -> bytes:
    """One line of output, ASCII only."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"


class Output:
    """Where predictions go: every row is on disk when `write` returns.

    With `resume` rows of an earlier run are kept (a last line that was cut off is dropped) and
    `done` tells which cases need no answer any more. `None` writes nowhere.
    """

    def __init__(self, target: str | Path | None, *, resume: bool = False) -> None:
        self._done: Counter[str] = Counter()
        self._stream: IO[bytes] | None = None
        self._to_stdout = str(target) == "-"
        if target is None:
            return
        if self._to_stdout:
            self._stream = sys.stdout.buffer
            return
        path = Path(target)
        if resume and path.exists():
            kept = whole_rows(path)
            self._done.update(json.dumps(row.get("id")) for row in kept)
            keep_only(path, kept)
        mode = "ab" if resume else "wb"
        stream = gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode)  # noqa: SIM115
        self._stream = cast(IO[bytes], stream)

    def done(self, name: Id) -> bool:
        """Whether an earlier run answered this case; each answer counts once."""
        key = json.dumps(name)
        if not self._done[key]:
            return False
        self._done[key] -= 1
        return True

    def write(self, row: Mapping[str, Any]) -> None:
        if self._stream is not None:
            self._stream.write(encode(row))
            self._stream.flush()

    def close(self) -> None:
        if self._stream is not None and not self._to_stdout:
            self._stream.close()

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def whole_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a predictions file that were written in full."""
    rows: list[dict[str, Any]] = []
    try:
        with open_lines(path) as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                row = json.loads(line)
                if isinstance(row, dict):
                    rows.append(row)
    except (EOFError, gzip.BadGzipFile, json.JSONDecodeError, io.UnsupportedOperation):
        pass
    return rows


def keep_only(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rewrite a predictions file with these rows; it is whole at every moment."""
    data = b"".join(map(encode, rows))
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    os.replace(temporary, path)


def write_rows(rows: Iterable[Mapping[str, Any]], target: str | Path) -> int:
    """Write rows to a file or (`-`) standard output; returns how many."""
    count = 0
    with Output(target) as output:
        for count, row in enumerate(rows, 1):  # noqa: B007
            output.write(row)
    return count
