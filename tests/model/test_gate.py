from __future__ import annotations

import math

import pytest

from model.bundle import EMBEDDED
from model.config import ModelError
from model.gate import Gate, Logistic, squash


def test_a_logistic_of_standardised_features() -> None:
    model = Logistic(0.5, {"gain": (2.0, 1.0, 4.0)})
    z = 0.5 + 2.0 * 3 * math.tanh(0.5 / 3)  # (3 - 1) / 4 = 0.5
    assert model({"gain": 3.0}) == pytest.approx(1 / (1 + math.exp(-z)))
    assert model({}) == pytest.approx(1 / (1 + math.exp(-0.5)))  # absent counts as the mean
    assert 0 < model({"gain": -1e9}) < model({"gain": 1e9}) < 1


def test_no_single_feature_decides_without_bound() -> None:
    assert squash(0.1) == pytest.approx(0.1, abs=1e-3)
    assert squash(1e6) == 3


def test_the_embedded_gate_is_ordered() -> None:
    gate = Gate.load(EMBEDDED)
    for mode in ("fim", "next_edit"):
        values = [gate.threshold(mode, name) for name in ("eager", "balanced", "quiet")]
        assert values == sorted(values)
        assert values[0] < values[2]
    good = {
        "log_odds": 25.0,
        "share": 1.0,
        "mean": -0.02,
        "least": -0.1,
        "lines": 1.0,
        "tokens": 5.0,
    }
    bad = {
        "log_odds": -10.0,
        "share": 0.0,
        "mean": -2.0,
        "least": -6.0,
        "lines": 1.0,
        "tokens": 5.0,
    }
    assert gate.probability("completion", good) > 2 * gate.probability("completion", bad)


def test_a_malformed_gate_is_named(tmp_path) -> None:
    (tmp_path / "gate.json").write_text('{"models": {}}')
    with pytest.raises(ModelError, match=r"gate\.json is not a usable gate"):
        Gate.load(tmp_path)
    assert Gate.untrained().probability("draft", {}) == 0.5
