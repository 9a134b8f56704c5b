"""The present file as the draft rules see it, and what they propose.

Responsible for the lines within reach of the cursor, look-ups over them, and the shape of a
proposal (whole lines). Knows nothing of the rules.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from model.draft_history import Change, recent_changes
from model.imports import Import, read_imports
from model.protocol import Request

REACH = 400
WHOLE_FILE = 2500
IMPORT_LINES = 300


@dataclass(frozen=True, slots=True)
class Proposal:
    """Replace the present lines `first` (inclusive) to `last` (exclusive) by `new`.

    `siblings` counts the places where the same rule applies with the same link.
    """

    first: int
    last: int
    new: tuple[str, ...]
    rule: str
    link: tuple[str, str] | None
    recency: int
    siblings: int = 1


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def reindent(lines: tuple[str, ...], model: str, target: str) -> tuple[str, ...]:
    """`lines`, written next to a line indented like `model`, moved next to a line indented like
    `target`.
    """
    old, new = indent_of(model), indent_of(target)
    if old == new:
        return lines
    moved = []
    for line in lines:
        if not line.strip():
            moved.append(line)
        elif line.startswith(old):
            moved.append(new + line[len(old) :])
        else:
            moved.append(new + line.lstrip())
    return tuple(moved)


class View:
    """Lines, cursor and recent changes of one request; lines out of reach are never looked at."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.path = request.path
        self.lines = request.text.split("\n")
        before = request.text[: request.cursor]
        self.cursor_line = before.count("\n")
        self.cursor_column = request.cursor - (before.rfind("\n") + 1)
        if len(self.lines) <= WHOLE_FILE:
            self.low, self.high = 0, len(self.lines)
        else:
            self.low = max(0, self.cursor_line - REACH)
            self.high = min(len(self.lines), self.cursor_line + REACH)
        self.changes: list[Change] = recent_changes(request.history, request.path, self.cursor_line)

    @property
    def typed(self) -> str:
        """The cursor's line up to the cursor."""
        return self.lines[self.cursor_line][: self.cursor_column]

    @cached_property
    def _lower(self) -> tuple[str, list[int]]:
        """The lines within reach in lower case, and where each begins in that text."""
        rows = [line.lower() for line in self.lines[self.low : self.high]]
        return "\n".join(rows), [0, *accumulate(len(row) + 1 for row in rows)]

    def lines_with(self, needle: str) -> Iterator[int]:
        """Lines within reach that hold a lower-case text, in order; all of them for an empty
        one.
        """
        if not needle:
            yield from range(self.low, self.high)
            return
        text, starts = self._lower
        at = text.find(needle)
        while at >= 0:
            row = bisect_right(starts, at) - 1
            yield self.low + row
            at = text.find(needle, starts[row + 1])

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Stripped line -> where it stands within reach."""
        places: dict[str, list[int]] = {}
        for number in range(self.low, self.high):
            places.setdefault(self.lines[number].strip(), []).append(number)
        return places

    @cached_property
    def words(self) -> dict[str, int]:
        """Words within reach with their counts."""
        counts: dict[str, int] = {}
        for word in re.findall(r"[^\W\d]\w*", "\n".join(self.lines[self.low : self.high])):
            counts[word] = counts.get(word, 0) + 1
        return counts

    @cached_property
    def attributes(self) -> set[str]:
        """Attributes of `self` and `this` within reach, with their owner."""
        text = "\n".join(self.lines[self.low : self.high])
        return set(re.findall(r"\b(?:self|this)\.\w+\b(?!\()", text))

    @cached_property
    def statements(self) -> list[Import]:
        """Import statements of the file's first lines."""
        return read_imports(self.lines[:IMPORT_LINES])

    def distance(self, line: int) -> int:
        """Signed lines from the cursor; positive below."""
        return line - self.cursor_line

    def reach(self, line: int) -> float:
        """Effort to get there: lines below are nearer than lines above."""
        away = self.distance(line)
        return away if away >= 0 else 1.5 * -away + 2

    def written(self, line: int) -> bool:
        """True when the newest changes wrote this line."""
        return any(line in change.span for change in self.changes)
