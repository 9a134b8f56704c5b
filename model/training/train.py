"""The one training loop: a recipe, shards of lessons, a folder for the run.

    redraft train --recipe cpu --shards SHARDS --run RUN            (stop and repeat to go on)

Responsible for the command, how long to go on, the saved state, the log and the learning curve. Knows nothing of how
lessons are written or what the losses are.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from model import bounds
from model.adapter import AdaptedCheckpoint
from model.bundle import EMBEDDED, pick_device
from model.config import ModelConfig, ModelError
from model.denoiser import STEM
from model.evaluation import picture
from model.evaluation.progress import progress
from model.targets import TargetError, check_folder
from model.training.network import POINTER, Network
from model.training.preference import PreferenceTrainer
from model.training.recipe import Recipe, RecipeError, read_recipe
from model.training.shards import ShardError, Shards
from model.training.trainer import Trainer
from model.weights import Checkpoint

STATE = "state.pt"
LOG = "log.jsonl"


def train(
    trainer: Trainer,
    run: Path,
    held_out: Shards | None = None,
    *,
    minutes: float | None = None,
    until: int | None = None,
) -> Iterator[int]:
    """Go on until the recipe's last step, step `until` or for `minutes`; yields each step that is done.

    The state is saved every so often and at the end. A row of the log has the last step's losses (`exact`), their
    running means and those of the held-out lessons.
    """
    loop, began = trainer.recipe.loop, time.monotonic()
    state = run / STATE
    with (run / LOG).open("a", encoding="utf-8") as log:
        while trainer.step < loop.steps:
            means = trainer.advance()
            over = minutes is not None and time.monotonic() - began > 60 * minutes
            over |= trainer.step in (until, loop.steps)
            if over or trainer.step % loop.save == 0:
                row: dict[str, Any] = {"step": trainer.step, "exact": means}
                row["train"] = rounded(trainer.recent)
                if held_out is not None:
                    row["held_out"] = rounded(trainer.evaluate(held_out))
                row["seconds"] = round(time.monotonic() - began, 1)
                log.write(json.dumps(row) + "\n")
                log.flush()
                torch.save(trainer.state(), state.with_suffix(".new"))
                state.with_suffix(".new").replace(state)
            yield trainer.step
            if over:
                return


def rounded(means: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in means.items()}


def draw_curve(run: Path, path: Path) -> None:
    """The learning curve of a run's log."""
    from matplotlib.figure import Figure

    rows = [json.loads(line) for line in (run / LOG).read_text().splitlines()]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for part, style in (("train", "-"), ("held_out", "o-")):
        for name in sorted({name for row in rows for name in row.get(part, {})}):
            points = [(r["step"], r[part][name]) for r in rows if name in r.get(part, {})]
            axes.plot(*zip(*points, strict=True), style, markersize=3, label=f"{name}, {part}")
    axes.set(xlabel="step", ylabel="loss, nats")
    if rows:
        axes.legend()
    figure.savefig(path)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recipe", default="cpu", help="a name of ours, or a TOML file")
    parser.add_argument("--shards", type=Path, required=True, help="folder of training shards")
    parser.add_argument("--held-out", type=Path, help="folder of shards that are only scored")
    parser.add_argument("--run", type=Path, required=True, help="folder of the run's state")
    parser.add_argument("--model", type=Path, default=EMBEDDED, help="checkpoint to start from")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=bounds.threads, metavar="N")
    parser.add_argument("--minutes", type=bounds.real(0), help="stop after so long, to be resumed")
    parser.add_argument("--until", type=int, metavar="STEP", help="stop there, to be resumed")


def run(args: argparse.Namespace) -> int:
    """Carry `redraft train` out; returns the exit code."""
    if args.threads:
        torch.set_num_threads(args.threads)
    curve = args.run / "curve.svg"
    try:
        recipe = read_recipe(args.recipe)
        check_folder(args.run)
        args.run.mkdir(parents=True, exist_ok=True)
        picture.check(curve)
        trainer = load_trainer(args, recipe)
        size = sum(p.numel() for p in trainer.trained)
        print(f"{size / 1e6:.1f} M parameters, {len(trainer.shards)} lessons", file=sys.stderr)
        if (args.run / STATE).exists():
            trainer.restore(torch.load(args.run / STATE, weights_only=True))
        held_out = Shards(args.held_out) if args.held_out else None
        steps = train(trainer, args.run, held_out, minutes=args.minutes, until=args.until)
        left = trainer.recipe.loop.steps - trainer.step
        for _ in progress(steps, lambda: f"train ({told(trainer.recent)})", left):
            pass
    except (ModelError, RecipeError, ShardError, picture.PictureError, TargetError) as error:
        print(f"redraft train: {error}", file=sys.stderr)
        return 2
    draw_curve(args.run, curve)
    return 0


def told(means: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in means.items())


def load_trainer(args: argparse.Namespace, recipe: Recipe) -> Trainer:
    """The checkpoint and shards that `args` name, and what the recipe makes of them.

    A denoiser of the recipe's shape is trained further, and so is a locate head.
    """
    shards = Shards(args.shards)
    config = ModelConfig.load(args.model)
    there = config.denoiser is not None and config.denoiser.trunk_layers == recipe.plan.denoiser
    pointer = (args.model / f"{POINTER}.safetensors").exists()
    torch.manual_seed(recipe.loop.seed)
    network = Network(
        AdaptedCheckpoint(args.model),
        config,
        recipe.plan,
        torch.bfloat16 if recipe.loop.precision == "bfloat16" else torch.float32,
        Checkpoint(args.model, STEM) if there else None,
        Checkpoint(args.model, POINTER) if pointer else None,
    )
    kind = PreferenceTrainer if recipe.preference else Trainer
    return kind(network.to(pick_device(args.device)), recipe, shards)
