"""Which lines differ between two lists of lines.

Responsible for matching lines well at a bounded cost. Knows nothing of texts, offsets or diff
formats.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

# Pairs of equal lines that an exact comparison may look at; SequenceMatcher's work grows with their
# number.
MAX_PAIRS = 200_000
# Lines on either side up to which an exact comparison is made at all.
MAX_LINES = 4_000

Range = tuple[int, int, int, int]


def changed_ranges(old: Sequence[str], new: Sequence[str]) -> list[Range]:
    """Maximal runs of changed lines as (old start, old end, new start, new end), in order.

    Ends are exclusive. Equal lines at both ends are set aside first. A middle that is too large for
    an exact comparison is cut at lines that occur exactly once on both sides (patience diff), and
    what is still too large counts as replaced.
    """
    ranges: list[Range] = []
    _compare(old, new, 0, len(old), 0, len(new), ranges, True)
    merged: list[Range] = []
    for i1, i2, j1, j2 in ranges:
        if merged and merged[-1][1] == i1 and merged[-1][3] == j1:
            merged[-1] = (merged[-1][0], i2, merged[-1][2], j2)
        else:
            merged.append((i1, i2, j1, j2))
    return merged


def _compare(
    old: Sequence[str],
    new: Sequence[str],
    i1: int,
    i2: int,
    j1: int,
    j2: int,
    ranges: list[Range],
    may_cut: bool,
) -> None:
    """Append the changed ranges of old[i1:i2] against new[j1:j2]."""
    while i1 < i2 and j1 < j2 and old[i1] == new[j1]:
        i1 += 1
        j1 += 1
    while i1 < i2 and j1 < j2 and old[i2 - 1] == new[j2 - 1]:
        i2 -= 1
        j2 -= 1
    if i1 == i2 or j1 == j2:
        if i1 != i2 or j1 != j2:
            ranges.append((i1, i2, j1, j2))
        return
    before, after = old[i1:i2], new[j1:j2]
    counts, new_counts = Counter(before), Counter(after)
    pairs = sum(count * new_counts[line] for line, count in counts.items())
    if pairs == 0:
        ranges.append((i1, i2, j1, j2))
    elif pairs <= MAX_PAIRS and max(i2 - i1, j2 - j1) <= MAX_LINES:
        for tag, a1, a2, b1, b2 in SequenceMatcher(None, before, after, False).get_opcodes():
            if tag != "equal":
                ranges.append((i1 + a1, i1 + a2, j1 + b1, j1 + b2))
    elif may_cut:
        where = {line: j for j, line in enumerate(after) if new_counts[line] == 1}
        both = [
            (i, where[line]) for i, line in enumerate(before) if counts[line] == 1 and line in where
        ]
        a = b = 0
        for i, j in _increasing(both):
            _compare(old, new, i1 + a, i1 + i, j1 + b, j1 + j, ranges, False)
            a, b = i + 1, j + 1
        _compare(old, new, i1 + a, i2, j1 + b, j2, ranges, False)
    else:
        ranges.append((i1, i2, j1, j2))


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of pairs (sorted by the first) whose second numbers grow."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, (_, second) in enumerate(pairs):
        at = bisect_left(tails, second)
        previous.append(ends[at - 1] if at else -1)
        if at == len(tails):
            tails.append(second)
            ends.append(index)
        else:
            tails[at] = second
            ends[at] = index
    chain = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(pairs[index])
        index = previous[index]
    return chain[::-1]
