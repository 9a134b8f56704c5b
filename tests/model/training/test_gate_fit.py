"""Fitting and tuning the gate's models, and the threshold of most utility."""

from __future__ import annotations

import random

import pytest

from model.evaluation.gate_metrics import auroc, expected_calibration_error
from model.gate import Gate, Logistic
from model.training.gate_fit import (
    Sample,
    calibrated,
    fit_likelihood,
    logits,
    straighten,
    tune,
)
from model.training.threshold import choose, interval, utility


def drawn(count: int, seed: int = 0) -> list[Sample]:
    """`gain` tells, `noise` does not; `odd` is there only in some."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        gain, noise = rng.gauss(0, 1), rng.gauss(0, 1)
        odd = {"odd": rng.gauss(0, 1)} if number % 3 == 0 else {}
        accepted = gain + 0.5 * rng.gauss(0, 1) > 0.5
        found.append(Sample({"gain": gain, "noise": noise, **odd}, accepted, f"g{number % 12}"))
    return found


NAMES = ("gain", "noise", "odd")


def probabilities(model: Logistic, samples: list[Sample]) -> list[float]:
    return [model(sample.features) for sample in samples]


def test_likelihood_finds_what_separates() -> None:
    model = fit_likelihood(drawn(400), NAMES)
    fresh = drawn(400, seed=1)
    labels = [sample.accepted for sample in fresh]
    assert (auroc(probabilities(model, fresh), labels) or 0) > 0.9
    assert abs(model.weights["noise"][0]) < 0.3 * model.weights["gain"][0]
    assert model.log_odds(fresh[1].features) == pytest.approx(
        float(logits(model, fresh[1:2])[0]), abs=1e-6
    )


def test_kto_learns_too_and_stays_with_its_reference_without_evidence() -> None:
    start = Logistic(-1.0, {"gain": (0.0, 0.0, 1.0), "noise": (0.5, 0.0, 1.0)})
    fresh = drawn(400, seed=1)
    labels = [sample.accepted for sample in fresh]
    model = tune(drawn(400), start, names=["odd"], penalty=0.001)
    assert (auroc(probabilities(model, fresh), labels) or 0) > 0.85
    assert model.weights["noise"][0] < 0.4
    assert set(model.weights) == {"gain", "noise", "odd"}
    held = tune(drawn(400), start, penalty=1e3)
    assert held.weights["gain"][0] == pytest.approx(0.0, abs=0.02)
    assert tune([], start).weights == start.weights


def test_straightened_probabilities_are_calibrated() -> None:
    samples = drawn(900)

    def overconfident(part):
        model = fit_likelihood(part, NAMES)
        return Logistic(
            4 * model.bias, {k: (4 * w, m, s) for k, (w, m, s) in model.weights.items()}
        )

    fresh = drawn(900, seed=2)
    labels = [sample.accepted for sample in fresh]
    sure = expected_calibration_error(probabilities(overconfident(samples), fresh), labels)
    straight = expected_calibration_error(
        probabilities(calibrated(overconfident, samples), fresh), labels
    )
    assert sure is not None
    assert straight is not None
    assert straight < 0.05 < sure
    slope, _ = straighten(-logits(overconfident(samples), samples), _accepted(samples))
    assert slope == 0.0  # worse than chance: every one gets the mean


def _accepted(samples):
    from model.training.gate_fit import labels

    return labels(samples)


def test_the_threshold_of_most_utility() -> None:
    pairs = [(0.9, True), (0.4, True), (0.35, False), (0.3, False), (0.2, False), (0.1, False)]
    assert utility(pairs, 0.375, 0.25) == 1.5
    assert choose(pairs, 0.25) == pytest.approx(0.375)
    assert choose([], 0.25) == 0.25
    assert choose([(0.05, True)] * 50, 0.25) == 0.25  # out of reach: few outcomes move it little
    assert choose([(0.2, True)] * 50, 0.25) == pytest.approx(0.1625)
    low, high = interval(pairs * 10, 0.25)
    assert 0.125 <= low <= 0.375 <= high <= 0.5


def test_a_first_look_is_a_feature_of_its_source() -> None:
    first = Logistic(0.0, {"a": (1.0, 0.0, 1.0)})
    second = Logistic(0.0, {"first odds": (2.0, 0.0, 1.0)})
    gate = Gate({"draft first look": first, "draft": second}, {})
    assert gate.probability("draft", {"a": 1.0}) == pytest.approx(
        second({"first odds": first.log_odds({"a": 1.0})})
    )
    assert gate.full("completion", {"a": 1.0}) == {"a": 1.0}
