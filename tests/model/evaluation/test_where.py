from __future__ import annotations

from model.evaluation.where import changed_lines, named_lines, rank, right_lines

ORIGINAL = "zero\none\ntwo\nthree\n"


def test_changed_lines_of_each_sort() -> None:
    assert changed_lines(ORIGINAL, "zero\nONE\nTWO\nthree\n") == [1, 2], "replaced"
    assert changed_lines(ORIGINAL, "zero\none\nthree\n") == [2], "deleted"
    assert changed_lines(ORIGINAL, "zero\none\nnew\ntwo\nthree\n") == [1, 2], "between these"
    assert changed_lines(ORIGINAL, "new\n" + ORIGINAL) == [0], "before the first"
    assert changed_lines(ORIGINAL, ORIGINAL + "new\n") == [3, 4], "after the last"
    assert changed_lines(ORIGINAL, "ZERO\none\ntwo\nTHREE\n") == [0, 3]
    assert changed_lines(ORIGINAL, ORIGINAL) == []


def test_any_right_answer_has_a_right_line() -> None:
    answers = ["ZERO\none\ntwo\nthree\n", "zero\none\nTWO\nthree\n"]
    assert right_lines(ORIGINAL, answers) == {0, 2}


def test_rank_is_that_of_the_first_right_line() -> None:
    assert rank([5, 2, 0], {0, 2}) == 2
    assert rank([2], {2}) == 1
    assert rank([1, 3], {2}) is None
    assert rank([], {2}) is None


def test_who_names_no_line_is_taken_by_his_candidate() -> None:
    changed = {"candidate": "zero\none\nTWO\nthree\n"}
    assert named_lines(changed | {"where": [[3, 0.5], [0, 0.1]]}, ORIGINAL) == [3, 0]
    assert named_lines(changed | {"where": []}, ORIGINAL) == [2]
    assert named_lines(changed, ORIGINAL) == [2]
    assert named_lines({"candidate": ORIGINAL}, ORIGINAL) == []
