"""What goes into the prompt, as plain texts within a token budget.

Responsible for choosing and cutting: the region to be rewritten, the file before and after it, the
recent edits, and excerpts of related files. Cuts are sticky (they fall on multiples of a line
count, allotments on multiples of a share of the budget), so that one more keystroke leaves earlier
parts as they were and the prefix cache keeps them. Knows nothing of control tokens or of how the
parts are rendered; text that looks like a control token is text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from model.protocol import Request, Snippet
from model.related import excerpt, nearby_names, ranked, split_diff
from model.window import CHARS_PER_TOKEN, After, Before

Count = Callable[[str], int]

PART_OVERHEAD = 4
SHARE_UNITS = 16

# Shares of the budget in units of 1/16, in the order in which parts are admitted.
NEAR_PREFIX, NEW_HISTORY, NEAR_SUFFIX, OLD_HISTORY, RELATED = 5, 3, 2, 2, 3
NEW_DIFFS = 2


class RegionTooLargeError(ValueError):
    """The region alone does not fit the budget."""


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a prompt, least-changing first.

    `prefix + region + suffix` is a contiguous piece of the text; `region_start` and `region_end`
    are code point offsets of the region in it, `line` is the line of the text in which `prefix`
    begins. `history` is oldest first. `tokens` is what the parts count together. `dropped` names
    what was left out: lines of prefix, suffix and related files, diffs and hunks of the history,
    whole related files.
    """

    related: tuple[Snippet, ...]
    suffix: str
    history: tuple[str, ...]
    prefix: str
    region: str
    region_start: int
    region_end: int
    tokens: int
    dropped: Mapping[str, int]
    line: int = 0


