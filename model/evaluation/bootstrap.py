"""How sure a figure is: paired bootstrap over clusters.

Responsible for drawing clusters (releases, say) with replacement and for percentile intervals; everything that is
compared sees the same draws. Knows nothing of what is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from model.evaluation.gate_metrics import percentile

T = TypeVar("T")
DRAWS = 1000


def clustered(
    clusters: Mapping[str, T],
    figures: Callable[[Sequence[T]], Mapping[str, float | None]],
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 95.0,
) -> dict[str, tuple[float, float]]:
    """Percentile interval of each figure over `draws` samples of the clusters; undefined ones are left out."""
    rng = np.random.default_rng(seed)
    members = [clusters[name] for name in sorted(clusters)]
    found: dict[str, list[float]] = {}
    for _ in range(draws):
        drawn = [members[index] for index in rng.integers(0, len(members), len(members))]
        for name, value in figures(drawn).items():
            if value is not None:
                found.setdefault(name, []).append(value)
    tail = (100 - level) / 2
    return {
        name: (percentile(values, tail) or 0.0, percentile(values, 100 - tail) or 0.0)
        for name, values in found.items()
    }
