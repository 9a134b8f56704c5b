from __future__ import annotations

import random

from diffing.hunks import apply_unified
from model.evaluation.replay import pause_weight
from model.training.data.changes import (
    Group,
    cluster,
    common_suffix,
    is_reformat,
    linked,
    split_groups,
    typing_order,
)
from model.training.data.examples import episode_cases, episodes, hole, type_partly

OLD = """import os


def load(path):
    data = open(path).read()
    return data


def main():
    data = load("a")
    print(data)
    return os.sep
"""
NEW = """import os


def load(path, encoding):
    data = open(path, encoding=encoding).read()
    return data


def main():
    data = load("a", encoding="utf-8")
    print(data)
    return os.sep
"""


def all_cases(seed: int = 0) -> list[dict]:
    rng = random.Random(seed)
    return [
        row
        for episode in episodes("pkg/io.py", OLD, NEW, rng)
        for row in episode_cases(episode, rng)
    ]


def offset(text: str, cursor: dict[str, int]) -> int:
    lines = text.split("\n")
    assert cursor["character"] <= len(lines[cursor["line"]])
    return sum(len(line) + 1 for line in lines[: cursor["line"]]) + cursor["character"]


def test_groups_share_the_identifier_that_links_them() -> None:
    lines, groups = split_groups(OLD, NEW)
    assert "".join(lines) == OLD
    assert [(group.start, len(group.before), len(group.after)) for group in groups] == [
        (3, 2, 2),
        (9, 1, 1),
    ]
    assert linked(groups[:1], groups[1])
    assert not linked([Group(0, ("a\n",), ("b\n",))], Group(5, ("x\n",), ("y\n",)))
    assert linked([Group(0, ("f(1)\n",), ("f(2)\n",))], Group(5, ("g(1)\n",), ("g(2)\n",))), (
        "the same token was replaced by the same token"
    )


def test_large_and_blank_groups_are_already_made() -> None:
    old = "a\nb\nc\nd\n"
    new = "a\n  b\nc\nd\n" + "".join(f"line{i}\n" for i in range(20))
    lines, groups = split_groups(old, new)
    assert "".join(lines) == new
    assert groups == []


def test_a_last_line_without_an_end_is_left_alone() -> None:
    lines, groups = split_groups("a\nb", "a\nc")
    assert ("".join(lines), groups) == ("a\nc", [])


def test_definition_comes_before_use() -> None:
    use = Group(1, ("x = 1\n",), ("x = helper(1)\n",))
    define = Group(9, (), ("def helper(value):\n", "    return value\n"))
    seed = next(s for s in range(50) if random.Random(s).random() >= 0.2)
    assert typing_order([use, define], random.Random(seed)) == [define, use]


def test_cluster_keeps_far_groups_apart() -> None:
    near = [Group(i * 10, (f"old_{i}\n",), ("shared_name\n",)) for i in range(3)]
    far = Group(900, ("other\n",), ("shared_name\n",))
    assert cluster([*near, far]) == [near, [far]]


def test_reformatting_is_recognised() -> None:
    assert is_reformat("x = [1,2]\n", "x = [\n    1,\n    2,\n]\n")
    assert not is_reformat("x = 1\n", "x = 2\n")
    assert not is_reformat("x = (\n", "x = (\n\n")
    assert list(episodes("a.py", "x = [1,2]\n", "x = [1, 2]\n", random.Random(0))) == []


def test_every_case_is_consistent() -> None:
    kinds = set()
    for seed in range(30):
        for row in all_cases(seed):
            kind = row["meta"]["kind"]
            kinds.add(kind)
            text, expected = row["text"], row["expected"]
            position = offset(text, row["cursor"])
            assert row["mode"] == ("fim" if kind == "fim" else "next_edit")
            if kind in ("done", "idle"):
                assert expected == [text]
                assert row["meta"]["linked"] is None
            else:
                assert text not in expected
            if kind == "fim":
                assert expected[0].startswith(text[:position])
                assert expected[0].endswith(text[position:])
            before = OLD
            for diff in row["history"]:
                before = apply_unified(before, diff)
            if kind != "fim":
                assert before == text, "the history leads to the present text"
    assert kinds == {"jump", "mid-typing", "fim", "done", "idle"}


def test_jump_case_says_what_comes_next() -> None:
    seed = next(
        s
        for s in range(100)
        if any(r["meta"]["kind"] == "jump" and "path, encoding=" in r["text"] for r in all_cases(s))
    )
    (jump,) = (row for row in all_cases(seed) if row["meta"]["kind"] == "jump")
    assert jump["expected"] == [NEW]
    assert jump["meta"]["linked"] is True
    assert len(jump["history"]) == 1
    line = jump["text"].split("\n")[jump["cursor"]["line"]]
    assert line[: jump["cursor"]["character"]] == "    data = open(path, encoding=encoding"


def test_done_is_not_claimed_while_a_linked_group_is_open() -> None:
    old = "".join(f"value_{i} = old_name({i})\nkeep_{i} = {i}\n" for i in range(30))
    new = old.replace("old_name", "new_name")
    rng = random.Random(1)
    for episode in episodes("a.py", old, new, rng):
        for row in episode_cases(episode, rng):
            if row["meta"]["kind"] == "done":
                assert "old_name" not in row["text"]


def test_partial_typing_keeps_the_tail_of_a_changed_line() -> None:
    group = Group(0, ("result = compute(first)\n",), ("result = compute(first, second)\n",))
    for seed in range(40):
        lines, number, column = type_partly(group, random.Random(seed)) or ((), 0, 0)
        assert number == 0
        assert lines[0].startswith("result = compute(first")
        assert lines[0].endswith(")\n")
        assert lines[0][column:] == ")\n"
        assert lines not in (group.before, group.after)


def test_nothing_to_type_in_a_deletion() -> None:
    assert type_partly(Group(0, ("gone\n",), ()), random.Random(0)) is None
    assert hole(Group(0, ("gone\n",), ()), random.Random(0)) is None


def test_pauses_are_likelier_after_an_opener_than_inside_a_word() -> None:
    assert pause_weight("call(", 5) == 10.0
    assert pause_weight("call", 2) == 1.0
    assert pause_weight("call()", 6) == 8.0
    assert pause_weight("a = b", 2) == 6.0


def test_common_suffix_does_not_overlap_the_prefix() -> None:
    assert common_suffix("aa", "aaa") == 0
    assert common_suffix("f(a)", "f(a, b)") == 1


def test_other_languages_are_named_and_their_layout_is_ignored() -> None:
    old = "const first = one('x')\nconst second = one('y')\n"
    assert is_reformat(old, 'const first = one("x");\nconst second = one("y");\n', "typescript")
    new = old.replace("one", "two")
    rng = random.Random(0)
    rows = [r for e in episodes("src/a.ts", old, new, rng) for r in episode_cases(e, rng)]
    assert {row["language"] for row in rows} == {"typescript"}
