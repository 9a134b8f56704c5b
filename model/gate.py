"""Whether to show it: a small calibrated model over features that cost nothing.

Responsible for turning features into the probability that the user would accept, and for the named thresholds. The
weights are data (`gate.json` beside the model's weights), made by `model.training.calibrate`. Knows nothing of where
features come from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from model.config import ModelError

FILE = "gate.json"


@dataclass(frozen=True, slots=True)
class Logistic:
    """p = sigmoid(bias + sum of weight * squash(feature)); a feature that is absent counts as its mean."""

    bias: float
    weights: Mapping[str, tuple[float, float, float]]  # name -> (weight, mean, scale)

    def __call__(self, features: Mapping[str, float]) -> float:
        z = self.bias
        for name, (weight, mean, scale) in self.weights.items():
            z += weight * squash((features.get(name, mean) - mean) / scale)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


def squash(x: float) -> float:
    """Bound a standardised feature to (-3, 3), so that no single one decides far outside its range."""
    return 3 * math.tanh(x / 3)


@dataclass(frozen=True, slots=True)
class Gate:
    """One calibrated model per source of suggestions, and the least probability to show by mode and setting."""

    models: Mapping[str, Logistic]
    thresholds: Mapping[str, Mapping[str, float]]

    @classmethod
    def load(cls, folder: Path) -> Gate:
        """Read `folder/gate.json`; raises `ModelError` when it is missing or malformed."""
        path = folder / FILE
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            models = {
                name: Logistic(
                    float(m["bias"]),
                    {
                        key: (float(w), float(mu), float(s))
                        for key, (w, mu, s) in m["weights"].items()
                    },
                )
                for name, m in raw["models"].items()
            }
            return cls(models, raw["thresholds"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{path} is not a usable gate: {error!r}") from error

    @classmethod
    def untrained(cls) -> Gate:
        """A gate that knows nothing: every suggestion has probability 1/2."""
        return cls({}, {})

    def probability(self, source: str, features: Mapping[str, float]) -> float:
        """Calibrated probability that a suggestion from `source` is accepted."""
        model = self.models.get(source)
        return 0.5 if model is None else model(features)

    def threshold(self, mode: str, setting: str) -> float:
        """The least probability at which `mode` shows under `eager`, `balanced` or `quiet`."""
        return float(self.thresholds[mode][setting])