def region_around(
    text: str, cursor: int, max_lines: int = 12, *, quantum: int = 4, max_chars: int = 2000
) -> range:
    """The editable region: lines around the cursor's line, which is always among them.

    A third of the lines lies above. The first line is a multiple of `quantum`, so that the region
    stays while the cursor moves a little. Lines farthest from the cursor are given up while the
    region has more than `max_chars`.
    """
    max_lines = max(1, max_lines)
    quantum = max(1, min(quantum, max_lines // 3))
    line = text.count("\n", 0, cursor)
    total = line + text.count("\n", cursor) + 1
    first = max(0, line - max_lines // 3)
    first -= first % quantum
    last = min(total, first + max_lines)
    start, end = line_offset(text, first), line_offset(text, last)
    lengths = [len(row) + 1 for row in text[start:end].split("\n")][: last - first]
    while sum(lengths) > max_chars and last - first > 1:
        if last - 1 - line >= line - first:
            last -= 1
            lengths.pop()
        else:
            first += 1
            lengths.pop(0)
    return range(first, last)


def line_offset(text: str, line: int) -> int:
    """Offset of the start of a 0-based line; the text's length for lines past the end."""
    at = 0
    for _ in range(line):
        at = text.find("\n", at) + 1
        if at == 0:
            return len(text)
    return at


class _Purse:
    """Tokens left of the budget."""

    def __init__(self, tokens: int) -> None:
        self.total = self.left = tokens

    def share(self, units: int) -> int:
        """What a part may cost: its share of the budget, or less when less is left."""
        return max(0, min(self.left, self.total * units // SHARE_UNITS))

    def rest(self) -> int:
        """All that is left, rounded down so that small changes elsewhere do not move it."""
        unit = max(1, self.total // SHARE_UNITS)
        return max(0, self.left // unit * unit)

    def pay(self, tokens: int) -> None:
        self.left -= tokens


@dataclass(frozen=True, slots=True)
class _Diffs:
    """Diffs that were kept, how many were dropped, and hunks cut from the oldest kept."""

    kept: tuple[str, ...]
    dropped: int
    hunks: int


class ContextBuilder:
    """Builds contexts for one tokenizer and one budget; remembers the counts of recent pieces of
    text.

    `count` gives the tokens of a text; it must not grow when texts are joined at a line start. The
    caller keeps back what the control tokens around the parts cost beyond `PART_OVERHEAD` for each
    diff and snippet.
    """

    def __init__(self, count: Count, budget: int, *, memory: int = 4096) -> None:
        self.budget = budget
        self._count = lru_cache(memory)(count)

    def count(self, text: str) -> int:
        """Tokens of a text, remembered; what is too long for any budget is not looked at."""
        if not text:
            return 0
        if len(text) > self.budget * CHARS_PER_TOKEN:
            return self.budget + 1
        return self._count(text)

    def build(self, request: Request, region: range | None = None) -> Context:
        """The context of a request; `region` is a range of lines, None for an empty region at the
        cursor.

        Raises `RegionTooLargeError` when the region does not fit. Admits near prefix, newest edits,
        near suffix, older edits, related files, far prefix, far suffix, in this order, each within
        its share or what is left.
        """
        text = request.text
        start, end = request.cursor, request.cursor
        if region is not None:
            start, end = line_offset(text, region.start), line_offset(text, region.stop)
        purse = _Purse(self.budget)
        purse.pay(self.count(text[start:end]))
        if purse.left < 0:
            raise RegionTooLargeError(
                f"the region has {self.budget - purse.left} tokens, the budget is {self.budget}"
            )
        before = Before(self.count, text, start)
        after = After(self.count, text, end)
        purse.pay(before.take(purse.share(NEAR_PREFIX)))
        newest = self._diffs(request.history[-NEW_DIFFS:], purse, purse.share(NEW_HISTORY))
        purse.pay(after.take(purse.share(NEAR_SUFFIX)))
        older = _Diffs((), len(request.history[:-NEW_DIFFS]), 0)
        if not newest.dropped and not newest.hunks:
            older = self._diffs(request.history[:-NEW_DIFFS], purse, purse.share(OLD_HISTORY))
        related, dropped = self._related(request, (start, end), purse, purse.share(RELATED))
        purse.pay(before.take(before.cost + purse.rest()))
        purse.pay(after.take(after.cost + purse.rest()))
        dropped |= {
            "prefix_lines": before.dropped,
            "suffix_lines": after.dropped,
            "diffs": newest.dropped + older.dropped,
            "hunks": newest.hunks + older.hunks,
        }
        return Context(
            related=related,
            suffix=after.text,
            history=(*older.kept, *newest.kept),
            prefix=before.text,
            region=text[start:end],
            region_start=start,
            region_end=end,
            tokens=self.budget - purse.left,
            dropped={name: number for name, number in dropped.items() if number},
            line=text.count("\n", 0, start - len(before.text)),
        )

    def _diffs(self, diffs: tuple[str, ...], purse: _Purse, limit: int) -> _Diffs:
        """The newest diffs that fit, oldest first; the first that does not is cut to its last whole
        hunks.
        """
        kept: list[str] = []
        hunks = 0
        for index in range(len(diffs) - 1, -1, -1):
            diff = diffs[index]
            cost = self.count(diff) + PART_OVERHEAD
            if cost > limit:
                diff, hunks = self._last_hunks(diff, limit)
                cost = self.count(diff) + PART_OVERHEAD
            if not diff:
                return _Diffs(tuple(reversed(kept)), index + 1, 0)
            purse.pay(cost)
            limit -= cost
            kept.append(diff)
            if hunks:
                return _Diffs(tuple(reversed(kept)), index, hunks)
        return _Diffs(tuple(reversed(kept)), 0, 0)

    def _last_hunks(self, diff: str, limit: int) -> tuple[str, int]:
        """The diff with as many of its last hunks as fit (empty when none does), and how many were
        cut.
        """
        head, hunks = split_diff(diff)
        for first in range(1, len(hunks)):
            shorter = head + "".join(hunks[first:])
            if self.count(shorter) + PART_OVERHEAD <= limit:
                return shorter, first
        return "", 0

    def _related(
        self, request: Request, region: tuple[int, int], purse: _Purse, limit: int
    ) -> tuple[tuple[Snippet, ...], dict[str, int]]:
        """Excerpts of related files, by path; files of recent edits first, then those that define
        most names.
        """
        names = nearby_names(request.text, *region, request.cursor)
        kept: list[Snippet] = []
        left_out = lines = 0
        for snippet in ranked(request, names):
            head = self.count(snippet.path) + PART_OVERHEAD
            text = snippet.text
            if head + self.count(text) > limit:
                text = excerpt(text, names, lambda part: self.count(part) <= limit - head)  # noqa: B023
                lines += snippet.text.count("\n") - text.count("\n")
            if not text.strip():
                left_out += 1
                continue
            cost = head + self.count(text)
            purse.pay(cost)
            limit -= cost
            kept.append(Snippet(snippet.path, text))
        kept.sort(key=lambda snippet: snippet.path)
        return tuple(kept), {"related": left_out, "related_lines": lines}


def build_context(
    request: Request, budget: int, count: Count, region: range | None = None
) -> Context:
    """One context without memory between calls; see `ContextBuilder.build`."""
    return ContextBuilder(count, budget).build(request, region)
