"""The predictors that a command names.

Responsible for loading them and for seeing that what is to be written can be. It knows nothing of what is asked of
them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from model.evaluation import picture
from model.evaluation.baseline import PropagateLastSubstitution
from model.evaluation.options import PROPAGATE
from model.evaluation.predict import Settings
from model.evaluation.variants import build, ladder, parse_variant
from model.library import load
from model.protocol import Mode, Predictor
from model.targets import check_file

if TYPE_CHECKING:
    from model.denoise import Decoding
    from model.local import LocalPredictor


class UsageError(Exception):
    """The command cannot begin; the message is for the user."""


def check_targets(report: Path | None, drawn: Path | None) -> None:
    """Raises an error for the user where one of these could not be written in the end."""
    check_file(report)
    if drawn:
        picture.check(drawn)


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
