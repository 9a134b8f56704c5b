"""The simulated user, his record and what several gates would have shown him."""

from __future__ import annotations

import json

import pytest

from diffing.edits import Edit
from model.candidate import Candidate
from model.evaluation.bootstrap import clustered
from model.evaluation.cases import parse_row
from model.evaluation.gate_report import compared, run_gate, table
from model.evaluation.keystrokes import KEY_S, reading_seconds
from model.evaluation.recorded import Recorded
from model.evaluation.replay import IDLE_S, trace_of
from model.evaluation.simulate import FINISHED, by_gate, opportunities, sums, walk
from model.evaluation.simulate_command import everything, feedback
from model.feedback import from_json, to_json
from model.gate import Gate, Logistic
from model.training.labels import label

TEXT = "def total(items):\n    pass\n\n\nprint(total([1]))\n"
RIGHT = "    result = sum(items)\n    return result\n"
TARGET = TEXT.replace("    pass\n", RIGHT)


def case(number: int, *, done: bool = False):
    text = TARGET if done else TEXT
    return parse_row(
        {
            "id": str(number),
            "path": "a.py",
            "text": text,
            "cursor": {"line": 1, "character": 4},
            "expected": [TARGET],
            "meta": {"kind": "done" if done else "jump", "package": "p", "to": f"{number % 4}"},
        }
    )


def candidate(text: str, old: str, new: str, sure: float) -> Candidate:
    start = text.index(old)
    edits = (Edit(start, start + len(old), new),)
    return Candidate("draft", edits, 0.0, {"sure": sure, "prior": sure}, 1, line=1)


def propose(request):
    """One wrong suggestion, and while nothing is typed yet a right one that is surer."""
    found = [candidate(request.text, "print", "assert", 0.0)]
    if "    pass\n" in request.text:
        found.append(candidate(request.text, "    pass\n", RIGHT.split("\n")[0] + "\n", 2.0))
    return found, 5.0


def gate(least: float) -> Gate:
    values = {"eager": least, "balanced": least, "quiet": least}
    return Gate(
        {"draft": Logistic(0.0, {"sure": (2.0, 1.0, 1.0)})}, {"next_edit": values, "fim": values}
    )


@pytest.fixture
def chances(tmp_path):
    asked = Recorded(tmp_path / "record.jsonl", propose)
    traces = [trace_of(case(n, done=n % 3 == 0)) for n in range(12)]
    found = list(opportunities(traces, asked))
    asked.close()
    return found


def test_what_is_accepted_jumps_over_the_pauses_that_it_saves(chances) -> None:
    trace = [chance for chance in chances if chance.trace == "1"]
    assert len(trace) == 3
    begun = [offer for offer in trace[0].offers if offer.accepted]
    (offer,) = begun
    first_line = trace[0].keys + len("    result = sum(items)") - 4
    assert offer.reaches in (first_line, FINISHED)
    assert offer.saved > 0
    kept = list(walk(trace, by_gate(gate(0.5))))
    assert kept[0].accepted
    assert [step.chance.keys >= offer.reaches for step in kept[1:]] == [True] * (len(kept) - 1)
    assert len(list(walk(trace, by_gate(gate(0.99))))) == 3


def test_sums_of_a_walk(chances) -> None:
    silent = sums(walk(chances, by_gate(gate(0.99)))).figures()
    assert (silent["shown"], silent["accept_rate"], silent["quiet"]) == (0, None, 1.0)
    sure = sums(walk(chances, by_gate(gate(0.5)))).figures()
    assert (sure["shown"], sure["accepted"], sure["utility"]) == (8, 8, 6.0)
    all_shown = sums(walk(chances, by_gate(gate(0.0))))
    assert all_shown.shown == all_shown.pauses
    assert all_shown.figures()["quiet"] == 0.0


