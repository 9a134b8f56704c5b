"""Predictions that take back what the user has just done."""

from __future__ import annotations

import pytest

from diffing.hunks import unified_diff
from diffing.reversal import measure, reversal_ratio, undoes_last_edit

BODY = "def f(a):\n    return a\n"
LINES = "alpha()\nbeta()\ngamma()\ndelta()\n"


@pytest.mark.parametrize(
    ("before", "now", "predicted"),
    [
        ("foo = 1\n", "bar = 1\n", "foo = 1\n"),
        ("foo = 1\nprint(foo)\n", "bar = 1\nprint(foo)\n", "foo = 1\nprint(foo)\n"),
        ("x = 1\n", "x = 1\ny = 2\n", "x = 1\n"),
        (BODY + LINES, BODY, BODY + LINES),
        (BODY + LINES, BODY, BODY + "alpha()\n"),  # restores a part
        (BODY + LINES, BODY, BODY + "beta()\ngamma()\n"),
        ("def f(x, y):\n", "def f(x):\n", "def f(x, y):\n"),
        ("call(arg)\n", "call(\n", "call(arg\n"),
        ("x = 1\n", "x = 1  # note this\n", "x = 1  #\n"),  # deletes most of what was typed
        ("  a\n", "    a\n", "  a\n"),
    ],
)
def test_undoing(before, now, predicted):
    assert undoes_last_edit(before, now, predicted)
    assert reversal_ratio((before, now), predicted) >= 0.75


@pytest.mark.parametrize(
    ("before", "now", "predicted"),
    [
        ("foo = 1\nprint(foo)\n", "bar = 1\nprint(foo)\n", "bar = 1\nprint(bar)\n"),
        ("fox", "foo", "food"),
        ("", "retrun x", "return x"),  # mends a word
        ("", "fooo(x)", "foo(x)"),
        (LINES, "beta()\ngamma()\ndelta()\n", "beta()\ngamma()\ndelta()\nalpha()\n"),  # moved
        ("def f(x, y):\n", "def f(x):\n", "def f(x, z):\n"),
        ("call(a)\n", "call(\n", "call(b)\n"),
        ("a\n", "a\nb\n", "a\nb\nc\n"),
        ("a\n", "b\n", "b\n"),
        ("a\n", "a\n", "b\n"),
    ],
)
def test_not_undoing(before, now, predicted):
    assert not undoes_last_edit(before, now, predicted)


def test_the_ratio_counts_characters():
    # Deletes "two", which was typed, and adds "xyz", which never stood there.
    found = measure("one\n", "one two\n", "one xyz\n")
    assert (found.predicted, found.added, found.removed_again, found.restored) == (6, 3, 3, 0)
    assert found.ratio == 0.5
    # Brings back "two" and adds "four" beside it.
    found = measure("one two\n", "one\n", "one two four\n")
    assert (found.predicted, found.restored) == (7, 3)
    assert reversal_ratio(("a", "b"), "b") == 0.0


def test_the_last_edit_as_a_diff():
    before, now = LINES, LINES.replace("beta()\n", "")
    diff = unified_diff(before, now, "f.py")
    assert reversal_ratio(diff, before, now=now) == 1.0
    assert reversal_ratio("// User accepted prediction:\n" + diff, before, now=now) == 1.0
    assert reversal_ratio(diff, now + "more()\n", now=now) == 0.0
    with pytest.raises(ValueError, match="present text"):
        reversal_ratio(diff, before)
    with pytest.raises(ValueError, match="does not fit"):
        reversal_ratio(diff, before, now="something else\n")


def test_large_texts_are_compared_too():
    before = "".join(f"{i} {i * i}\n" for i in range(20_000))
    now = before + "".join(f"{i} new\n" for i in range(5_000))
    assert undoes_last_edit(before, now, before)
    assert not undoes_last_edit(before, now, now + "and more\n")
