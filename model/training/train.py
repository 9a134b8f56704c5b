"""The one training loop: a recipe, shards of lessons, a folder for the run.

    redraft train --recipe cpu --shards SHARDS --run RUN            (stop and repeat to go on)

Responsible for the order of lessons, accumulation, the optimizer, exact resume, the log and the learning curve. Knows
nothing of how lessons are written or what the losses are.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from model.adapter import AdaptedCheckpoint
from model.bundle import EMBEDDED, pick_device
from model.config import ModelConfig, ModelError
from model.denoiser import STEM
from model.evaluation import picture
from model.evaluation.progress import progress
from model.training.lessons import Lesson
from model.training.network import Network
from model.training.objective import Losses, losses
from model.training.recipe import Loop, Recipe, RecipeError, read_recipe
from model.training.shards import Batch, ShardError, Shards, pack
from model.weights import Checkpoint

STATE = "state.pt"
LOG = "log.jsonl"


class Trainer:
    """One training; everything that resuming needs is in `state()`. `recent` are running means of the losses."""

    def __init__(self, network: Network, recipe: Recipe, shards: Shards) -> None:
        self.network, self.recipe, self.shards = network, recipe, shards
        self.trained = [p for p in network.parameters() if p.requires_grad]
        loop = recipe.loop
        self.optimizer = torch.optim.AdamW(
            self.trained,
            lr=loop.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=loop.weight_decay,
            fused=self.device.type == "cuda",
        )
        self.recent: dict[str, float] = {}
        if loop.compile and self.device.type == "cuda":
            network.compile_layers()
        self.step = 0
        self.consumed = 0
        self._order = shards.order(loop.seed)

    @property
    def device(self) -> torch.device:
        return self.network.cos.device

    def state(self) -> dict[str, Any]:
        return {
            "network": {
                name: value.detach().cpu()
                for name, value in self.network.named_parameters()
                if value.requires_grad
            },
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "consumed": self.consumed,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken; the same losses follow as without the interruption."""
        parameters = dict(self.network.named_parameters())
        if set(state["network"]) - set(parameters):
            raise RecipeError("the run was begun with another recipe")
        with torch.no_grad():
            for name, value in state["network"].items():
                parameters[name].copy_(value)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.consumed = state["step"], state["consumed"]
        self._order = self.shards.order(self.recipe.loop.seed)
        for _ in range(self.consumed):
            next(self._order)

    def batches(self) -> Iterator[Batch]:
        """The next step's lessons, packed: rows of alike length go together."""
        loop = self.recipe.loop
        numbers: list[int] = []
        tokens = 0
        while tokens < loop.tokens:
            number = next(self._order)
            self.consumed += 1
            if self.shards.size(number) <= loop.length:
                numbers.append(number)
                tokens += self.shards.size(number)
        yield from packed([self.shards[n] for n in numbers], loop)

    def advance(self) -> dict[str, float]:
        """One optimizer step; returns the mean losses."""
        loop = self.recipe.loop
        rng = random.Random(f"{loop.seed} {self.step}")
        batches = list(self.batches())
        whole = sum(batch.weight for batch in batches)
        for group in self.optimizer.param_groups:
            group["lr"] = loop.rate(self.step)
        total = Losses()
        for batch in batches:
            with self.precision():
                found = losses(self.network, batch, self.recipe.noise, rng)
            parts = [
                loop.weights.get(name, 1.0)
                * value
                / (max(whole, 1e-9) if name == "next" else found.weights[name] * len(batches))
                for name, value in found.sums.items()
            ]
            if parts:
                torch.stack([p.float() for p in parts]).sum().backward()
            total += found
        nn.utils.clip_grad_norm_(self.trained, loop.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        means = total.means()
        for name, value in means.items():
            self.recent[name] = 0.9 * self.recent.get(name, value) + 0.1 * value
        return means

    def precision(self) -> torch.autocast:
        low = self.recipe.loop.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=low)

    @torch.no_grad()
    def evaluate(self, held_out: Shards) -> dict[str, float]:
        """Mean losses over the first held-out lessons, always with the same noise."""
        loop, rng, total = self.recipe.loop, random.Random(0), Losses()
        chosen = [n for n in range(len(held_out)) if held_out.size(n) <= loop.length]
        for batch in packed([held_out[n] for n in chosen[: loop.held_out]], loop):
            with self.precision():
                total += losses(self.network, batch, self.recipe.noise, rng)
        return total.means()


def packed(lessons: list[Lesson], loop: Loop) -> Iterator[Batch]:
    """Batches of at most `rows` rows, the longest lessons first."""
    whole = pack(lessons, loop.length)
    for first in range(0, len(whole.tokens), loop.rows):
        rows = slice(first, first + loop.rows)
        mine = tuple(
            (row - first, at, one)
            for row, at, one in whole.lessons
            if first <= row < first + loop.rows
        )
        width = int((whole.owner[rows] >= 0).sum(1).max())
        yield Batch(
            whole.tokens[rows, :width],
            whole.weights[rows, :width],
            whole.owner[rows, :width],
            whole.positions[rows, :width],
            mine,
        )


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
    parser.add_argument("--threads", type=int, metavar="N")
    parser.add_argument("--minutes", type=float, help="stop after so long, to be resumed")
    parser.add_argument("--until", type=int, metavar="STEP", help="stop there, to be resumed")


def run(args: argparse.Namespace) -> int:
    """Carry `redraft train` out; returns the exit code."""
    if args.threads:
        torch.set_num_threads(args.threads)
    curve = args.run / "curve.svg"
    try:
        picture.check(curve)
        trainer = load_trainer(args)
        size = sum(p.numel() for p in trainer.trained)
        print(f"{size / 1e6:.1f} M parameters, {len(trainer.shards)} lessons", file=sys.stderr)
        args.run.mkdir(parents=True, exist_ok=True)
        if (args.run / STATE).exists():
            trainer.restore(torch.load(args.run / STATE, weights_only=True))
        held_out = Shards(args.held_out) if args.held_out else None
        steps = train(trainer, args.run, held_out, minutes=args.minutes, until=args.until)
        left = trainer.recipe.loop.steps - trainer.step
        for _ in progress(steps, lambda: f"train ({told(trainer.recent)})", left):
            pass
    except (ModelError, RecipeError, ShardError, picture.PictureError) as error:
        print(f"redraft train: {error}", file=sys.stderr)
        return 2
    draw_curve(args.run, curve)
    return 0


def told(means: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in means.items())


def load_trainer(args: argparse.Namespace) -> Trainer:
    """The checkpoint, recipe and shards that `args` name. A denoiser of the recipe's shape is trained further."""
    recipe, shards = read_recipe(args.recipe), Shards(args.shards)
    config = ModelConfig.load(args.model)
    there = config.denoiser is not None and config.denoiser.trunk_layers == recipe.plan.denoiser
    torch.manual_seed(recipe.loop.seed)
    network = Network(
        AdaptedCheckpoint(args.model),
        config,
        recipe.plan,
        torch.bfloat16 if recipe.loop.precision == "bfloat16" else torch.float32,
        Checkpoint(args.model, STEM) if there else None,
    )
    return Trainer(network.to(pick_device(args.device)), recipe, shards)
