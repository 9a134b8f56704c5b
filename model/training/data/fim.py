"""Gaps in a text for fill-in-the-middle training.

Responsible for where the gaps are: at syntax nodes and at random, within a line and over several. A gap is a pair of
offsets, so a text is never copied. It knows nothing of packages, files or models.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from model.training.data.syntax import Span, node_spans

CHARS_PER_GAP = 110
ATTEMPTS = 8
USUAL_CHARS = 400
MAX_CHARS = 1200
LONG_SHARE = 0.1
TINY_CHARS = 3
TINY_SHARE = 0.3
SINGLE_LINE = 0.6
# Kinds and their weights among the gaps of one line, and of several.
ONE_LINE = {
    "argument_list": 16,
    "expression": 14,
    "statement": 8,
    "string": 5,
    "collection": 4,
    "parameters": 4,
    "condition": 4,
    "type": 2,
    "comment": 2,
    "rest-of-line": 16,
    "line": 14,
    "random": 11,
}
SEVERAL_LINES = {
    "block": 22,
    "statement": 12,
    "function": 6,
    "argument_list": 6,
    "collection": 4,
    "string": 4,
    "parameters": 2,
    "expression": 4,
    "lines": 18,
    "random": 16,
    "rest-of-block": 6,
}
BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">", "`": "`"}
BRACKETED = frozenset(
    {"argument_list", "parameters", "collection", "block", "condition", "string", "type"}
)


@dataclass(frozen=True)
class Gap:
    """`text[start:end]` (code points) is to be filled in; it touches `lines` lines."""

    start: int
    end: int
    kind: str
    lines: int


class Cutter:
    """Draws gaps of one text. `language` is a language id that `syntax.GRAMMARS` knows."""

    def __init__(self, text: str, language: str, rng: random.Random) -> None:
        self.text = text
        self.rng = rng
        self.lines = [match.span() for match in re.finditer(r"[^\n]+", text) if match[0].strip()]
        self.starts = [start for start, _ in self.lines]
        self.pools: dict[tuple[str, bool], list[Span]] = {}
        for kind, spans in node_spans(text, language).items():
            for span in spans:
                inner = self.inside(span) if kind in BRACKETED else span
                if self.usable(inner):
                    several = "\n" in text[slice(*inner)]
                    self.pools.setdefault((kind, several), []).append(inner)
        self.random_kinds: dict[tuple[str, bool], Callable[[], Span]] = {
            ("rest-of-line", False): self.rest_of_line,
            ("line", False): lambda: self.whole_lines(1),
            ("random", False): self.within_line,
            ("lines", True): lambda: self.whole_lines(self.rng.randint(2, 8)),
            ("random", True): self.across_lines,
            ("rest-of-block", True): self.rest_of_block,
        }

    def inside(self, span: Span) -> Span:
        """A bracketed node without its brackets, in half of the cases without the blanks next to them too."""
        start, end = span
        if BRACKETS.get(self.text[start : start + 1], "") != self.text[end - 1 : end]:
            return span
        start, end = start + 1, end - 1
        inner = self.text[start:end]
        if self.rng.random() < 0.5 and inner.strip():
            return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())
        return start, end

    def usable(self, span: Span) -> bool:
        start, end = span
        return start < end <= start + MAX_CHARS and not self.text[start:end].isspace()

    def draw(self, several: bool) -> Gap | None:
        """One gap, within a line or over several; None when what was drawn is of no use."""
        table = SEVERAL_LINES if several else ONE_LINE
        kinds = [
            kind
            for kind in table
            if (kind, several) in self.pools or (kind, several) in self.random_kinds
        ]
        kind = self.rng.choices(kinds, [table[kind] for kind in kinds])[0]
        make = self.random_kinds.get((kind, several))
        span = make() if make else self.rng.choice(self.pools[kind, several])
        start, end = span
        if not self.usable(span) or (start, end) == (0, len(self.text)):
            return None
        if end - start > USUAL_CHARS and self.rng.random() > LONG_SHARE:
            return None
        if end - start <= TINY_CHARS and self.rng.random() > TINY_SHARE:
            return None
        middle = self.text[start:end]
        lines = middle.count("\n") + (not middle.endswith("\n"))
        return Gap(start, end, kind, lines) if (lines > 1) == several else None

    def a_line(self) -> tuple[int, Span]:
        """A line that is not blank, as its number and its span without the line end."""
        number = self.rng.randrange(len(self.lines))
        return number, self.lines[number]

    def body(self, line: Span) -> int:
        """Where a line begins after its indentation."""
        start, end = line
        return end - len(self.text[start:end].lstrip())

    def rest_of_line(self) -> Span:
        _, line = self.a_line()
        return self.rng.randint(self.body(line), line[1] - 1), line[1]

    def within_line(self) -> Span:
        _, line = self.a_line()
        start = self.rng.randint(self.body(line), line[1] - 1)
        return start, self.rng.randint(start + 1, line[1])

    def whole_lines(self, count: int) -> Span:
        """Lines with or without the first one's indentation and the last one's line end."""
        first, line = self.a_line()
        start = line[0] if self.rng.random() < 0.5 else self.body(line)
        end = self.lines[min(first + count, len(self.lines)) - 1][1]
        return start, end + (self.text[end : end + 1] == "\n" and self.rng.random() < 0.3)

    def across_lines(self) -> Span:
        """From inside one line to inside one of the next five."""
        first, line = self.a_line()
        last = self.lines[min(first + self.rng.randint(1, 5), len(self.lines) - 1)]
        return self.rng.randint(*line), self.rng.randint(min(self.body(last) + 1, last[1]), last[1])

    def rest_of_block(self) -> Span:
        """From inside a line to the end of the innermost block of several lines that begins before it."""
        blocks = self.pools.get(("block", True))
        if not blocks:
            return 0, 0
        start, end = self.rng.choice(blocks)
        end = start + len(self.text[start:end].rstrip())
        number = max(0, bisect_right(self.starts, start) - 1)
        last = max(number, bisect_right(self.starts, end) - 2)
        line = self.lines[self.rng.randint(number, last)]
        return self.rng.randint(max(start, self.body(line)), max(start, line[1])), end


def gaps(text: str, language: str, rng: random.Random) -> Iterator[Gap]:
    """Different gaps of a text, about one for every `CHARS_PER_GAP` characters, in the order of drawing."""
    cutter = Cutter(text, language, rng)
    if not cutter.lines:
        return
    seen: set[Span] = set()
    for _ in range(max(1, len(text) // CHARS_PER_GAP)):
        several = rng.random() >= SINGLE_LINE
        for _ in range(ATTEMPTS):
            gap = cutter.draw(several)
            if gap and (gap.start, gap.end) not in seen:
                seen.add((gap.start, gap.end))
                yield gap
                break
