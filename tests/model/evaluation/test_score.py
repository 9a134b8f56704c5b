from __future__ import annotations

from typing import Any

import pytest

from diffing.hunks import unified_diff
from model.evaluation.cases import Case, parse_row
from model.evaluation.report import cell, score_tables, table, tables_within
from model.evaluation.score import Score, grouped, mentions, middle, score, summarise


def case_of(**fields: Any) -> Case:
    row = {
        "id": "n",
        "text": "a = 1\nb = 1\n",
        "path": "src/x.py",
        "cursor": {"line": 0, "character": 5},
        "expected": ["a = 1\nb = 2\n"],
    }
    return parse_row(row | fields)


def row_of(case: Case, candidate: str, **fields: Any) -> dict[str, Any]:
    row = {
        "id": case.id,
        "shown": True,
        "suppressed": None,
        "confidence": 0.8,
        "text": candidate,
        "candidate": candidate,
        "latency_ms": 100.0,
        "forwards": 2,
        "tokens": 5,
        "model": "m",
    }
    row |= fields
    if not row["shown"]:
        row["text"] = case.request.text
    return row


def fim_case(**fields: Any) -> Case:
    return case_of(
        id="f",
        mode="fim",
        text="x = \nend\n",
        cursor={"line": 0, "character": 4},
        expected=["x = 12\nend\n"],
        check={"test": "def check(f):\n    assert x == 12", "entry_point": "end"},
        **fields,
    )


def test_a_right_next_edit() -> None:
    case = case_of()
    scored = score(case, row_of(case, "a = 1\nb = 2\n"))
    assert (scored.wanted, scored.shown, scored.accepted) == (True, True, True)
    assert scored.content["em"] == scored.content["position"] == scored.content["kept"] == 1
    assert scored.content["delta_chrf"] == 100
    assert scored.content["reversal"] == 0


def test_a_suppressed_answer_counts_for_the_candidate_only() -> None:
    case = case_of()
    scored = score(case, row_of(case, "a = 1\nb = 2\n", shown=False, suppressed="low-confidence"))
    assert (scored.content["em"], scored.candidate["em"]) == (0, 1)
    assert (scored.shown, scored.accepted, scored.proposed) == (False, True, True)


def test_the_best_of_several_right_answers_counts() -> None:
    case = case_of(expected=["a = 1\nb = 2\n", "a = 3\nb = 1\n"])
    scored = score(case, row_of(case, "a  = 3\nb = 1\n"))
    assert (scored.content["em"], scored.content["em_ws"], scored.content["position"]) == (0, 1, 1)


def test_silence_where_it_is_right() -> None:
    case = case_of(expected=["a = 1\nb = 1\n"])
    scored = score(case, row_of(case, case.request.text, shown=False, suppressed="no-prediction"))
    assert (scored.wanted, scored.content["em"], scored.proposed) == (False, 1, False)


def test_infilling_measures() -> None:
    case = fim_case()
    scored = score(case, row_of(case, "x = 12 \nend\n"))
    assert scored.content == {"em": 0, "em_stripped": 1, "similarity": pytest.approx(2 / 3)}
    assert middle(case, "x = 12\nend\n") == "12"
    assert middle(case, "y = 12\nend\n") is None
    changed = score(case, row_of(case, "y = 12\nend\n"))
    assert (changed.content["em"], changed.content["em_stripped"]) == (0, 0)


def test_the_middle_may_overlap_neither_side() -> None:
    case = case_of(mode="fim", text="aXa", cursor={"line": 0, "character": 2}, expected=["aXba"])
    assert middle(case, "aX") is None


def test_programs_are_run_only_when_asked_for() -> None:
    case = fim_case()
    programs: list[str] = []

    def run(program: str) -> Any:
        programs.append(program)
        return "pass"

    row = row_of(case, "x = 12\nend\n", shown=False)
    assert score(case, row).verdict is None
    assert score(case, row, run).verdict == "pass"
    assert programs == ["x = 12\nend\n\ndef check(f):\n    assert x == 12\ncheck(end)\n"]


