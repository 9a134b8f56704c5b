"""`redraft tune`: from feedback to a gate of one's own."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from lsp_server.cli import run
from model.bundle import EMBEDDED
from model.config import ModelError
from model.feedback import Event, Life, Store, Suggested, to_json
from model.gate import FILE, Gate, Logistic, fingerprint, load_for_user, tuned_path
from model.remote.predictor import gate_for
from model.training.labels import label
from model.training.threshold import THETAS, choose, choose_all
from model.training.tune import TuneError, judgements, outcomes, read, tuned, weighed
from model.training.tune_picture import reliability

VALUES = {"eager": 0.15, "balanced": 0.25, "quiet": 0.45}
GATE = Gate(
    {"draft": Logistic(0.0, {"gain": (1.0, 0.0, 1.0), "grown lines": (0.0, 0.0, 0.5)})},
    {"fim": VALUES, "next_edit": VALUES},
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer steps than a user's tuning takes."""
    monkeypatch.setattr("model.training.tune.STEPS", 60)
    monkeypatch.setattr("model.training.tune.PENALTIES", (0.1, 0.01))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    config = json.loads((EMBEDDED / "config.json").read_text())
    config["redraft"]["name"] = "tiny/one"
    (folder / "config.json").write_text(json.dumps(config))
    GATE.write(folder / FILE)
    return folder


def life(number: int, state: str, features: dict[str, float], *more: Event, **event) -> Life:
    name = f"s{number}"
    suggested = Suggested(name, float(number), "next_edit", "draft", 0.5, features)
    return Life(suggested, (Event(name, state, event.pop("after", 1.0), **event), *more))


def taste(count: int, *, multi_line: bool) -> list[Life]:
    """A user who takes edits of several lines only, or none of them."""
    rng = random.Random(7)
    found = []
    for number in range(count):
        grown = rng.choice([0.0, 0.7])
        features = {"gain": rng.gauss(0.5, 1), "grown lines": grown}
        wanted = (grown > 0) == multi_line
        found.append(life(number, "accepted" if wanted else "rejected", features))
    return found


def test_labels() -> None:
    settled = Event("s0", "settled", 12.0, 0.2)
    assert label(life(0, "accepted", {})) is True
    assert label(life(0, "typed", {})) is True
    assert label(life(0, "ignored", {}, value=4.0)) is True  # partly accepted before
    assert label(life(0, "accepted", {}, settled)) is False
    assert label(life(0, "rejected", {})) is False
    assert label(life(0, "ignored", {}, why="overtyped")) is False
    assert label(life(0, "ignored", {}, why="overtyped", after=0.1)) is None
    assert label(life(0, "ignored", {})) is None  # it merely went away
    assert label(life(0, "replaced", {})) is None
    assert label(life(0, "missed", {})) is True
    assert label(life(0, "spared", {})) is False
    assert label(Life(Suggested("s", 0.0, "fim", "draft", 0.5), ())) is None


@pytest.mark.parametrize("multi_line", [True, False])
def test_the_opposite_taste_is_learned_in_a_hundred_events(multi_line: bool) -> None:
    gate = tuned(GATE, judgements(taste(100, multi_line=multi_line)))
    lines = {
        grown: gate.probability("draft", {"gain": 0.5, "grown lines": grown})
        for grown in (0.0, 0.7)
    }
    before = GATE.probability("draft", {"gain": 0.5, "grown lines": 0.7})
    liked, disliked = (lines[0.7], lines[0.0]) if multi_line else (lines[0.0], lines[0.7])
    assert liked > before > disliked
    least = gate.threshold("next_edit", "balanced")
    assert disliked < least <= liked


def too_quiet(held_back: bool) -> list[Life]:
    """A gate shows from a gain of 1 on, although its user wants four of five suggestions with a gain above -1."""
    rng = random.Random(3)
    found = []
    for number in range(400):
        gain = rng.uniform(-3, 3)
        wanted = rng.random() < (0.8 if gain > -1 else 0.05)
        if gain >= 1:
            found.append(life(number, "accepted" if wanted else "rejected", {"gain": gain}))
        elif held_back:
            found.append(life(number, "missed" if wanted else "spared", {"gain": gain}))
    return found


