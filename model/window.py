"""Sticky windows over the text before and after a place.

Responsible for taking as much as a token limit allows, cut at multiples of a line count so that the
cut stays where it is while the text grows. Knows nothing of what else is in a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Count = Callable[[str], int]

QUANTUM = 32
FINER = (8, 1)
PIECE = 64
CHARS_PER_TOKEN = 32


def _blocks(lines: list[str], first_line: int, quantum: int) -> list[str]:
    """Consecutive lines joined into blocks that begin at multiples of `quantum`."""
    blocks: list[str] = []
    at = 0
    while at < len(lines):
        size = quantum - (first_line + at) % quantum
        blocks.append("".join(lines[at : at + size]))
        at += size
    return blocks


def _fill(pieces: Iterator[str] | list[str], count: Count, limit: int) -> tuple[list[str], int]:
    """The leading pieces that fit, with their cost."""
    taken: list[str] = []
    cost = 0
    for piece in pieces:
        price = count(piece)
        if cost + price > limit:
            break
        taken.append(piece)
        cost += price
    return taken, cost


def _nearest_first(
    lines: list[str], first_line: int, count: Count, limit: int, *, backwards: bool
) -> tuple[str, int]:
    """The part of `lines` next to the place that fits, cut at the coarsest quantum that leaves
    anything.
    """

    def order(pieces: list[str]) -> list[str]:
        return pieces[::-1] if backwards else pieces

    for quantum in (QUANTUM, *FINER):
        taken, cost = _fill(order(_blocks(lines, first_line, quantum)), count, limit)
        if taken:
            return "".join(order(taken)), cost
    if not lines:
        return "", 0
    line = lines[-1] if backwards else lines[0]
    pieces = [line[at : at + PIECE] for at in range(0, len(line), PIECE)]
    taken, cost = _fill(order(pieces), count, limit)
    return "".join(order(taken)), cost


def _split(text: str) -> list[str]:
    """Lines with their line feeds."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


class Before:
    """The text before offset `end`; `take` widens the window and returns the additional cost."""

    def __init__(self, count: Count, text: str, end: int) -> None:
        self._count = count
        self._source = text
        self._end = end
        self.text = ""
        self.cost = 0

    def take(self, limit: int) -> int:
        start = max(0, self._end - max(1, limit) * CHARS_PER_TOKEN)
        start = self._source.rfind("\n", 0, start) + 1
        first_line = self._source.count("\n", 0, start)
        lines = _split(self._source[start : self._end])
        before = self.cost
        self.text, self.cost = _nearest_first(lines, first_line, self._count, limit, backwards=True)
        return self.cost - before

    @property
    def dropped(self) -> int:
        """Lines that are left out (a line cut in the middle counts)."""
        cut = self._end - len(self.text)
        return self._source.count("\n", 0, cut) + (cut > 0 and self._source[cut - 1] != "\n")


class After:
    """The text from offset `start` on; `take` widens the window and returns the additional cost."""

    def __init__(self, count: Count, text: str, start: int) -> None:
        self._count = count
        self._source = text
        self._start = start
        self.text = ""
        self.cost = 0

    def take(self, limit: int) -> int:
        end = self._source.find("\n", self._start + max(1, limit) * CHARS_PER_TOKEN) + 1
        lines = _split(self._source[self._start : end or len(self._source)])
        before = self.cost
        self.text, self.cost = _nearest_first(lines, 0, self._count, limit, backwards=False)
        return self.cost - before

    @property
    def dropped(self) -> int:
        """Lines that are left out (a line cut in the middle counts)."""
        cut = self._start + len(self.text)
        rest = len(self._source) - cut
        return self._source.count("\n", cut) + (rest > 0 and self._source[-1] != "\n")
