from __future__ import annotations

from typing import Any

import pytest

from model.evaluation.cases import Case, parse_row
from model.evaluation.report import cell, score_tables, table
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
    assert list(grouped(scores, "language")) == [
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
    assert grouped(scores, "kind")["next_edit/jump"]["cases"] == 1
    assert grouped(scores, "kind")["next_edit/none"]["cases"] == 1


def test_history_of_other_files_is_not_this_files() -> None:
    diff = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    assert mentions(diff, "src/x.py")
    assert mentions("// User accepted prediction:\n" + diff, "src/x.py")
    assert not mentions(diff, "x.py")


def test_tables_put_runs_beside_each_other() -> None:
    case = case_of()
    good, bad = (score(case, row_of(case, f"a = 1\nb = {value}\n")) for value in (2, 3))
    text = score_tables({"redraft": grouped([good], None), "causal": grouped([bad], None)})
    lines = text.splitlines()
    assert lines[0] == "Next edit"
    header = lines[1].split()
    assert "quiet" not in header, "a column without a figure is left out"
    assert lines[3].split()[:4] == ["redraft", "1", "0", "100.0"]
    assert lines[4].split()[:4] == ["causal", "1", "0", "0.0"]


def test_table_layout() -> None:
    assert table(["", "n"], [["long name", "1"], ["x", "234"]]).splitlines() == [
        "             n",
        "---------  ---",
        "long name    1",
        "x          234",
    ]


def test_cell() -> None:
    assert cell({"a": {"b": 0.125}}, "a.b", "%") == "12.5"
    assert cell({"a": {"b": None}}, "a.b", "%") == "-"
    assert cell({}, "a.b", "d") == "-"


def test_scores_are_plain_data() -> None:
    assert vars(Score("x", "fim", {}, True))["verdict"] is None
