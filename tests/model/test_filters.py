"""Each structural reason, what it catches and what it lets through."""

from __future__ import annotations

import pytest

from diffing.edits import Edit, minimal_edits
from diffing.hunks import unified_diff
from model.filters import suppress_reason
from model.protocol import Mode, Prediction, Request

CODE = "def area(w, h):\n    return w * h\n\n\nprint(area(2, 3))\n"


def reason_for(
    text: str, *edits: Edit, mode: Mode = "next_edit", history: tuple[str, ...] = (), **more: object
) -> str | None:
    cursor = edits[0].start if edits else 0
    request = Request(mode, "a.py", text, cursor, history=history)
    return suppress_reason(request, Prediction(edits=edits, **more))  # type: ignore[arg-type]


def completing(before_and_after: str, inserted: str) -> str | None:
    """The reason for text inserted at the `|`."""
    before, after = before_and_after.split("|")
    return reason_for(before + after, Edit(len(before), len(before), inserted), mode="fim")


def becoming(old: str, new: str, *, was: str | None = None) -> str | None:
    """The reason for a next edit from `old` to `new`, where the user's last edit made `old`."""
    history = () if was is None else (unified_diff(was, old, "a.py"),)
    return reason_for(old, *minimal_edits(old, new), history=history)


def test_an_edit_that_changes_nothing() -> None:
    assert reason_for(CODE) == "no-op"
    assert reason_for(CODE, Edit(0, 3, "def")) == "no-op"


@pytest.mark.parametrize(
    "text",
    ["x<|endoftext|>", "<fim_middle>y", "<file_sep>a.py", "<|cursor|>", "a</s>", "<[fim-suffix]>"],
)
def test_control_tokens(text: str) -> None:
    assert reason_for(CODE, Edit(0, 0, text)) == "control-token"
    assert reason_for(text + "\n" + CODE, Edit(0, 0, text)) != "control-token"


@pytest.mark.parametrize(
    "text", ["a < b | c > d", "x <- y", "List<String>", "<div>", "a || b", "<| not a token"]
)
def test_what_only_looks_like_control_tokens(text: str) -> None:
    assert reason_for(CODE, Edit(0, 0, text)) is None


def test_truncated_answers() -> None:
    assert reason_for(CODE, Edit(0, 0, "import os"), truncated=True) == "truncated"


def test_white_space_only() -> None:
    assert completing("x = 1|\ny = 2\n", "\n\n   ") == "whitespace-only"
    assert becoming("a\n\n\nb\n", "a\n\nb\n") == "whitespace-only"
    assert becoming("    a\n", "        a\n") == "whitespace-only"
    assert becoming("a  b\n", "a c b\n") is None


@pytest.mark.parametrize(
    ("text", "inserted"),
    [
        ("total = |price * count\n", "price * count"),
        ("print(|value)\n", "value)"),
        ("foo(|)\n", "x))"),
        ('name = "|"\n', 'bob"'),
        ("def f():\n    |\n    return total\n", "return total"),
        ("a = 1\n|\nreturn total + tax\n", "b = 2\nreturn total + tax"),
        ("    first_line()\n    second_line()\n|", "    second_line()\n"),
        ("a_line()\nb_line()\n|\n", "a_line()\nb_line()\n"),
        ("if (x) {\n|\n}\n", "  run();\n}"),
    ],
)
def test_repeating_what_stands_around_the_cursor(text: str, inserted: str) -> None:
    assert completing(text, inserted) == "duplicates-suffix"


@pytest.mark.parametrize(
    ("text", "inserted"),
    [
        ("foo(|)\n", "x"),
        ("foo(bar(|)\n", "x)"),
        ("foo(|)\n", "bar(x)"),
        ('say("|\n', 'hello")'),
        ("total = |\n", "price * count"),
        ("while x:\n    |\n", "x -= 1\n    y += 1"),
        ("function f() {\n|\n}\n", "  if (x) {\n    y();\n  }"),
        ("values = [\n    1,\n|]\n", "    2,\n"),
        ("return a[|]\n", "b[0]"),
    ],
)
def test_completions_that_repeat_nothing(text: str, inserted: str) -> None:
    assert completing(text, inserted) is None


def test_a_next_edit_that_inserts_the_following_lines_again() -> None:
    text = "one()\ntwo()\nthree()\n"
    assert reason_for(text, Edit(6, 6, "two()\n")) == "duplicates-suffix"
    assert reason_for(text, Edit(6, 6, "another()\n")) is None


def test_undoing_the_last_edit() -> None:
    was, now = "total = price\nx = 1\n", "total = price * count\nx = 1\n"
    assert becoming(now, was, was=was) == "undoes-last-edit"
    assert becoming(now, now.replace("x = 1", "x = 2"), was=was) is None
    deleted = "x = 1\n"
    assert becoming(deleted, was, was=was) == "undoes-last-edit"


def test_a_history_that_does_not_fit_is_passed_over() -> None:
    assert becoming("a = 1\n", "a = 2\n", was="quite another text\n") is None
    diff = unified_diff("b = 1\n", "b = 2\n", "other.py")
    assert reason_for("b = 2\n", Edit(4, 5, "1"), history=(diff,)) is None


def test_deleting_too_much() -> None:
    lines = "".join(f"line_number_{n} = {n}\n" for n in range(100))
    twenty = "".join(lines.splitlines(True)[:20])
    assert becoming(lines, lines[len(twenty) :]) is None
    assert becoming(lines, "".join(lines.splitlines(True)[21:])) == "deletes-too-much"
    long_line = "x" * 3000
    assert reason_for(long_line, Edit(0, 1300, "")) == "deletes-too-much"
    body = "def f():\n" + "    statement_of_some_length()\n" * 10
    assert reason_for(body, Edit(9, len(body), "    pass\n")) == "deletes-too-much"
    assert reason_for("x = 1\ny = 2\n", Edit(0, 12, "")) is None  # a tiny file says nothing


def test_replacing_much_by_much_is_no_deletion() -> None:
    old = "".join(f"old_{n}\n" for n in range(40))
    new = "".join(f"new_{n}\n" for n in range(40))
    assert reason_for(old, Edit(0, len(old), new)) is None