def test_a_gate_that_is_too_quiet_learns_it_from_what_it_held_back() -> None:
    quiet = Gate(GATE.models, {"next_edit": dict.fromkeys(VALUES, 0.73)})
    assert not shows(quiet, 0.0)
    louder = tuned(quiet, judgements(too_quiet(held_back=True)))
    assert shows(louder, 0.0)
    assert not shows(louder, -2.5)


def shows(gate: Gate, gain: float) -> bool:
    sure = gate.probability("draft", {"gain": gain})
    return sure >= gate.threshold("next_edit", "balanced")


def test_what_was_held_back_counts_half_and_is_no_judgement() -> None:
    judged = judgements(too_quiet(held_back=True))
    shown = [one for one in judged if not one.held_back]
    assert len(shown) == len(judgements(too_quiet(held_back=False)))
    assert len(weighed(judged)) == len(judged) + len(shown)
    assert weighed(shown) == shown
    few = [life(n, "spared", {"gain": 0.0}) for n in range(100)] + taste(20, multi_line=True)
    with pytest.raises(TuneError, match="20 suggestions were judged"):
        judgements(few)


def write(path: Path, lives: list[Life]) -> Path:
    path.write_text("".join(json.dumps(to_json(one)) + "\n" for one in lives))
    return path


def test_tuning_replaces_and_rolls_back(model, home, tmp_path, capsys) -> None:
    lines = write(tmp_path / "f.jsonl", taste(100, multi_line=True))
    own = tuned_path(home, "tiny/one")
    command = ["tune", str(lines), "--model", str(model)]
    assert run([*command, "--dry-run"]) == 0
    assert not own.exists()
    assert run(command) == 0
    printed = capsys.readouterr().out
    assert "| after |" in printed
    assert "100 suggestions" not in printed
    assert "70 suggestions to learn from, the newest 30 to tell" in printed
    first = load_for_user(model, "tiny/one", home)
    assert first.about["base"] == fingerprint(model / FILE)
    assert first.models != GATE.models
    other = write(tmp_path / "g.jsonl", taste(100, multi_line=False))
    assert run(["tune", str(other), "--model", str(model)]) == 0
    assert load_for_user(model, "tiny/one", home).models != first.models
    assert run(["tune", "--rollback", "--model", str(model)]) == 0
    assert load_for_user(model, "tiny/one", home).models == first.models
    assert run(["tune", "--rollback", "--model", str(model)]) == 0
    assert load_for_user(model, "tiny/one", home) == GATE
    assert run(["tune", "--rollback", "--model", str(model)]) == 1


def test_a_gate_that_is_not_better_is_refused(model, home, tmp_path, capsys) -> None:
    turned = taste(70, multi_line=True)
    turned += [
        life(
            70 + n,
            "rejected" if one.events[0].state == "accepted" else "accepted",
            dict(one.suggested.features),
        )
        for n, one in enumerate(taste(30, multi_line=True))
    ]
    assert run(["tune", str(write(tmp_path / "f", turned)), "--model", str(model)]) == 1
    assert "is not better on the newest 30 suggestions" in capsys.readouterr().err
    assert not tuned_path(home, "tiny/one").exists()


def test_too_little_is_said_so(model, home, tmp_path, capsys) -> None:
    assert run(["tune", "--model", str(model)]) == 1
    assert "no feedback yet" in capsys.readouterr().err
    few = write(tmp_path / "f", taste(20, multi_line=True))
    assert run(["tune", str(few), "--model", str(model)]) == 1
    assert "20 suggestions were judged" in capsys.readouterr().err
    few.write_text('{"id": 1}\n')
    assert run(["tune", str(few), "--model", str(model)]) == 1
    assert "not a line of feedback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe\x00\n", "line 1: not UTF-8 text"),
        (b"\n{}x\n", "line 2: Extra data"),
        (b"[]\n", "line 1: not a line of feedback"),
    ],
)
def test_a_file_that_is_no_feedback_is_named(model, home, tmp_path, capsys, data, said) -> None:
    path = tmp_path / "bin.jsonl"
    path.write_bytes(data)
    assert run(["tune", str(path), "--model", str(model)]) == 1
    assert f"redraft tune: {path}, {said}" in capsys.readouterr().err


