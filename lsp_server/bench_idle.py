"""Measures what idle moments are worth: a key typed where the cursor has rested, an accept after a look.

Responsible for the two situations, each without and with the moment that a person takes. Knows nothing of what the
server does in it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from diffing.edits import Edit
from diffing.positions import LineIndex, Position
from lsp_server.bench_client import INVOKED, BenchEditor, Sample, sample
from lsp_server.bench_figures import MOMENTS
from model.evaluation.bench import excerpt, source_lines
from model.evaluation.traces import Hands

AFTER_JUMP, AFTER_REST, AT_ONCE, AFTER_LOOK = MOMENTS
MOMENT_S = 1.2
PLACES = 6
ACCEPTS = 4
CUT = 6
_PARAMETER = re.compile(r"def \w+\(self, (other|context)\b")
_NEW_NAME = "partner"


def landing(editor: BenchEditor, size: int) -> Iterator[Sample]:
    """The first key at places far from each other, in turns typed at once and after a rest there."""
    text = "".join(excerpt(source_lines(), size))
    uri = editor.open(f"landing_{size}.py", text)
    for number in range(2 * PLACES):
        rests = number % 2 == 1
        share = 0.05 + 0.9 * (number * 5 % (2 * PLACES)) / (2 * PLACES)
        cursor = Hands(editor.text(uri)).line_end(share, 2 * CUT)
        editor.moved(uri, cursor)
        if rests:
            time.sleep(MOMENT_S)
        kind = AFTER_REST if rests else AFTER_JUMP
        yield _asked(editor, uri, "fim", size, kind, Edit(cursor - CUT, cursor, ""), cursor - CUT)
    editor.close(uri)


def chain(editor: BenchEditor, size: int) -> Iterator[Sample]:
    """A parameter is renamed, and its other places accepted one after the other: at once, and after a look."""
    lines = excerpt(source_lines(), size)
    for looks in (False, True):
        text = f"# {looks}\n" + "".join(lines)
        if (found := _PARAMETER.search(text)) is None:
            return
        uri = editor.open(f"chain_{size}_{looks}.py", text)
        cursor = found.start(1) + len(_NEW_NAME)
        change = Edit(*found.span(1), _NEW_NAME)
        edits = editor.suggested(uri, "next_edit", change, cursor, INVOKED)[0]
        for _ in range(ACCEPTS):
            if not edits:
                break
            if looks:
                time.sleep(MOMENT_S)
            change, cursor = _accepted(editor.text(uri), edits)
            kind = AFTER_LOOK if looks else AT_ONCE
            before = editor.status()
            edits, latency_ms = editor.suggested(uri, "next_edit", change, cursor, INVOKED)
            yield sample("next_edit", size, kind, latency_ms, bool(edits), before, editor.status())
        editor.close(uri)


def _asked(
    editor: BenchEditor, uri: str, mode: Any, size: int, kind: str, edit: Edit, cursor: int
) -> Sample:
    before = editor.status()
    texts, latency_ms = editor.key(uri, mode, edit, cursor)
    return sample(mode, size, kind, latency_ms, bool(texts), before, editor.status())


def _accepted(text: str, edits: list[dict[str, Any]]) -> tuple[Edit, int]:
    """The first edit of an answer, and the cursor behind it."""
    lines, (first, *_) = LineIndex(text), edits
    start, end = (
        lines.offset_at(
            Position(first["range"][side]["line"], first["range"][side]["character"]), "utf-16"
        )
        for side in ("start", "end")
    )
    return Edit(start, end, first["text"]), start + len(first["text"])
