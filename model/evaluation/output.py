r"""The headless contract, predictions out: one JSON object a line.

Responsible for writing predictions exactly as documented and for what makes a long run safe (every line flushed, order
kept, resumable). It knows nothing of how predictions are made or scored.

Output is ASCII: lone surrogates and every line end inside a text survive unchanged. `-` is standard output, `.gz` is
compressed.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from diffing import edits as editing
from diffing.positions import LineIndex
from model.evaluation.cases import BadCase, Case, Id, open_lines
from model.protocol import Prediction


class RowError(ValueError):
    """A file does not hold rows; the message names the line."""


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

    With `resume` answers of an earlier run are kept, errors and a last line that was cut off are
    not, and `done` tells which cases need no answer any more; at the end the rows are in the order of the questions.
    `None` writes nowhere. Raises `RowError` where there is something else to resume from.
    """

    def __init__(self, target: str | Path | None, *, resume: bool = False) -> None:
        self._done: Counter[str] = Counter()
        self._path: Path | None = None
        self._order: list[str] = []
        self._stream: IO[bytes] | None = None
        self._to_stdout = str(target) == "-"
        self._resumed = False
        if target is None:
            return
        if self._to_stdout:
            self._stream = sys.stdout.buffer
            return
        path = self._path = Path(target)
        self._resumed = resume and path.exists()
        if self._resumed:
            kept = [row for row in whole_rows(path) if "error" not in row]
            self._done.update(json.dumps(row.get("id")) for row in kept)
            keep_only(path, kept)
        mode = "ab" if resume else "wb"
        stream = gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode)  # noqa: SIM115
        self._stream = cast(IO[bytes], stream)

    def done(self, name: Id) -> bool:
        """Whether an earlier run answered this case; each answer counts once."""
        key = json.dumps(name)
        self._order.append(key)
        if not self._done[key]:
            return False
        self._done[key] -= 1
        return True

    def write(self, row: Mapping[str, Any]) -> None:
        if self._stream is not None:
            self._stream.write(encode(row))
            self._stream.flush()

    def close(self) -> None:
        if self._stream is None or self._to_stdout:
            return
        self._stream.close()
        if self._resumed and self._order and self._path is not None:
            rows = whole_rows(self._path)
            if (ordered := list(in_order(rows, self._order))) != rows:
                keep_only(self._path, ordered)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def whole_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that were written in full: a last one that was cut off is passed over.

    Raises `RowError` for a file of something else, which must not be written over.
    """
    rows: list[dict[str, Any]] = []
    try:
        with open_lines(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.endswith(b"\n"):
                    rows.append(read_row(path, number, line))
    except EOFError:
        pass
    except gzip.BadGzipFile as error:
        raise RowError(f"{path}: {error}") from error
    return rows


def read_row(path: str | Path, number: int, line: bytes) -> dict[str, Any]:
    """One line of a file of rows. Raises `RowError`."""
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise RowError(f"{path}, line {number}: not an object in JSON")
    return row


def in_order(
    rows: Sequence[Mapping[str, Any]], order: Iterable[str]
) -> Iterator[Mapping[str, Any]]:
    """The rows in the order of their encoded ids, then those of other ids."""
    found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[json.dumps(row.get("id"))].append(row)
    for key in order:
        if found[key]:
            yield found[key].pop(0)
    yield from (row for left in found.values() for row in left)


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
