from __future__ import annotations

import pytest

from model.evaluation import gate_metrics as gate
from model.evaluation.gate_metrics import Outcome


def test_show_rates_by_hand() -> None:
    outcomes = [
        Outcome(wanted=True, shown=True, accepted=True),
        Outcome(wanted=True, shown=True, accepted=False),
        Outcome(wanted=True, shown=False, accepted=False),
        Outcome(wanted=True, shown=True, accepted=True),
        Outcome(wanted=False, shown=False, accepted=False),
        Outcome(wanted=False, shown=True, accepted=False),
        Outcome(wanted=False, shown=False, accepted=False),
        Outcome(wanted=False, shown=False, accepted=False),
    ]
    rates = gate.show_rates(outcomes)
    assert (rates.show, rates.accept, rates.recall) == (0.5, 0.5, 0.5)
    assert (rates.quiet, rates.unwanted, rates.f05) == (0.75, 0.25, 0.5)


def test_show_rates_of_nothing() -> None:
    rates = gate.show_rates([Outcome(wanted=True, shown=False, accepted=False)])
    assert (rates.show, rates.accept, rates.recall, rates.quiet) == (0, None, 0, None)
    assert rates.f05 is None


def test_auroc() -> None:
    assert gate.auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True]) == 0.75
    assert gate.auroc([0.5, 0.5], [True, False]) == 0.5
    assert gate.auroc([0.9, 0.1], [True, False]) == 1.0
    assert gate.auroc([0.9, 0.1], [True, True]) is None


def test_average_precision() -> None:
    # Ranked: +, -, +: precision 1 at recall 1/2, 2/3 at recall 1.
    assert gate.average_precision([0.9, 0.8, 0.7], [True, False, True]) == pytest.approx(5 / 6)
    assert gate.average_precision([0.5, 0.5], [True, False]) == 0.5
    assert gate.average_precision([0.5], [False]) is None


def test_accepted_at_precision() -> None:
    scores = [0.9, 0.8, 0.7, 0.6, 0.5]
    labels = [True, False, True, True, False]
    assert gate.accepted_at_precision(scores, labels, 0.75) == (3, 0.6)
    assert gate.accepted_at_precision(scores, labels, 0.99) == (1, 0.9)
    assert gate.accepted_at_precision([0.5], [False], 0.5) == (0, None)


def test_expected_calibration_error() -> None:
    # Bin 0.9-1.0: confidence 0.95, accuracy 0.5; bin 0.1-0.2: confidence 0.15, accuracy 0.
    scores, labels = [0.9, 1.0, 0.15, 0.15], [True, False, False, False]
    assert gate.expected_calibration_error(scores, labels) == pytest.approx(0.5 * 0.45 + 0.5 * 0.15)
    assert gate.expected_calibration_error([], []) is None


def test_percentile_interpolates() -> None:
    assert gate.percentile([4, 1, 3, 2], 50) == 2.5
    assert gate.percentile([1, 2, 3, 4, 5], 90) == pytest.approx(4.6)
    assert gate.percentile([7], 99) == 7
    assert gate.percentile([], 50) is None
