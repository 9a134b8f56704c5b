"""Whether to show it: a small calibrated model over features that cost nothing.

Responsible for turning features into the probability that the user would accept, for the named thresholds, and for the
file that holds both: `gate.json` beside the model's weights, made by `model.training.calibrate`, or one that
`redraft tune` has put into the user's own folder. Knows nothing of where features come from.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model.config import ModelError

logger = logging.getLogger(__name__)

FILE = "gate.json"
SETTINGS = ("eager", "balanced", "quiet")
FIRST_LOOK = " first look"
FIRST_ODDS = "first odds"


@dataclass(frozen=True, slots=True)
class Logistic:
    """p = sigmoid(bias + sum of weight * squash(feature)); a feature that is absent counts as its mean."""

    bias: float
    weights: Mapping[str, tuple[float, float, float]]  # name -> (weight, mean, scale)

    def log_odds(self, features: Mapping[str, float]) -> float:
        z = self.bias
        for name, (weight, mean, scale) in self.weights.items():
            z += weight * squash((features.get(name, mean) - mean) / scale)
        return z

    def __call__(self, features: Mapping[str, float]) -> float:
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, self.log_odds(features)))))


def squash(x: float) -> float:
    """Bound a standardised feature to (-3, 3), so that no single one decides far outside its range."""
    return 3 * math.tanh(x / 3)


@dataclass(frozen=True, slots=True)
class Gate:
    """One calibrated model per source of suggestions, and the least probability to show by mode and setting.

    Where there is a model `<source> first look`, its log-odds are a feature `first odds` of the source's own model:
    it was fitted on many more suggestions, to what needs no language model. `about` says where the gate came from.
    """

    models: Mapping[str, Logistic]
    thresholds: Mapping[str, Mapping[str, float]]
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> Gate:
        """Read `folder/gate.json`; raises `ModelError` when it is missing or malformed."""
        return cls.read(folder / FILE)

    @classmethod
    def read(cls, path: Path) -> Gate:
        """Read a gate's file; raises `ModelError` when it is missing or malformed."""
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
            thresholds = {
                mode: {name: float(values[name]) for name in SETTINGS}
                for mode, values in raw["thresholds"].items()
            }
            return cls(models, thresholds, raw.get("about", {}))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} is not a usable gate: {error!r}") from error

    def write(self, path: Path) -> None:
        """Replace a gate's file; it is whole at every moment."""
        models = {
            name: {"bias": model.bias, "weights": {k: list(v) for k, v in model.weights.items()}}
            for name, model in self.models.items()
        }
        rows = {"models": models, "thresholds": self.thresholds, "about": self.about}
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".part")
        temporary.write_text(compact(rows), encoding="utf-8")
        os.replace(temporary, path)

    @classmethod
    def untrained(cls) -> Gate:
        """A gate that knows nothing: every suggestion has probability 1/2."""
        return cls({}, {})

    def full(self, source: str, features: Mapping[str, float]) -> Mapping[str, float]:
        """The features with what the first look makes of them."""
        first = self.models.get(source + FIRST_LOOK)
        return features if first is None else {**features, FIRST_ODDS: first.log_odds(features)}

    def probability(self, source: str, features: Mapping[str, float]) -> float:
        """Calibrated probability that a suggestion from `source` is accepted."""
        model = self.models.get(source)
        return 0.5 if model is None else model(self.full(source, features))

    def threshold(self, mode: str, setting: str) -> float:
        """The least probability at which `mode` shows under `eager`, `balanced` or `quiet`."""
        return float(self.thresholds[mode][setting])


def compact(rows: Mapping[str, Any]) -> str:
    """JSON with one line for each weight."""
    text = json.dumps(rows, indent=1)
    parts = text.split("[")
    joined = [parts[0]]
    for part in parts[1:]:
        inside, bracket, rest = part.partition("]")
        joined.append(" ".join(inside.split()) + bracket + rest)
    return "[".join(joined) + "\n"


def fingerprint(path: Path) -> str:
    """Names the content of a shipped gate: a gate that was tuned from another one does not fit."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def tuned_path(folder: Path, model: str) -> Path:
    """Where the gate that a user has tuned for a model lies in the folder of his data."""
    safe = "".join(char if char.isalnum() or char in "-._" else "_" for char in model)
    return folder / "gates" / safe / FILE


def load_for_user(shipped: Path, model: str, folder: Path | None) -> Gate:
    """The user's tuned gate where there is one that was tuned from the shipped one, else that."""
    own = None if folder is None else tuned_path(folder, model)
    if own is not None and own.exists():
        try:
            gate = Gate.read(own)
            if gate.about.get("base") == fingerprint(shipped / FILE):
                return gate
            logger.warning("%s was tuned for another gate than the model's; it is not used", own)
        except ModelError as error:
            logger.warning("%s", error)
    return Gate.load(shipped)
