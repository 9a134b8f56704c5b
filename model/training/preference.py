"""KTO on the model itself: answers that users wanted become likelier than those that they did not want.

Responsible for the log-likelihood of a labelled answer, for the reference, which is the network as it was when the
training began, and for the point that both sorts of answers are held against. Knows nothing of where labels come from.

The objective is that of Ethayarajh et al. 2024 (arXiv 2402.01306, `model.kto`). A block diffusion model has no exact
likelihood of a block, only a bound that needs hidden tokens to be drawn. Policy and reference are shown the same
draws, which takes most of the variance out of their ratio (VRPO: Zhu et al. 2025, arXiv 2505.19223); parts of a block
are hidden in complementary pairs, so that every token is asked (coupled sampling: Gong et al. 2025, arXiv 2506.20639);
how many are hidden is drawn evenly (Nie et al. 2025, arXiv 2502.09992).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from model.kto import balanced, kto_losses, mismatched_point
from model.training.lessons import Lesson
from model.training.network import Below, Network
from model.training.objective import (
    Canvas,
    Cell,
    Losses,
    canvas_of,
    clean_stream,
    encode,
    hidden_losses,
    locate_loss,
    next_losses,
)
from model.training.recipe import Preference, Recipe, RecipeError
from model.training.shards import Batch, Shards
from model.training.trainer import Trainer, packed


class PreferenceTrainer(Trainer):
    """A training whose recipe has a `preference`; the reference is part of its state."""

    def __init__(self, network: Network, recipe: Recipe, shards: Shards) -> None:
        super().__init__(network, recipe, shards)
        if recipe.preference is None:
            raise RecipeError("the recipe has no section [preference]")
        desirable, undesirable = shards.labels()
        if desirable + undesirable < len(shards):
            raise RecipeError(
                "KTO needs lessons that are all called desirable or undesirable; "
                "`redraft pack` writes them with --feedback and --simulated"
            )
        self.preference: Preference = recipe.preference
        self.sorts = balanced(desirable, undesirable, recipe.preference.ratio)
        self.reference = [value.detach().clone() for value in self.trained]

    def state(self) -> dict[str, Any]:
        return super().state() | {"reference": [value.cpu() for value in self.reference]}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.reference = [value.to(self.device) for value in state["reference"]]

    def lessons(self) -> list[Lesson]:
        return [one for one in super().lessons() if self.asked(one)]

    def asked(self, lesson: Lesson) -> bool:
        """Whether the network has a part that gives the answer of this lesson."""
        pointed = self.network.locate is not None and bool(lesson.targets)
        return pointed or bool(answer_places(lesson))

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """The network is the reference, without gradients."""
        with torch.no_grad():
            for value, kept in zip(self.trained, self.reference, strict=True):
                value.data, kept.data = kept.data, value.data
            try:
                yield
            finally:
                for value, kept in zip(self.trained, self.reference, strict=True):
                    value.data, kept.data = kept.data, value.data

    def both(self, batch: Batch, rng: random.Random) -> tuple[Tensor, Tensor]:
        """Log-likelihoods `[lessons]` under policy and reference, with the same tokens hidden."""
        mask_id = self.network.config.special["mask"]
        canvas = draw_answers(batch, self.preference, mask_id, rng)
        weights = self.recipe.loop.weights
        with self.precision():
            below = self.network.below(*clean_stream(self.network, batch))
            with self.as_before():
                reference = log_likelihoods(self.network, batch, canvas, weights, below)
            return log_likelihoods(self.network, batch, canvas, weights, below), reference

    @torch.no_grad()
    def point(self, lessons: Sequence[Lesson], rng: random.Random) -> Tensor:
        """z0: how much likelier the policy makes answers to other questions than the reference does."""
        others = list(mismatched(lessons, self.recipe.loop.length))
        pairs = [self.both(batch, rng) for batch in packed(others, self.recipe.loop)]
        if not pairs:
            return torch.zeros((), device=self.device)
        return mismatched_point(*(torch.cat(part) for part in zip(*pairs, strict=True)))

    def descend(self, lessons: list[Lesson], rng: random.Random) -> Losses:
        return self._losses(lessons, rng, backward=True)

    @torch.no_grad()
    def score(self, lessons: list[Lesson], rng: random.Random) -> Losses:
        return self._losses([one for one in lessons if self.asked(one)], rng, backward=False)

    def _losses(self, lessons: list[Lesson], rng: random.Random, *, backward: bool) -> Losses:
        total = Losses()
        point = self.point(lessons, rng)
        for batch in packed(lessons, self.recipe.loop):
            policy, reference = self.both(batch, rng)
            good = torch.tensor([bool(one.desirable) for _, _, one in batch.lessons]).to(
                policy.device
            )
            ratios = policy - reference
            loss = kto_losses(
                ratios, good, point, beta=self.preference.beta, weights=self.sorts
            ).sum()
            if backward:
                (loss / len(lessons)).backward()
            found = Losses()
            found.add("kto", loss, len(good))
            for name, sort in (("desirable", good), ("undesirable", ~good)):
                if sort.any():
                    found.add(name, ratios[sort].sum(), int(sort.sum()))
            total += found
        if lessons:
            total.add("point", point, 1.0)
        return total


def answer_places(lesson: Lesson) -> list[int]:
    """Places of the tokens that the user has judged."""
    answer = max(1, lesson.answer)
    return [i for i in range(answer, len(lesson)) if lesson.weights[i] > 0]


def mismatched(lessons: Sequence[Lesson], length: int) -> Iterator[Lesson]:
    """Each lesson's question with the answer of the next one, as far as it fits."""
    if len(lessons) < 2:
        return
    for one, other in zip(lessons, [*lessons[1:], lessons[0]], strict=True):
        tokens = one.tokens[: one.answer] + other.tokens[other.answer :]
        weights = one.weights[: one.answer] + other.weights[other.answer :]
        targets: tuple[int, ...] = ()
        if one.targets and other.targets:
            nowhere = other.targets[0] >= len(other.lines)
            targets = (len(one.lines) if nowhere else other.targets[0] % len(one.lines),)
        if len(tokens) <= length:
            yield replace(one, tokens=tokens, weights=weights, targets=targets)


