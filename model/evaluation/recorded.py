"""Suggestions on disk: what a predictor proposed for each request, so that a model is asked once.

Responsible for the file (one JSON object a request, in any order) and for finding a request in it again. What a gate
makes of the suggestions is no part of it. Knows nothing of users or outcomes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from diffing.edits import Edit
from model.candidate import Candidate
from model.evaluation.output import Output, RowError, whole_rows
from model.protocol import Request

DIGITS = 5


Ask = Callable[[Request], tuple[Sequence[Candidate], float]]
"""The suggestions for a request and the milliseconds they took."""


def key_of(request: Request) -> str:
    """A name for everything that decides the answer to a request."""
    parts = [request.mode, request.path, request.text, request.cursor, request.language]
    parts += [request.history, [(one.path, one.text) for one in request.related]]
    parts += [request.diagnostics, request.max_tokens, request.max_lines]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


class Recorded:
    """Answers from the file, else from `ask`, whose answers are added; without one, None for what is not there.

    Raises `RowError` for a file of something else.
    """

    def __init__(self, path: Path, ask: Ask | None = None) -> None:
        self.path, self._ask = path, ask
        rows = whole_rows(path) if path.exists() else []
        if not all("key" in row and "proposals" in row for row in rows):
            raise RowError(f"{path} is not a record of suggestions")
        self._rows = {row["key"]: row for row in rows}
        self._output = Output(path, resume=True) if ask else None
        self.asked = 0

    def __call__(self, request: Request) -> tuple[list[Candidate], float] | None:
        """The suggestions for a request and how many milliseconds they once took."""
        key = key_of(request)
        if key not in self._rows and self._ask is not None and self._output is not None:
            proposals, took = self._ask(request)
            self.asked += 1
            found = [_row(one) for one in proposals]
            self._rows[key] = {"key": key, "ms": round(took, 1), "proposals": found}
            self._output.write(self._rows[key])
        row = self._rows.get(key)
        return None if row is None else ([_candidate(one) for one in row["proposals"]], row["ms"])

    def close(self) -> None:
        if self._output is not None:
            self._output.close()


def _row(one: Candidate) -> dict[str, Any]:
    features = {name: float(f"{value:.{DIGITS}g}") for name, value in one.features.items()}
    return {
        "source": one.source,
        "edits": [[edit.start, edit.end, edit.new_text] for edit in one.edits],
        "features": features,
        "tokens": one.tokens,
        "link": one.link,
        "distance": one.distance,
        "line": one.line,
    }


def _candidate(row: Mapping[str, Any]) -> Candidate:
    link = row["link"]
    return Candidate(
        row["source"],
        tuple(Edit(*edit) for edit in row["edits"]),
        0.0,
        row["features"],
        row["tokens"],
        None if link is None else (link[0], link[1]),
        row["distance"],
        row["line"],
    )
