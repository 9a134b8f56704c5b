from __future__ import annotations

import json
from pathlib import Path

import pytest

from diffing.edits import Edit
from diffing.hunks import unified_diff
from model.draft import Draft
from model.evaluation.cases import parse_row
from model.training.draft_recall import Judge, main

OLD = "a = old(1)\nb = 2\nc = old(3)\nd = 4\ne = old(5)\n"
NOW = OLD.replace("old(1)", "new(1)")
BOTH = OLD.replace("old", "new")


def row(expected: list[str]) -> dict[str, object]:
    return {
        "id": "x",
        "path": "a.py",
        "text": NOW,
        "cursor": {"line": 0, "character": 7},
        "history": [unified_diff(OLD, NOW, "a.py")],
        "expected": expected,
        "meta": {"kind": "jump", "linked": True},
    }


def draft(start: int, end: int, text: str) -> Draft:
    return Draft(Edit(start, end, text), "test", None, 1, 0, 0)


def test_one_whole_group_of_the_expected_buffer_is_right() -> None:
    judge = Judge(parse_row(row([BOTH])))
    at = NOW.index("old(3)")
    assert judge.right(draft(at, at + 3, "new"))
    assert not judge.right(draft(at, at + 3, "knew"))
    other = NOW.index("b = 2")
    assert not judge.right(draft(other, other + 1, "z"))


def test_a_wider_edit_is_right_when_all_its_groups_are() -> None:
    judge = Judge(parse_row(row([BOTH])))
    start, end = NOW.index("old(3)"), NOW.index("old(5)") + 3
    assert judge.right(draft(start, end, "new(3)\nd = 4\ne = new"))
    assert not judge.right(draft(start, end, "new(3)\nd = 5\ne = new"))


def test_nothing_is_right_where_silence_is() -> None:
    judge = Judge(parse_row(row([NOW])))
    assert not judge.positive
    assert not judge.right(draft(0, 1, "z"))


def test_the_command_prints_kinds_and_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(row([BOTH])) + "\n" + json.dumps(row([NOW])) + "\n")
    assert main([str(cases)]) == 0
    out = capsys.readouterr().out
    assert [line.split()[:4] for line in out.split("\n") if line.startswith("jump")] == [
        ["jump", "linked", "2", "1"]
    ]
    assert "100.0 %" in out
    assert "substitution" in out