def test_an_error_is_wrong_but_has_no_time() -> None:
    case = case_of()
    scores = [
        score(case, row_of(case, "a = 1\nb = 2\n", latency_ms=40.0)),
        score(case, {"id": "n", "error": "boom"}),
        score(case, None),
        score(case, row_of(case, "a = 1\nb = 3\n", latency_ms=60.0, confidence=0.2)),
    ]
    summary = summarise(scores)
    assert (summary["cases"], summary["errors"]) == (4, 2)
    assert summary["content"]["em"] == 0.25
    assert summary["latency_ms"]["p50"] == 50.0
    assert summary["gate"]["show"] == 0.5
    assert summary["gate"]["accept"] == 0.5
    assert summary["gate"]["auroc"] == 1.0
    assert summary["tokens_per_forward"] == 2.5


def test_summary_of_nothing_but_errors() -> None:
    assert summarise([score(case_of(), None)]) == {"cases": 1, "errors": 1}


def test_a_case_without_answers_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="no `expected`"):
        score(case_of(expected=None), None)


def test_pass_at_one() -> None:
    case = fim_case()
    scores = [
        score(case, row_of(case, text), lambda program: "pass" if "12" in program[:8] else "fail")
        for text in ("x = 12\nend\n", "x = 13\nend\n")
    ]
    assert summarise(scores)["pass_at_1"] == 0.5


def test_groups_by_language_and_meta() -> None:
    cases = [
        case_of(id="1"),
        case_of(id="2", path="x.go", meta={"kind": "jump", "linked": True, "sizes": [1]}),
        fim_case(),
    ]
    scores = [score(case, row_of(case, case.request.text)) for case in cases]
    assert list(grouped(scores, ["language"])) == [
        "fim",
        "fim/python",
        "next_edit",
        "next_edit/go",
        "next_edit/python",
    ]
    assert scores[1].labels == {
        "language": "go",
        "mode": "next_edit",
        "kind": "jump",
        "linked": "true",
    }
    assert grouped(scores, ["kind"])["next_edit/jump"]["cases"] == 1
    assert list(grouped(scores, ["kind"])) == ["fim", "next_edit", "next_edit/jump"]


def test_labels_that_say_yes_or_no_and_two_at_once() -> None:
    cases = [
        case_of(id=str(number), meta={"kind": kind, "linked": linked})
        for number, (kind, linked) in enumerate([("jump", True), ("jump", False), ("done", None)])
    ]
    scores = [score(case, row_of(case, case.request.text)) for case in cases]
    assert list(grouped(scores, ["linked", "kind+linked"])) == [
        "next_edit",
        "next_edit/linked",
        "next_edit/not linked",
        "next_edit/done",
        "next_edit/jump, linked",
        "next_edit/jump, not linked",
    ]


def test_rates_worked_out_by_hand() -> None:
    """Four wanted edits and four cases where silence is right."""
    right, wrong = "a = 1\nb = 2\n", "a = 7\nb = 1\n"
    wanted, quiet = case_of(), case_of(expected=["a = 1\nb = 1\n"])
    scores = [
        score(wanted, row_of(wanted, right, where=[[1, 0.6], [0, 0.2]])),
        score(wanted, row_of(wanted, wrong, where=[[0, 0.6], [5, 0.2], [1, 0.1]])),
        score(wanted, row_of(wanted, right, shown=False, suppressed="low-confidence")),
        score(wanted, row_of(wanted, "a = 1\nb = 1\n", shown=False, suppressed="no-prediction")),
        score(quiet, row_of(quiet, wrong)),
        *[score(quiet, row_of(quiet, "a = 1\nb = 1\n", shown=False)) for _ in range(3)],
    ]
    assert [one.place for one in scores] == [1, 3, 1, None, None, None, None, None]
    summary = summarise(scores)
    assert summary["where"] == {"top1": 2 / 4, "top3": 3 / 4}
    gate = summary["gate"]
    assert gate["show"] == 3 / 8
    assert gate["show_wanted"] == 2 / 4
    assert gate["quiet"] == 3 / 4
    assert gate["accept"] == 1 / 3
    assert gate["recall"] == 1 / 4
    # Each wanted edit is a jump, a deletion and an insertion: 4 + 1 + 1. One is done for a key.
    assert summary["keystrokes"] == {
        "by_hand": 4 * 6 / 8,
        "saved": 5 / 24,
        "net": (5 - 2 * 3) / 24,
    }
    assert summary["content"]["em"] == 1 / 4, "silence where it is right is no exact match"
    assert summary["candidate"]["em"] == 2 / 4


