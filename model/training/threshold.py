"""The least probability to show: what is worth most to the user.

Responsible for the threshold of most utility over suggestions with known outcomes, sum of s * (a - theta) for shown s
and accepted a, and for how sure it is. With theta = 0.25 one acceptance outweighs three refusals. Knows nothing of
gates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model.evaluation.gate_metrics import percentile

THETAS = {"eager": 0.15, "balanced": 0.25, "quiet": 0.45}
"""What a suggestion that is shown costs, in accepted ones, by setting."""

REACH = 2.0
"""A threshold stays within this factor of theta, where that of a calibrated gate would be: few outcomes say little."""

Pair = tuple[float, bool]


def utility(pairs: Sequence[Pair], threshold: float, theta: float) -> float:
    """Sum over what is shown of 1 - theta if accepted, else -theta."""
    return sum(accepted - theta for probability, accepted in pairs if probability >= threshold)


def choose(pairs: Sequence[Pair], theta: float = THETAS["balanced"]) -> float:
    """The threshold of most utility within reach of theta; of several the one nearest to theta."""
    low, high = theta / REACH, min(0.95, theta * REACH)
    inside = sorted({p for p, _ in pairs if low < p < high})
    middles = [(a + b) / 2 for a, b in zip([low, *inside], [*inside, high], strict=True)]
    places: list[float] = [theta, low, high, *middles]
    best = max(places, key=lambda place: (utility(pairs, place, theta), -abs(place - theta)))
    return round(float(best), 4)


def choose_all(pairs: Sequence[Pair]) -> dict[str, float]:
    """The threshold of each setting; a quieter one never shows more than a louder one does."""
    found: dict[str, float] = {}
    for name, theta in sorted(THETAS.items(), key=lambda one: one[1]):
        found[name] = max(choose(pairs, theta), *found.values(), 0.0)
    return found


def interval(
    pairs: Sequence[Pair], theta: float = THETAS["balanced"], draws: int = 200, seed: int = 0
) -> tuple[float, float]:
    """Where 95 % of the thresholds lie that samples of the outcomes, drawn with replacement, would choose."""
    if not pairs:
        return theta / REACH, theta * REACH
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws):
        picked = rng.integers(0, len(pairs), len(pairs))
        drawn.append(choose([pairs[index] for index in picked], theta))
    return percentile(drawn, 2.5) or 0.0, percentile(drawn, 97.5) or 0.0
