"""Recipes: everything that decides how a training goes, in one TOML file.

Responsible for reading and checking them. Knows nothing of how they are carried out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from model.training.network import Plan, Tune
from model.training.objective import Noise

FOLDER = Path(__file__).parent / "recipes"

T = TypeVar("T")


class RecipeError(Exception):
    """A recipe that cannot be followed, with the reason."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps of at least `tokens` tokens each, in passes of `rows` rows of `length` tokens.

    The learning rate warms up over `warmup` steps and falls to zero over the last `decay` share of them. `weights` say
    what each loss counts. The state is saved, and `held_out` lessons are scored, every `save` steps.
    """

    steps: int
    tokens: int = 4096
    length: int = 512
    rows: int = 2
    learning_rate: float = 5e-4
    warmup: int = 20
    decay: float = 0.3
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    save: int = 50
    held_out: int = 64
    weights: Mapping[str, float] = field(
        default_factory=lambda: {"next": 1.0, "locate": 0.1, "denoise": 1.0}
    )

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        up = min(1.0, (step + 1) / max(1, self.warmup))
        down = min(1.0, (self.steps - step) / max(1.0, self.decay * self.steps))
        return self.learning_rate * up * down


@dataclass(frozen=True, slots=True)
class Preference:
    """KTO instead of likelihood: `beta`, and the `ratio` of the weight of all good answers to that of all bad ones.

    The masked bound hides parts of blocks of `block` tokens, drawn in `pairs` complementary pairs for each block; with
    no pair, all of a block at once. The loop's `weights` say what each part of an answer's log-likelihood counts.
    """

    beta: float = 0.1
    ratio: float = 1.0
    block: int = 8
    pairs: int = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """With a `preference` labelled lessons are learned from, by KTO; `noise` is not used then."""

    plan: Plan
    noise: Noise
    loop: Loop
    preference: Preference | None = None


def read_recipe(name: str) -> Recipe:
    """The recipe in a file, or one of ours by its name. Raises `RecipeError`."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.toml")))
        raise RecipeError(f"there is no recipe {name}; ours are {known}") from None
    except (OSError, ValueError) as error:
        raise RecipeError(f"{path} is not a recipe: {error}") from error
    if unknown := set(raw) - {"plan", "noise", "loop", "preference"}:
        raise RecipeError(f"{path} has unknown sections: {', '.join(sorted(unknown))}")
    plan = _section(Plan, raw.get("plan", {}), path)
    if plan.tune not in get_args(Tune):
        raise RecipeError(f"{path}: tune is one of {', '.join(get_args(Tune))}, not {plan.tune!r}")
    if plan.stack not in ("full", "adapters"):
        raise RecipeError(f"{path}: stack is full or adapters, not {plan.stack!r}")
    return Recipe(
        plan,
        _section(Noise, raw.get("noise", {}), path),
        _section(Loop, raw.get("loop", {}), path),
        _section(Preference, raw["preference"], path) if "preference" in raw else None,
    )


def _section(kind: type[T], raw: Mapping[str, Any], path: Path) -> T:
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if unknown := set(raw) - known:
        raise RecipeError(f"{path}: {kind.__name__.lower()} knows no {', '.join(sorted(unknown))}")
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in raw.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise RecipeError(f"{path}: {error}") from error