def draw_answers(batch: Batch, how: Preference, mask_id: int, rng: random.Random) -> Canvas | None:
    """Every answer of a batch in blocks, with hidden tokens weighed so that the weighted sum of their log-probabilities
    is an unbiased estimate of the bound. A block's first token is shown: it is the last of what stands before."""
    rows: list[list[Cell]] = [[] for _ in batch.tokens]
    number = 0
    for row, offset, lesson in batch.lessons:
        places = answer_places(lesson)
        while places:
            block, places = places[: how.block - 1], places[how.block - 1 :]
            start = offset + block[0] - 1
            tokens = batch.tokens[row, start : start + len(block) + 1].tolist()
            for hidden, weight in draw_hidden(len(block), how.pairs, rng):
                for i, token in enumerate(tokens):
                    shown, counts = (mask_id, weight) if i in hidden else (token, 0.0)
                    rows[row].append((shown, start + i, number, counts))
                number += 1
    return canvas_of(rows, batch, mask_id)


def draw_hidden(size: int, pairs: int, rng: random.Random) -> Iterator[tuple[set[int], float]]:
    """Sets of the tokens 1 to `size` of a block and what each of them weighs.

    The bound is the mean over k = 1 to `size` of size / k times the log-probabilities of k hidden tokens. The last of
    these terms is exact; k and `size` - k of the others are drawn together.
    """
    every = set(range(1, size + 1))
    if not pairs or size == 1:
        yield every, 1.0
        return
    yield every, 1 / size
    for _ in range(pairs):
        hidden = set(rng.sample(sorted(every), rng.randint(1, size - 1)))
        for part in (hidden, every - hidden):
            yield part, (size - 1) / (2 * pairs * len(part))


def log_likelihoods(
    network: Network,
    batch: Batch,
    canvas: Canvas | None,
    weights: Mapping[str, float],
    below: Below | None = None,
) -> Tensor:
    """log pi of each lesson's answer, `[lessons]`: weighted sums of its exact causal log-likelihood (`next`), of the
    bound of the denoiser (`denoise`) and of the log-probability of where it is (`locate`)."""
    states, past = encode(network, batch, below)
    lesson_at = torch.full(batch.tokens.shape, -1)
    asked = torch.zeros(batch.tokens.shape, dtype=torch.bool)
    for number, (line, offset, lesson) in enumerate(batch.lessons):
        lesson_at[line, offset : offset + len(lesson)] = number
        asked[line, [offset + i for i in answer_places(lesson)]] = True
    total = torch.zeros(len(batch.lessons), device=states.device)
    row, at = asked.nonzero(as_tuple=True)
    if len(row) and (share := weights.get("next", 1.0)):
        each = next_losses(network, batch, states, row, at).float()
        total = total.index_add(0, lesson_at[row, at].to(states.device), -share * each)
    if canvas is not None and (share := weights.get("denoise", 1.0)):
        each = hidden_losses(network, batch, states, past, canvas).float()
        owner = lesson_at.gather(1, canvas.places)[canvas.weights > 0].to(states.device)
        counts = canvas.weights[canvas.weights > 0].to(states.device)
        total = total.index_add(0, owner, -share * counts * each)
    if network.locate is not None and (share := weights.get("locate", 1.0)):
        for number, place in enumerate(batch.lessons):
            if place[2].targets:
                here = torch.tensor([number], device=states.device)
                lost = locate_loss(network, states, place).float()
                total = total.index_add(0, here, -share * lost[None])
    return total
