"""Changed line ranges: right, maximal, and of bounded cost on large inputs."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

import diffing.line_diff as line_diff
from diffing.line_diff import changed_ranges

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "}"]), max_size=12)


@given(LINES, LINES)
def test_ranges_rebuild_the_new_lines(old, new):
    rebuilt, i = [], 0
    ranges = changed_ranges(old, new)
    for i1, i2, j1, j2 in ranges:
        rebuilt += old[i:i1] + new[j1:j2]
        assert j1 == len(rebuilt) - (j2 - j1)
        assert i1 < i2 or j1 < j2
        i = i2
    assert rebuilt + old[i:] == new
    for before, after in pairwise(ranges):
        assert before[1] < after[0]
        assert before[3] < after[2]


def test_common_lines_are_kept():
    assert changed_ranges(list("abcdef"), list("abXdYf")) == [(2, 3, 2, 3), (4, 5, 4, 5)]
    assert changed_ranges([], ["a"]) == [(0, 0, 0, 1)]
    assert changed_ranges(["a"], ["a"]) == []


def test_a_large_middle_is_cut_at_unique_lines(monkeypatch):
    def forbidden(*_):
        raise AssertionError("an exact comparison of a large middle")

    old = [f"line {i}" if i % 2 else "" for i in range(40_000)]
    new = ["first", *old[:10_000], "inserted", *old[10_000:30_000], *old[30_002:], "last"]
    monkeypatch.setattr(line_diff, "MAX_LINES", 0)
    monkeypatch.setattr(line_diff, "SequenceMatcher", forbidden)
    ranges = changed_ranges(old, new)
    assert ranges[0] == (0, 0, 0, 1)
    assert ranges[-1] == (40_000, 40_000, 40_000, 40_001)
    assert sum(i2 - i1 for i1, i2, _, _ in ranges) <= 4
    assert sum(j2 - j1 for _, _, j1, j2 in ranges) <= 5


def test_a_large_middle_without_unique_lines_is_one_change():
    old, new = ["x", "y"] * 30_000, ["y", "x"] * 30_000 + ["y"]
    ranges = changed_ranges(["a", *old, "b"], ["a", *new, "c"])
    assert ranges[0][0] >= 1
    assert ranges[-1][1] == 60_002
