"""How a user works through an edit."""

from __future__ import annotations

import json
import random

from diffing.hunks import reverse_unified, unified_diff
from model.evaluation.cases import parse_row
from model.evaluation.replay import MIX, sample, trace_of, typed, typing_pauses
from model.protocol import Request

TEXT = "a = 1\nb = 2\nc = 3\n"


def test_every_key_of_the_way_is_there() -> None:
    target = "a = 1\nbeta = 2\nnew = 5\nc = 3\n"
    moments = list(typed(TEXT, target))
    assert [m.text.split("\n")[1] for m in moments[:3]] == ["be = 2", "bet = 2", "beta = 2"]
    assert moments[2].cursor == TEXT.index("b") + 4
    assert moments[-1].text == "a = 1\nbeta = 2\nnew = \nc = 3\n"
    assert [m.keys for m in moments] == list(range(1, len(moments) + 1))
    assert list(typed(TEXT, TEXT)) == []


def test_a_pause_has_the_growing_edit_as_its_newest_history() -> None:
    target = TEXT + "value = compute(first, second, third)\nprint(value)\n"
    request = Request("next_edit", "a.py", TEXT, 0, history=())
    pauses = list(typing_pauses(request, (target,), random.Random(1)))
    assert pauses == list(typing_pauses(request, (target,), random.Random(1)))
    assert [p.keys for p in pauses] == sorted({p.keys for p in pauses})
    assert any(p.request.text.endswith("third)\n") for p in pauses)  # a line end is a pause
    for pause in pauses:
        now = pause.request
        assert reverse_unified(now.text, now.history[-1]) == TEXT
        assert now.text[: now.cursor].endswith(now.history[-1].split("\n+")[-1].split("\n")[0])


def test_what_is_to_be_done_elsewhere_stays_right_while_typing() -> None:
    target = TEXT.replace("a = 1", "alpha_value = 1\nmore_of_it = 1")
    other = TEXT.replace("c = 3", "gamma = 3")
    request = Request("next_edit", "a.py", TEXT, 0)
    for pause in typing_pauses(request, (target, other), random.Random(3)):
        assert len(pause.expected) == 2
        assert pause.expected[1] == pause.request.text.replace("c = 3", "gamma = 3")


def test_an_edit_that_is_half_typed_goes_on_from_where_it_began() -> None:
    half = TEXT + "value = com"
    history = (unified_diff(TEXT, half, "a.py"),)
    request = Request("next_edit", "a.py", half, len(half), history=history)
    target = TEXT + "value = compute(first, second)\n"
    for pause in typing_pauses(request, (target,), random.Random(0)):
        assert len(pause.request.history) == 1
        assert reverse_unified(pause.request.text, pause.request.history[0]) == TEXT


def row(number: int, kind: str, expected: str) -> dict:
    meta = {"kind": kind, "linked": None, "package": f"p{number % 3}", "to": "1.0"}
    return {
        "id": f"p-{number}-{kind}",
        "mode": "fim" if kind == "fim" else "next_edit",
        "path": "a.py",
        "text": TEXT,
        "cursor": {"line": 0, "character": 0},
        "expected": [expected],
        "meta": meta | {"episode": f"e{number}"},
    }


def test_where_nothing_is_left_the_editor_asks_for_both() -> None:
    trace = trace_of(parse_row(row(1, "done", TEXT)))
    assert [(p.request.mode, p.wanted) for p in trace.pauses] == [
        ("next_edit", False),
        ("fim", False),
    ]
    assert (trace.kind, trace.release) == ("done", "p1 1.0")


def test_a_sample_is_mixed_and_fixed(tmp_path) -> None:
    path = tmp_path / "cases.jsonl"
    kinds = list(MIX)
    rows = [row(n, kinds[n % 5], TEXT + str(n)) for n in range(200)]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    drawn = list(sample(path, 40, 20))
    assert [one["id"] for one in drawn] == [one["id"] for one in sample(path, 40, 20)]
    counts = {kind: sum(one["meta"]["kind"] == kind for one in drawn) for kind in MIX}
    assert counts == {kind: round(40 * part) for kind, part in MIX.items()}
    few = [one["meta"]["package"] for one in sample(path, 40, 4)]
    assert max(few.count(package) for package in set(few)) == 4
