"""The KTO objective, against numbers worked out by hand from the paper's formula."""

from __future__ import annotations

import math

import pytest
import torch

from model.kto import (
    Weights,
    balanced,
    gate_point,
    kto_losses,
    mismatched_point,
    show_ratios,
)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_losses_are_those_of_the_formula() -> None:
    ratios = torch.tensor([0.5, -1.0, 0.5, -1.0], dtype=torch.float64)
    good = torch.tensor([True, True, False, False])
    losses = kto_losses(ratios, good, 0.2, beta=2.0, weights=Weights(1.2, 0.9))
    # lambda_D (1 - sigmoid(beta (r - z0))) and lambda_U (1 - sigmoid(beta (z0 - r)))
    expected = [1.2 * (1 - 0.6456563062), 1.2 * (1 - 0.0831726965)]
    expected += [0.9 * (1 - 0.3543436938), 0.9 * (1 - 0.9168273035)]
    assert losses.tolist() == pytest.approx(expected)
    assert sigmoid(0.6) == pytest.approx(0.6456563062)


def test_it_is_what_trl_computes_of_the_two_sorts_apart() -> None:
    torch.manual_seed(0)
    policy, reference = torch.randn(2, 9, dtype=torch.float64)
    good = torch.tensor([True, False, True, True, False, False, True, False, True])
    other_policy, other_reference = torch.randn(2, 6, dtype=torch.float64)
    kl = (other_policy - other_reference).mean().clamp(min=0)
    chosen, rejected = (policy - reference)[good], (policy - reference)[~good]
    apart = torch.cat(
        [1.1 * (1 - torch.sigmoid(0.3 * (chosen - kl))), 1 - torch.sigmoid(0.3 * (kl - rejected))]
    )
    point = mismatched_point(other_policy, other_reference)
    ours = kto_losses(policy - reference, good, point, beta=0.3, weights=Weights(1.1, 1.0))
    assert torch.allclose(torch.cat([ours[good], ours[~good]]), apart)


def test_the_reference_point_is_never_negative_and_has_no_gradient() -> None:
    assert mismatched_point(torch.tensor([-2.0]), torch.tensor([1.0])) == 0
    logits = torch.tensor([2.0, -1.0], dtype=torch.float64, requires_grad=True)
    before = torch.zeros(2, dtype=torch.float64)
    point = gate_point(logits, before)
    by_hand = []
    for z in (2.0, -1.0):
        p = sigmoid(z)
        by_hand.append(p * math.log(p / 0.5) + (1 - p) * math.log((1 - p) / 0.5))
    assert float(point) == pytest.approx(sum(by_hand) / 2)
    assert not point.requires_grad
    assert gate_point(before, before) == 0


def test_it_draws_towards_the_good_and_away_from_the_bad() -> None:
    logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    before = torch.zeros(2, dtype=torch.float64)
    good = torch.tensor([True, False])
    kto_losses(show_ratios(logits, before), good, 0.0, beta=1.0).sum().backward()
    assert logits.grad is not None
    # d/dz of 1 - sigmoid(log sigmoid(z) - log(1/2)) at 0 is -1/4 * 1/2
    assert logits.grad.tolist() == pytest.approx([-0.125, 0.125])


def test_weights_balance_the_sorts() -> None:
    assert balanced(10, 30) == Weights(3.0, 1.0)
    assert balanced(10, 30, 4 / 3) == Weights(4.0, 1.0)
    assert balanced(30, 10) == Weights(1.0, pytest.approx(3.0))
    assert balanced(0, 7) == Weights(1.0, 1.0)
    with pytest.raises(ValueError, match="from 1 to 4/3"):
        balanced(1, 1, 1.5)
