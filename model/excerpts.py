"""The lines before each draft, as one context that changes as little as it can from key to key.

Responsible for which excerpts of the file are read, and in which order: what is encoded stays in its place while its
lines stand in the file, and what is new goes behind it, so that the prefix cache holds on. A context that is made anew
follows the file. Knows nothing of drafts or models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from model.prompt import PromptWriter, pieces, present_lines


@dataclass(frozen=True, slots=True)
class Window:
    """Lines `low` to `begin` (exclusive), which are read before what stands at line `begin`."""

    low: int
    begin: int

    def pieces(self, lines: Sequence[str]) -> list[str]:
        """The text in the parts that are encoded alone."""
        text = present_lines(lines, self.low, self.begin)
        return pieces(text) if text else []


class Excerpts:
    """The excerpts of one file that were encoded last."""

    def __init__(self, writer: PromptWriter) -> None:
        self.writer = writer
        self._head: list[int] = []
        self._kept: list[str] = []

    def arrange(
        self, head: list[int], lines: Sequence[str], windows: Sequence[Window], budget: int
    ) -> tuple[list[int], dict[Window, int]]:
        """The context's tokens, and for each window how many of them there are up to its end.

        `head` are the tokens before all excerpts. Windows are in order of weight; those that do not fit `budget`
        tokens are missing from the result.
        """
        if self._head != head:
            self._head, self._kept = head, []
        self._forget_what_changed(lines)
        self._add(lines, windows)
        if len(head) + self._size(self._kept) > budget:
            self._kept = []
            self._add(lines, self._fitting(lines, windows, budget - len(head)))
        ids = list(head)
        ends = [len(ids)]
        for piece in self._kept:
            ids += self.writer.encode(piece)
            ends.append(len(ids))
        places = ((window, find(window.pieces(lines), self._kept)) for window in windows)
        return ids, {window: ends[end] for window, end in places if end is not None}

    def _forget_what_changed(self, lines: Sequence[str]) -> None:
        """Drop the first piece that the file no longer has, and all behind it."""
        text = "\n" + "\n".join(lines) if self._kept else ""
        for at, piece in enumerate(self._kept):
            if piece not in text:
                del self._kept[at:]
                return

    def _add(self, lines: Sequence[str], windows: Iterable[Window]) -> None:
        """Append what is missing of the windows, in the order of the file."""
        for window in sorted(windows, key=lambda window: window.begin):
            wanted = window.pieces(lines)
            if find(wanted, self._kept) is None:
                self._kept += wanted[overlap(self._kept, wanted) :]

    def _fitting(
        self, lines: Sequence[str], windows: Sequence[Window], left: int
    ) -> Iterable[Window]:
        """The windows, in order, whose lines take no more than `left` tokens in all."""
        read: set[int] = set()
        for window in windows:
            new = [n for n in range(window.low, window.begin) if n not in read]
            cost = sum(self.writer.count("\n" + lines[n]) for n in new)
            if cost <= left:
                left -= cost
                read.update(new)
                yield window

    def _size(self, kept: Iterable[str]) -> int:
        return sum(self.writer.count(piece) for piece in kept)


def find(wanted: Sequence[str], kept: Sequence[str]) -> int | None:
    """Where the first stretch of `kept` ends that is `wanted`."""
    size = len(wanted)
    starts = range(len(kept) - size + 1)
    return next((at + size for at in starts if list(kept[at : at + size]) == list(wanted)), None)


def overlap(kept: Sequence[str], wanted: Sequence[str]) -> int:
    """How many of the first pieces of `wanted` are the last of `kept`."""
    sizes = range(min(len(kept), len(wanted)), 0, -1)
    return next((n for n in sizes if list(kept[-n:]) == list(wanted[:n])), 0)
