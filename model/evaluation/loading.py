"""The predictors that a command names.

Responsible for the options that say which model, how it decodes and within what limits, and for loading it. It knows
nothing of what is asked of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from model import bounds
from model.evaluation.baseline import PropagateLastSubstitution
from model.evaluation.predict import Settings
from model.evaluation.variants import build, ladder, parse_variant
from model.library import load
from model.protocol import Mode, Predictor

if TYPE_CHECKING:
    from model.denoise import Decoding
    from model.local import LocalPredictor

PROPAGATE = "propagate"


class UsageError(Exception):
    """The command cannot begin; the message is for the user."""


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("predictor")
    group.add_argument(
        "--model",
        default="embedded",
        help="embedded, a model folder, a pulled model, scripted:FILE, or propagate: no model, the last edit's "
        "substitution at the nearest place (default: embedded)",
    )
    group.add_argument(
        "--instruct",
        action="store_true",
        help="ask a model that follows instructions for what it was not trained to do",
    )
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    group.add_argument(
        "--threads", type=bounds.threads, metavar="N", help="processor threads of the model"
    )
    group.add_argument("--decoding", choices=("auto", "causal", "refine", "block"), default="auto")
    group.add_argument(
        "--threshold",
        type=bounds.real(0, 1),
        metavar="P",
        help="least confidence to show (default: model's)",
    )
    group.add_argument(
        "--deadline-ms",
        type=bounds.real(0),
        metavar="MS",
        help="time limit for each case (default: none)",
    )


def load_predictor(args: argparse.Namespace, decoding: Decoding | None = None) -> Predictor:
    """Load what `--model` names; UsageError in words for the user when that fails."""
    name: str = args.model
    try:
        if name.startswith("scripted:"):
            from model.scripted import ScriptedPredictor

            return ScriptedPredictor.load(Path(name.removeprefix("scripted:")).expanduser())
        if name == PROPAGATE:
            return PropagateLastSubstitution()
        return load(
            name,
            device=args.device,
            threads=args.threads or None,
            decoding=decoding or args.decoding,
            instruct=args.instruct,
        )
    except Exception as error:  # whatever is wrong with a model is the user's to read
        raise UsageError(f"cannot load model {name}: {error}") from error


def settings_of(args: argparse.Namespace) -> Settings:
    deadline = None if args.deadline_ms is None else args.deadline_ms / 1000
    return Settings(threshold=args.threshold, deadline=deadline)


def load_compared(
    args: argparse.Namespace, modes: Sequence[Mode]
) -> tuple[Predictor | None, dict[str, Predictor]]:
    """The checkpoint, if one is needed, and the variants of it that `--compare` names."""
    names = args.compare or ladder(modes)
    variants = {name: parse_variant(name) for name in names if name != PROPAGATE}
    runs: dict[str, Predictor] = {}
    base = load_predictor(args) if variants else None
    for name in names:
        if name == PROPAGATE:
            runs[name] = PropagateLastSubstitution()
        elif hasattr(base, "bundle"):
            runs[name] = build(variants[name], cast("LocalPredictor", base))
        else:
            raise UsageError(f"--compare {name}: {args.model} has no weights to decode with")
    return base, runs


def load_runs(args: argparse.Namespace, baseline: Decoding | None) -> dict[str, Predictor]:
    """The predictors to measure, by the name of their run; the one asked about is first."""
    name = "redraft" if args.decoding == "auto" else args.decoding
    if args.model == PROPAGATE:
        name = PROPAGATE
    runs = {name: load_predictor(args)}
    if baseline and baseline not in runs:
        runs[baseline] = load_predictor(args, decoding=baseline)
    return runs