def test_only_what_is_shown_can_take_back() -> None:
    before, now = "total = first\n", "total = second\n"
    history = [unified_diff(before, now, "src/x.py")]
    case = case_of(text=now, expected=["total = third\n"], history=history)
    silent = score(case, row_of(case, before, shown=False, suppressed="low-confidence"))
    forward = score(case, row_of(case, "total = second\nAAAA\n"))
    back = score(case, row_of(case, before))
    assert summarise([silent])["gate"]["reversal"] is None
    assert summarise([silent, forward])["gate"]["reversal"] == 0
    assert summarise([silent, forward, back])["gate"]["reversal"] == 1 / 2


def test_an_error_leaves_all_its_keys_to_type() -> None:
    case = case_of()
    summary = summarise([score(case, None), score(case, row_of(case, "a = 1\nb = 2\n"))])
    assert summary["keystrokes"]["saved"] == 5 / 12
    assert summary["where"] == {"top1": 1 / 2, "top3": 1 / 2}


def test_history_of_other_files_is_not_this_files() -> None:
    diff = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    assert mentions(diff, "src/x.py")
    assert mentions("// User accepted prediction:\n" + diff, "src/x.py")
    assert not mentions(diff, "x.py")


def test_tables_put_runs_beside_each_other() -> None:
    case = case_of()
    good, bad = (score(case, row_of(case, f"a = 1\nb = {value}\n")) for value in (2, 3))
    text = score_tables({"redraft": grouped([good]), "causal": grouped([bad])})
    lines = text.splitlines()
    assert lines[0] == "Next edit"
    header = lines[1].split()
    assert "quiet" not in header, "a column without a figure is left out"
    assert "errors" not in header
    assert lines[3].split()[:3] == ["redraft", "1", "100.0"]
    assert lines[4].split()[:3] == ["causal", "1", "0.0"]
    assert max(map(len, lines)) <= 100


def test_table_layout() -> None:
    assert table(["", "n"], [["long name", "1"], ["x", "234"]]).splitlines() == [
        "             n",
        "---------  ---",
        "long name    1",
        "x          234",
    ]


def test_wide_tables_go_on_below() -> None:
    header, rows = ["", "aaaa", "bbbb", "cccc", "dddd"], [["run", "1", "2", "3", "4"]]
    assert tables_within(header, rows, 100) == [table(header, rows)]
    assert tables_within(header, rows, 26) == [
        table(["", "aaaa", "bbbb"], [["run", "1", "2"]]),
        table(["", "cccc", "dddd"], [["run", "3", "4"]]),
    ], "three would fit in the first, but two and two are more even"
    assert len(tables_within(header, rows, 1)) == 4, "one figure is always there"
    assert tables_within([""], [["run"]]) == [table([""], [["run"]])]


def test_cell() -> None:
    assert cell({"a": {"b": 0.125}}, "a.b", "%") == "12.5"
    assert cell({"a": {"b": None}}, "a.b", "%") == "-"
    assert cell({}, "a.b", "d") == "-"


def test_scores_are_plain_data() -> None:
    assert vars(Score("x", "fim", {}, True))["verdict"] is None
