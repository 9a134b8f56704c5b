from __future__ import annotations

import pytest

from diffing.hunks import unified_diff
from model.draft_history import Change, line_pairs, recent_changes, token_ops


def change(old: str, new: str) -> Change:
    return Change("a.py", tuple(old.split("\n")), tuple(new.split("\n")), (), (), 0)


def test_older_changes_are_carried_through_newer_ones() -> None:
    one = "".join(f"line {n}\n" for n in range(30))
    two = one.replace("line 20\n", "changed 20\n")
    three = two.replace("line 3\n", "new 3\nnew 3b\nnew 3c\n")
    history = (unified_diff(one, two, "a.py"), unified_diff(two, three, "a.py"))
    newest, older = recent_changes(history, "a.py", 4)
    assert (newest.recency, newest.line, newest.old) == (0, 3, ("line 3",))
    assert newest.new == ("new 3", "new 3b", "new 3c")
    assert (older.recency, older.line, older.new) == (1, 22, ("changed 20",))
    assert three.split("\n")[22] == "changed 20"
    assert older.before == ("line 17", "line 18", "line 19")


def test_of_one_diff_the_group_at_the_cursor_is_the_newest() -> None:
    old = "".join(f"line {n}\n" for n in range(30))
    new = old.replace("line 2\n", "two\n").replace("line 25\n", "twenty-five\n")
    history = (unified_diff(old, new, "a.py"),)
    assert [c.new for c in recent_changes(history, "a.py", 24)] == [("twenty-five",), ("two",)]
    assert [c.new for c in recent_changes(history, "a.py", 1)] == [("two",), ("twenty-five",)]


def test_changes_of_other_files_have_no_line() -> None:
    history = (unified_diff("a\n", "b\n", "other.py"),)
    (found,) = recent_changes(history, "a.py", 0)
    assert (found.path, found.line, list(found.span)) == ("other.py", None, [])


def test_a_mark_before_the_diff_is_passed_over() -> None:
    history = ("// User accepted prediction:\n" + unified_diff("a\n", "b\n", "a.py"),)
    assert recent_changes(history, "a.py", 0)[0].new == ("b",)


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ("a = 1\nb = 2", "a = 3\nb = 2", [("a = 1", "a = 3")]),
        (
            "first = load(a)\nsecond = load(b)",
            "# read both\nfirst = read(a)\nsecond = read(b)",
            [("first = load(a)", "first = read(a)"), ("second = load(b)", "second = read(b)")],
        ),
        ("return x", "y = 1\nz = 2", []),
    ],
)
def test_old_lines_are_paired_with_their_like(
    old: str, new: str, pairs: list[tuple[str, str]]
) -> None:
    assert line_pairs(change(old, new)) == pairs


def test_token_operations_are_ranges_of_both_lists() -> None:
    assert token_ops(list("abcd"), list("axcde")) == [(1, 2, 1, 2), (4, 4, 4, 5)]
    assert token_ops(list("ab"), list("ab")) == []
