from __future__ import annotations

from diffing.hunks import unified_diff
from model.evaluation.oracle import accepts, begun, parses, reversal

ORIGINAL = "def f(a):\n    return a\n\n\nprint(f(1))\nprint(f(2))\n"
RIGHT = "def f(a):\n    return a\n\n\nprint(f(1, 2))\nprint(f(2, 2))\n"


def test_the_right_answer_is_accepted() -> None:
    assert accepts(ORIGINAL, RIGHT, [RIGHT])
    assert accepts(ORIGINAL, RIGHT.replace("2))\n", "2))  \n"), [RIGHT]), "blanks at line ends"


def test_one_of_two_groups_is_enough() -> None:
    original = "a = 1\nkeep\nb = 1\n"
    right = "a = 2\nkeep\nb = 2\n"
    assert accepts(original, "a = 1\nkeep\nb = 2\n", [right])
    assert not accepts(original, "a = 3\nkeep\nb = 2\n", [right])


def test_the_first_lines_of_a_group_are_enough() -> None:
    original = "begin()\nend()\n"
    right = "begin()\none()\ntwo()\nthree()\nend()\n"
    assert accepts(original, "begin()\none()\ntwo()\nend()\n", [right])
    assert not accepts(original, "begin()\ntwo()\nend()\n", [right])
    assert not accepts(original, "begin()\none()\nelse_()\nend()\n", [right])


def test_no_edit_and_a_wrong_edit_are_not_accepted() -> None:
    assert not accepts(ORIGINAL, ORIGINAL, [RIGHT])
    assert not accepts(ORIGINAL, ORIGINAL.replace("a", "b"), [RIGHT])


def test_nothing_is_accepted_where_silence_is_right() -> None:
    assert not accepts(ORIGINAL, RIGHT, [ORIGINAL])
    assert accepts(ORIGINAL, RIGHT, [ORIGINAL, RIGHT])


def test_another_right_answer_counts() -> None:
    other = ORIGINAL.replace("return a", "return a + 1")
    assert accepts(ORIGINAL, other, [RIGHT, other])


def test_keeping_to_the_right_answer_is_enough_if_it_parses() -> None:
    original = "x = 1\n"
    right = "x = combine(first_value, second_value)\n"
    begun_right = "x = combine(first_value, second_value\n"
    assert accepts(original, begun_right, [right])
    assert not accepts(original, begun_right, [right], python=True)
    short = "x = combine(\n"
    assert not accepts(original, short, [right]), "recall is below one half"


def test_taking_back_the_last_edit_is_not_accepted() -> None:
    before, now = "x = first_value + second_value\n", "x = first_value\n"
    history = [unified_diff(before, now, "a.py")]
    almost = "x = first_value + second_value + z\n"
    right = "x = first_value + second_value + y\n"
    assert reversal(now, almost, history) > 0.5
    assert accepts(now, almost, [right], kept=0.85)
    assert not accepts(now, almost, [right], history, kept=0.85)
    assert reversal(now, almost, ["not a diff"]) == 0.0


def test_parses() -> None:
    assert parses("x = 1\n")
    assert not parses("x = (\n")
    assert not parses("x = '\0'\n")


def test_begun_needs_some_text() -> None:
    from diffing.hunks import Hunk

    right = Hunk(1, (), 1, ("\n", "text\n"))
    assert not begun(Hunk(1, (), 1, ("\n",)), right)
    assert begun(Hunk(1, (), 1, ("\n", "text \n")), right)
