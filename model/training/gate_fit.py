"""Fit the gate's models: from a suggestion's features to the probability that it is accepted.

Responsible for maximum likelihood, for tuning by the objective of `model.kto` with the model before as the reference,
and for making either calibrated. Both give the same small form, `model.gate.Logistic`. Takes seconds on a CPU. Knows
nothing of files or of where outcomes come from.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from model.gate import Logistic
from model.kto import balanced, gate_point, kto_losses, show_ratios

FOLDS = 5
PENALTY = 0.003
BETA = 1.0
RATIO = 1.0
STEPS = 300
RATE = 0.05
DIGITS = 5
EDGE = 8.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One suggestion that was shown, or could have been, and whether it was accepted. `group` is held out whole."""

    features: Mapping[str, float]
    accepted: bool
    group: str


Fit = Callable[[Sequence[Sample]], Logistic]


def scales(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each feature, absent ones left out of both."""
    found = {}
    for name in names:
        values = torch.tensor([s.features[name] for s in samples if name in s.features])
        spread = float(values.std()) if len(values) > 1 else 0.0
        found[name] = (float(values.mean()) if len(values) else 0.0, max(spread, 0.05))
    return found


def matrix(samples: Sequence[Sample], form: Mapping[str, tuple[float, float]]) -> Tensor:
    """Standardised and bounded features `[n, names]`, as `Logistic` has them; absent ones are 0."""
    rows = [[s.features.get(name, mean) for name, (mean, _) in form.items()] for s in samples]
    x = torch.tensor(rows, dtype=torch.float64).reshape(len(samples), len(form))
    mean = torch.tensor([mean for mean, _ in form.values()], dtype=torch.float64)
    scale = torch.tensor([scale for _, scale in form.values()], dtype=torch.float64)
    return 3 * torch.tanh((x - mean) / scale / 3)


def labels(samples: Sequence[Sample]) -> Tensor:
    return torch.tensor([float(s.accepted) for s in samples], dtype=torch.float64)


def form_of(model: Logistic) -> dict[str, tuple[float, float]]:
    return {name: (mean, scale) for name, (_, mean, scale) in model.weights.items()}


def logits(model: Logistic, samples: Sequence[Sample]) -> Tensor:
    """Log-odds `[n]`."""
    w = torch.tensor([weight for weight, _, _ in model.weights.values()], dtype=torch.float64)
    return matrix(samples, form_of(model)) @ w + model.bias


def logistic(
    weights: Tensor, bias: Tensor | float, form: Mapping[str, tuple[float, float]]
) -> Logistic:
    rounded = [round(float(w), DIGITS) for w in weights]
    return Logistic(
        round(float(bias), DIGITS),
        {
            name: (w, round(mean, DIGITS), round(scale, DIGITS))
            for w, (name, (mean, scale)) in zip(rounded, form.items(), strict=True)
        },
    )


def fit_likelihood(
    samples: Sequence[Sample], names: Sequence[str], penalty: float = PENALTY
) -> Logistic:
    """Penalised maximum likelihood."""
    form = scales(samples, names)
    x, y = matrix(samples, form), labels(samples)
    w = torch.zeros(x.shape[1], dtype=torch.float64, requires_grad=True)
    b = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w, b], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = binary_cross_entropy_with_logits(x @ w + b, y) + penalty * (w * w).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return logistic(w.detach(), b.detach(), form)


def tune(
    samples: Sequence[Sample],
    reference: Logistic,
    *,
    names: Sequence[str] = (),
    beta: float = BETA,
    ratio: float = RATIO,
    penalty: float = PENALTY,
    steps: int = STEPS,
) -> Logistic:
    """The reference, tuned by KTO; `names` are features that it may weigh beyond those of the reference.

    The penalty draws the weights to those of the reference, so few samples change little.
    """
    form = form_of(reference)
    form |= scales(samples, [name for name in names if name not in form])
    x, good = matrix(samples, form), labels(samples) > 0
    start = [reference.weights[n][0] if n in reference.weights else 0.0 for n in form]
    origin = torch.tensor(start, dtype=torch.float64)
    before = x @ origin + reference.bias
    weights = balanced(int(good.sum()), int((~good).sum()), ratio)
    w = origin.clone().requires_grad_()
    b = torch.tensor([reference.bias], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([w, b], lr=RATE)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - step / steps)
        optimizer.zero_grad()
        now = x @ w + b
        losses = kto_losses(
            show_ratios(now, before), good, gate_point(now, before), beta=beta, weights=weights
        )
        loss = losses.mean() + penalty * ((w - origin) ** 2).sum()
        loss.backward()
        optimizer.step()
    return logistic(w.detach(), b.detach(), form)


def fold_of(group: str, folds: int = FOLDS) -> int:
    return zlib.crc32(f"fold {group}".encode()) % folds


def held_out_logits(fit: Fit, samples: Sequence[Sample], folds: int = FOLDS) -> Tensor:
    """Log-odds `[n]` of each sample by a model that was fitted without its fold."""
    found = torch.zeros(len(samples), dtype=torch.float64)
    which = torch.tensor([fold_of(s.group, folds) for s in samples])
    for fold in range(folds):
        inside = [s for s, f in zip(samples, which.tolist(), strict=True) if f != fold]
        outside = [s for s, f in zip(samples, which.tolist(), strict=True) if f == fold]
        if outside and inside:
            found[which == fold] = logits(fit(inside), outside)
    return found


def straighten(scores: Tensor, accepted: Tensor) -> tuple[float, float]:
    """Slope and offset that make log-odds calibrated (Platt scaling); the slope is not negative."""
    z = scores.clamp(-EDGE, EDGE)
    a = torch.ones(1, dtype=torch.float64, requires_grad=True)
    c = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([a, c], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = binary_cross_entropy_with_logits(a * z + c, accepted) + 1e-3 * (a - 1) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    return max(0.0, float(a.detach())), float(c.detach())


def calibrated(fit: Fit, samples: Sequence[Sample], folds: int = FOLDS) -> Logistic:
    """What `fit` makes of all samples, its log-odds straightened by what it makes of samples that it has not seen."""
    return calibrated_and_unseen(fit, samples, folds)[0]


def calibrated_and_unseen(
    fit: Fit, samples: Sequence[Sample], folds: int = FOLDS
) -> tuple[Logistic, list[float]]:
    """The calibrated model, and each sample's probability by models that were fitted without its fold."""
    scores = held_out_logits(fit, samples, folds)
    slope, offset = straighten(scores, labels(samples))
    model = fit(samples)
    weights = {name: (w * slope, mean, scale) for name, (w, mean, scale) in model.weights.items()}
    unseen: list[float] = torch.sigmoid(scores * slope + offset).tolist()
    return Logistic(model.bias * slope + offset, weights), unseen
