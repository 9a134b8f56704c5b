"""What the text tells of a suggestion."""

from __future__ import annotations

import math

import pytest

from diffing.edits import Edit
from diffing.hunks import unified_diff
from model.features import among, describe, inside_string
from model.protocol import Request

BEFORE = "def total(items):\n    count = 0\n    return count\n\n# count again\nprint(count, 'x')\n"
AFTER = BEFORE.replace("    count = 0", "    size = 0")
HISTORY = (unified_diff(BEFORE, AFTER, "a.py"),)


def told(new: str, old: str, text: str = AFTER, mode: str = "next_edit") -> dict[str, float]:
    start = text.index(old)
    request = Request(mode, "a.py", text, text.index("size") + 4, history=HISTORY)  # type: ignore[arg-type]
    return describe(request, [Edit(start, start + len(old), new)], {"rule:finish-line": 1.0})


def test_an_edit_that_repeats_the_users_own_is_linked() -> None:
    same = told("return size", "return count")
    assert (same["linked"], same["linked newest"], same["shared"]) == (1.0, 1.0, 1.0)
    assert same["times"] == pytest.approx(math.log(2))
    assert same["unknown words"] == 0.0
    assert same["ahead"] == pytest.approx(math.log(2))
    other = told("def total(rows):", "def total(items):")
    assert (other["linked"], other["shared"]) == (0.0, 0.0)
    assert other["unknown words"] == pytest.approx(1 / 3)
    assert other["ahead"] < 0


def test_places() -> None:
    assert told("size", "count again")["in comment"] == 1.0
    assert told("y", "x'")["in string"] == 1.0
    assert inside_string("a = 'it\\'s") is True
    assert inside_string("a = 'b', ") is False
    assert told("size", "count, 'x'")["after opener"] == 1.0
    assert told("x", "\nprint")["of finish"] == 1.0


def test_size_brackets_and_repetition() -> None:
    grown = told("return count\n    return count\n", "return count\n")
    assert grown["grown lines"] == pytest.approx(math.log(2))
    assert grown["repeats"] == 0.0
    assert told("print(count, 'x')\nreturn", "return")["repeats"] == 0.5
    assert told("print(", "print")["open"] == 1.0
    assert told("x", "count again", mode="fim")["fim"] == 1.0


def test_drafts_are_ranked_among_each_other() -> None:
    first, second = among([-1.0, -3.5])
    assert (first["lead"], second["lead"], first["rivals"]) == (2.5, -2.5, 1.0)
    assert among([-1.0]) == [{"rivals": 0.0, "lead": 3.0}]