def test_what_comes_after_the_next_key_is_never_seen(chances) -> None:
    """Offers took 5 ms; the user is idle for a second at a case's own state, else types a key in 133 ms."""
    assert {chance.rest for chance in chances} == {IDLE_S, KEY_S}

    def everything(chance):
        return next(offer for offer in chance.offers if not offer.accepted)

    in_time = sums(walk(chances, everything, 1.0))
    assert (in_time.late, in_time.shown) == (0, in_time.pauses)
    slow = list(walk(chances, everything, 0.01))
    assert {step.chance.rest for step in slow if step.late} == {KEY_S}
    assert all(step.shown is None for step in slow if step.late)
    assert {step.chance.rest for step in slow if step.shown} == {IDLE_S}
    slower = sums(walk(chances, everything, 0.004))
    assert (slower.late, slower.shown, slower.reading) == (len(chances), 0, 0.0)
    assert slower.figures()["time_saved"] == 0.0
    assert (
        sums(walk(chances, by_gate(gate(0.99)), 0.004)).late == 0
    )  # nothing would have been shown


def test_reading_is_paid_for_by_size(chances) -> None:
    assert reading_seconds(0) == pytest.approx(0.4)
    assert reading_seconds(50) == pytest.approx(2.4)
    first = next(c for c in chances if c.number == 0 and c.wanted)
    (taken,) = walk([first], by_gate(gate(0.5)))
    assert taken.shown is not None
    reading = 0.4 + taken.shown.size / 25
    saved = taken.shown.saved * KEY_S - reading
    assert sums([taken]).figures()["reading"] == pytest.approx(reading)
    assert sums([taken]).figures()["time_saved"] == pytest.approx(saved / (first.by_hand * KEY_S))


def test_the_record_answers_without_a_model(chances, tmp_path) -> None:
    again = list(
        opportunities(
            (trace_of(case(n, done=n % 3 == 0)) for n in range(12)),
            Recorded(tmp_path / "record.jsonl"),
        )
    )
    assert again == chances
    with (tmp_path / "record.jsonl").open("ab") as file:
        file.write(b'{"key": "cut o')
    more = Recorded(tmp_path / "record.jsonl", propose)
    list(opportunities([trace_of(case(1))], more))
    assert more.asked == 0
    list(opportunities([trace_of(case(99))], more))  # it pauses elsewhere
    assert more.asked > 0
    assert len(Recorded(tmp_path / "record.jsonl")._rows) == len(more._rows)
    missing = Recorded(tmp_path / "other.jsonl")
    assert list(opportunities([trace_of(case(1))], missing)) == []


def test_gates_are_compared_on_the_same_pauses(chances) -> None:
    eager, sure = (run_gate(name, gate(p), chances) for name, p in (("eager", 0.0), ("sure", 0.5)))
    told = compared(eager, sure, draws=50)
    assert told["accepted"][0] == 1.0
    assert told["shown"][0] == pytest.approx(8 / eager.figures["shown"])
    low, high = told["utility gained"][1]
    assert 0 < low <= told["utility gained"][0] <= high
    printed = table([eager, sure])
    assert "| sure | 24 | 8 | 8 | 100.0 %" in printed.replace(
        f"| {sure.figures['pauses']} |", "| 24 |"
    )
    assert "sure against eager: accepted 1.00" in printed


def test_a_walk_can_be_learned_from(chances) -> None:
    run = run_gate("sure", gate(0.5), chances)
    lives = list(feedback(run.steps, gate(0.5)))
    assert [label(life) for life in lives] == [True] * 8
    assert from_json(json.loads(json.dumps(to_json(lives[0])))).suggested.group == "p 1"
    assert sum(len(c.offers) for c in chances) == len(
        list(feedback(everything(chances), gate(0.5)))
    )


def test_intervals_follow_the_clusters() -> None:
    same = clustered({"a": 3.0, "b": 3.0}, lambda drawn: {"mean": sum(drawn) / len(drawn)}, 20)
    assert same == {"mean": (3.0, 3.0)}
    wide = clustered(
        {str(n): float(n) for n in range(9)}, lambda d: {"mean": sum(d) / 9, "none": None}
    )
    low, high = wide["mean"]
    assert 1.5 < low < 4.0 < high < 6.5
    assert "none" not in wide
