"""One training: what a step learns from, the optimizer, and exact resume.

Responsible for the order of lessons, accumulation and everything that going on needs. Knows nothing of files, of how
lessons are written or what the losses are.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from model.training.lessons import Lesson
from model.training.network import Network
from model.training.objective import Losses, losses
from model.training.recipe import Loop, Recipe, RecipeError
from model.training.shards import Batch, ShardError, Shards, pack


class Trainer:
    """One training; everything that resuming needs is in `state()`. `recent` are running means of the losses."""

    def __init__(self, network: Network, recipe: Recipe, shards: Shards) -> None:
        self.network, self.recipe, self.shards = network, recipe, shards
        self.trained = [p for p in network.parameters() if p.requires_grad]
        loop = recipe.loop
        if all(shards.size(number) > loop.length for number in range(len(shards))):
            raise ShardError(f"no lesson has at most {loop.length} tokens, the recipe's length")
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

    def lessons(self) -> list[Lesson]:
        """The next step's lessons."""
        loop = self.recipe.loop
        numbers: list[int] = []
        tokens = 0
        while tokens < loop.tokens:
            number = next(self._order)
            self.consumed += 1
            if self.shards.size(number) <= loop.length:
                numbers.append(number)
                tokens += self.shards.size(number)
        return [self.shards[number] for number in numbers]

    def advance(self) -> dict[str, float]:
        """One optimizer step; returns the mean losses."""
        loop = self.recipe.loop
        rng = random.Random(f"{loop.seed} {self.step}")
        for group in self.optimizer.param_groups:
            group["lr"] = loop.rate(self.step)
        total = self.descend(self.lessons(), rng)
        nn.utils.clip_grad_norm_(self.trained, loop.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        means = total.means()
        for name, value in means.items():
            self.recent[name] = 0.9 * self.recent.get(name, value) + 0.1 * value
        return means

    def descend(self, lessons: list[Lesson], rng: random.Random) -> Losses:
        """Add the gradients of a step's lessons; returns the losses."""
        loop, total = self.recipe.loop, Losses()
        batches = list(packed(lessons, loop))
        whole = sum(batch.weight for batch in batches)
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
        return total

    def precision(self) -> torch.autocast:
        low = self.recipe.loop.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=low)

    @torch.no_grad()
    def evaluate(self, held_out: Shards) -> dict[str, float]:
        """Mean losses over the first held-out lessons, always with the same noise."""
        loop = self.recipe.loop
        chosen = [n for n in range(len(held_out)) if held_out.size(n) <= loop.length]
        lessons = [held_out[n] for n in chosen[: loop.held_out]]
        return self.score(lessons, random.Random(0)).means()

    def score(self, lessons: list[Lesson], rng: random.Random) -> Losses:
        """The losses of lessons that are not learned from."""
        total = Losses()
        for batch in packed(lessons, self.recipe.loop):
            with self.precision():
                total += losses(self.network, batch, self.recipe.noise, rng)
        return total


def packed(lessons: list[Lesson], loop: Loop) -> Iterator[Batch]:
    """Batches of at most `rows` rows, the longest lessons first."""
    if not lessons:
        return
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