def test_quiet_never_shows_more_than_balanced() -> None:
    """Where all that was shown at 0.25 was wanted, 0.25 is enough for balanced, and quiet alone would go below it."""
    shown = [(0.25, True)] * 40
    assert choose(shown, THETAS["quiet"]) == 0.2375
    assert choose_all(shown) == {"eager": 0.15, "balanced": 0.25, "quiet": 0.25}


def test_what_was_only_shown_does_not_make_a_tuned_gate_loud() -> None:
    lives = [life(n, "accepted" if n % 5 else "rejected", {"gain": -1.1}) for n in range(60)]
    for values in tuned(GATE, judgements(lives)).thresholds.values():
        assert values["eager"] <= values["balanced"] <= values["quiet"]


def test_the_store_is_read(home) -> None:
    with Store(home / "feedback.sqlite3") as store:
        for one in taste(50, multi_line=True):
            store.write([one.suggested, *one.events])
    assert len(judgements(read(None, home))) == 50


def test_a_gate_tuned_for_another_one_is_not_used(model, home) -> None:
    Gate(GATE.models, GATE.thresholds, {"base": "other"}).write(tuned_path(home, "tiny/one"))
    assert load_for_user(model, "tiny/one", home) == GATE
    tuned_path(home, "tiny/one").write_text("{")
    assert load_for_user(model, "tiny/one", home) == GATE
    assert load_for_user(model, "tiny/one", None) == GATE
    with pytest.raises(ModelError):
        load_for_user(model / "nowhere", "tiny/one", None)


def test_the_picture(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    from model.training.tune_picture import draw

    judged = judgements(taste(60, multi_line=True))
    pairs = outcomes(GATE, judged)
    points = reliability(pairs)
    assert sum(count for _, _, count in points) == 60
    assert [p for p, _, _ in points] == sorted(p for p, _, _ in points)
    draw(tmp_path / "p.svg", {"before": pairs})
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


def of_a_service(number: int, state: str, unknown: float, model: str = "mercury-edit-2") -> Life:
    name = f"r{number}"
    features = {"unknown words": unknown, "inserted": 2.0}
    suggested = Suggested(name, float(number), "fim", "remote", 0.5, features, model=model)
    return Life(suggested, (Event(name, state, 1.0),))


def a_users_word_on_services(count: int = 100) -> list[Life]:
    """He takes what is made of words that stand in the file already."""
    rng = random.Random(3)
    chosen = [rng.choice([0.0, 1.0]) for _ in range(count)]
    return [
        of_a_service(n, "rejected" if unknown else "accepted", unknown)
        for n, unknown in enumerate(chosen)
    ]


def test_a_services_gate_shows_all_until_it_is_tuned(tmp_path: Path) -> None:
    feedback, home = tmp_path / "feedback.jsonl", tmp_path / "home"
    other = [of_a_service(1000 + n, "accepted", 1.0, model="another") for n in range(50)]
    lives = [*a_users_word_on_services(), *other, *taste(50, multi_line=True)]
    feedback.write_text("".join(json.dumps(to_json(one)) + "\n" for one in lives))
    for setting in VALUES:
        assert gate_for("mercury-edit-2", home).threshold("fim", setting) == 0
    arguments = ["tune", str(feedback), "--remote", "mercury-edit-2", "--home", str(home)]
    assert run(arguments) == 0
    gate = gate_for("mercury-edit-2", home)
    liked, disliked = (
        gate.probability("remote", {"unknown words": unknown, "inserted": 2.0})
        for unknown in (0.0, 1.0)
    )
    assert disliked < gate.threshold("fim", "balanced") < liked
    assert gate.about["events"] == 100
    assert gate_for("another", home).threshold("fim", "balanced") == 0


def test_a_local_gate_learns_nothing_from_what_services_said(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feedback = tmp_path / "feedback.jsonl"
    lives = a_users_word_on_services()
    feedback.write_text("".join(json.dumps(to_json(one)) + "\n" for one in lives))
    assert run(["tune", str(feedback), "--model", str(model), "--home", str(tmp_path)]) == 1
    assert "0 suggestions were judged" in capsys.readouterr().err
