"""The objective of Kahneman-Tversky optimisation (Ethayarajh et al. 2024, arXiv 2402.01306).

Responsible for the loss of answers that were only called good or bad, from how much likelier the tuned policy makes
each than the reference does. At one size it tunes the gate, whose two answers are to show and to stay silent; the same
function serves a model of texts. Knows nothing of what the policy is, or of features.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

LOSS_AVERSION = 4 / 3
"""Greatest ratio of the weight of all good answers to that of all bad ones that the paper recommends, and the least
is 1."""


@dataclass(frozen=True, slots=True)
class Weights:
    """lambda_D of desirable and lambda_U of undesirable answers."""

    desirable: float = 1.0
    undesirable: float = 1.0


def balanced(desirable: int, undesirable: int, ratio: float = 1.0) -> Weights:
    """Weights with lambda_D * `desirable` : lambda_U * `undesirable` = `ratio`, the smaller weight being 1.

    The paper recommends ratios from 1 to 4/3; ValueError for others. With one sort of answers only both weights are 1.
    """
    if not 1.0 <= ratio <= LOSS_AVERSION + 1e-9:
        raise ValueError(f"the ratio must be from 1 to 4/3, not {ratio}")
    if not desirable or not undesirable:
        return Weights()
    good = ratio * undesirable / desirable
    return Weights(good, 1.0) if good >= 1 else Weights(1.0, 1 / good)


def kto_losses(
    log_ratios: Tensor,
    desirable: Tensor,
    reference_point: Tensor | float,
    *,
    beta: float,
    weights: Weights = Weights(),
) -> Tensor:
    """lambda_y - v of each answer, `[n]`.

    `log_ratios [n]` are r = log pi(y|x) - log pi_ref(y|x), `desirable [n]` is bool, `reference_point` is z0, at least 0
    and without gradient. The value v is lambda_D * sigmoid(beta * (r - z0)) of a desirable answer and
    lambda_U * sigmoid(beta * (z0 - r)) of an undesirable one.
    """
    point = torch.as_tensor(reference_point, dtype=log_ratios.dtype).detach().clamp(min=0)
    sign = torch.where(desirable, 1.0, -1.0).to(log_ratios)
    scale = torch.where(desirable, weights.desirable, weights.undesirable).to(log_ratios)
    return scale * (1 - torch.sigmoid(beta * sign * (log_ratios - point)))


def mismatched_point(policy: Tensor, reference: Tensor) -> Tensor:
    """z0 for texts: the mean of log pi(y'|x) - log pi_ref(y'|x) over answers y' of *other* questions, at least 0."""
    return (policy - reference).mean().detach().clamp(min=0)


def show_ratios(logits: Tensor, reference: Tensor) -> Tensor:
    """r of "show" for a gate with these logits, `[n]`."""
    return logsigmoid(logits) - logsigmoid(reference)


def gate_point(logits: Tensor, reference: Tensor) -> Tensor:
    """z0 of a gate: the exact mean divergence KL(pi || pi_ref) over its two answers."""
    shown, silent = torch.sigmoid(logits), torch.sigmoid(-logits)
    divergence = shown * show_ratios(logits, reference) + silent * show_ratios(-logits, -reference)
    return divergence.mean().detach().clamp(min=0)
