"""The scripted predictor does what its script says."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from diffing.edits import Edit
from model.protocol import Cancelled, Mode, Predictor, Request, Stop
from model.scripted import ScriptedPredictor, ScriptError


def ask(
    rules: list[dict[str, Any]], text: str = "x = |foo", mode: Mode = "fim"
) -> tuple[Edit, ...]:
    before, after = text.split("|")
    request = Request(mode, "src/a.py", before + after, len(before), history=("+new",))
    return ScriptedPredictor(rules).predict(request, Stop()).edits


def test_it_is_a_predictor() -> None:
    assert isinstance(ScriptedPredictor([]), Predictor)
    assert ask([]) == ()


def test_the_first_rule_that_matches_wins() -> None:
    rules = [
        {"mode": "next_edit", "insert": "wrong mode"},
        {"when": {"path": "*.js"}, "insert": "wrong path"},
        {"when": {"contains": "foo"}, "insert": "only after the cursor"},
        {"when": {"history": "absent"}, "insert": "wrong history"},
        {"when": {"regex": "= $", "text": "foo", "history": "new", "path": "src/*"}, "insert": "1"},
        {"insert": "too late"},
    ]
    assert ask(rules) == (Edit(4, 4, "1"),)


def test_a_dollar_is_the_cursor() -> None:
    assert ask([{"when": {"regex": "a$"}, "insert": "b"}], "a\n|") == ()
    assert ask([{"when": {"regex": r"\$"}, "insert": "b"}], "$|") == (Edit(1, 1, "b"),)


def test_replacements_are_the_nearest_or_all() -> None:
    near = {"replace": {"old": "foo", "new": "bar"}}
    assert ask([near], "foo food\n\n\n|foo") == (Edit(11, 14, "bar"),)
    everywhere = {"replace": {"old": "foo", "new": "bar", "all": True}}
    assert ask([everywhere], "foo food\n|foo") == (Edit(0, 3, "bar"), Edit(9, 12, "bar"))
    assert ask([near], "nothing|") == ()


def test_edits_by_offset_and_by_range() -> None:
    place = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 1}}
    rule = {"edits": [{"start": 0, "end": 1, "new_text": "A"}, {"range": place, "new_text": "B"}]}
    assert ask([rule], "a\nb|") == (Edit(0, 1, "A"), Edit(2, 3, "B"))


def test_rules_that_are_used_up_and_rules_that_fail() -> None:
    predictor = ScriptedPredictor([{"raise": "broken", "times": 1}, {"insert": "well"}])
    request = Request("fim", "a", "", 0)
    with pytest.raises(RuntimeError, match="broken"):
        predictor.predict(request, Stop())
    assert predictor.predict(request, Stop()).edits == (Edit(0, 0, "well"),)


def test_a_slow_rule_stops_when_it_is_told_to() -> None:
    predictor = ScriptedPredictor([{"insert": "x", "delay_ms": 10_000}])
    stop = Stop()
    threading.Timer(0.05, stop.cancel).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        predictor.predict(Request("fim", "a", "", 0), stop)
    assert time.monotonic() - started < 5
    assert predictor.predict(Request("fim", "a", "", 0), Stop(0.02)).edits == ()


def test_loading(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"name": "named", "rules": []}))
    assert ScriptedPredictor.load(path).name == "named"
    path.write_text('{"load_error": "cut off"}')
    with pytest.raises(ScriptError, match="cut off"):
        ScriptedPredictor.load(path)
    for bad in ("", "[3]", '{"rules": {}}'):
        path.write_text(bad)
        with pytest.raises(ScriptError, match=r"script\.json"):
            ScriptedPredictor.load(path)
    with pytest.raises(ScriptError, match=r"missing\.json"):
        ScriptedPredictor.load(tmp_path / "missing.json")
