"""What is learned from a batch: the next token, the hidden tokens of blocks, the line of the next edit.

Responsible for the three losses and for drawing the noisy stream. Knows nothing of optimizers, files or prompts.

The joint objective on [noisy | clean] with a token-causal clean stream follows block diffusion, Arriola et al. 2025
(arXiv 2503.09573), and its use with an autoregressive loss on the clean half; hiding what the complement showed makes
every token a target once (complementary masks); the weight 1/t of the masked diffusion bound, Sahoo et al. 2024
(arXiv 2406.07524), is clipped.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from model.training.lessons import Lesson
from model.training.network import Below, Network, Past
from model.training.shards import Batch

HEAD_ROWS = 256
FIRST_WORD = 17


@dataclass(frozen=True, slots=True)
class Noise:
    """How the noisy stream is drawn: `blocks` in each row, of sizes from `sizes`; the answer of a lesson is drawn
    `on_answer` of the time.

    A block's first token is shown (the verifier knows it). `all_hidden` blocks hide all others, the rest a share
    t ~ U(0, 1), each with its complement. `drafted` of the hidden tokens show a wrong token instead of the mask.
    `decay` discounts far offsets (exp(-offset / decay)), for the verifier keeps a prefix; 1/t is clipped at `clip`.
    """

    blocks: int = 0
    sizes: tuple[int, ...] = (8,)
    on_answer: float = 0.5
    all_hidden: float = 0.6
    drafted: float = 0.2
    decay: float = 5.0
    clip: float = 4.0


@dataclass(slots=True)
class Losses:
    """Sums of weighted losses and of their weights, by name; `+=` adds up over batches."""

    sums: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, total: Tensor, weight: float) -> None:
        self.sums[name] = self.sums[name] + total if name in self.sums else total
        self.weights[name] = self.weights.get(name, 0.0) + weight

    def __iadd__(self, other: Losses) -> Losses:
        for name, total in other.sums.items():
            self.add(name, total.detach(), other.weights[name])
        return self

    def means(self) -> dict[str, float]:
        return {
            name: float(s.detach()) / max(self.weights[name], 1e-9) for name, s in self.sums.items()
        }


def cross_entropy(network: Network, states: Tensor, targets: Tensor) -> Tensor:
    """Loss of each row `[n]` of `states [n, hidden]`, in chunks whose logits are made again on the way back."""

    def chunk(part: Tensor, wanted: Tensor) -> Tensor:
        return F.cross_entropy(network.logits(part), wanted, reduction="none")

    parts = [
        checkpoint(
            chunk, states[i : i + HEAD_ROWS], targets[i : i + HEAD_ROWS], use_reentrant=False
        )
        for i in range(0, len(states), HEAD_ROWS)
    ]
    return torch.cat(parts) if parts else states.new_zeros(0)


def losses(network: Network, batch: Batch, noise: Noise, rng: random.Random) -> Losses:
    """All losses of one batch, as sums, with what divides them."""
    found = Losses()
    states, past = encode(network, batch)
    if network.plan.tune != "frozen":
        row, at = (batch.weights > 0).nonzero(as_tuple=True)
        each = next_losses(network, batch, states, row, at)
        weights = batch.weights[row, at].to(each.device)
        found.add("next", (each * weights).sum(), float(weights.sum()))
    if network.locate is not None:
        _locate(network, batch, states, found)
    if noise.blocks:
        _denoise(network, batch, states, past, noise, rng, found)
    return found


def encode(network: Network, batch: Batch, below: Below | None = None) -> tuple[Tensor, list[Past]]:
    """The clean stream: states `[b, n, hidden]`, and each layer's keys and values."""
    return network.encode(*clean_stream(network, batch), below)


def clean_stream(network: Network, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, positions and mask of a batch on the network's device."""
    device = network.cos.device
    clean = batch.causal_mask().to(device)
    clean |= torch.eye(clean.shape[-1], dtype=torch.bool, device=device)
    return batch.tokens.to(device), batch.positions.to(device), clean


def next_losses(network: Network, batch: Batch, states: Tensor, row: Tensor, at: Tensor) -> Tensor:
    """-log p of the tokens `at [n]` of rows `row [n]`, each from those before it."""
    return cross_entropy(network, states[row, at - 1], batch.tokens[row, at].to(states.device))


def locate_loss(network: Network, states: Tensor, place: tuple[int, int, Lesson]) -> Tensor:
    """-log p of the targets of a lesson that has some."""
    assert network.locate is not None
    row, offset, lesson = place
    places = torch.tensor(lesson.lines, device=states.device) + offset
    scores = network.locate(states[row, places[-1]], states[row, places])
    return scores.logsumexp(0) - scores[list(lesson.targets)].logsumexp(0)


def _locate(network: Network, batch: Batch, states: Tensor, found: Losses) -> None:
    for place in batch.lessons:
        if place[2].targets:
            found.add("locate", locate_loss(network, states, place), 1.0)


@dataclass(frozen=True, slots=True)
class Canvas:
    """The noisy stream of a batch, `[b, m]`: what is shown, the true tokens, their places in the clean row, the weight
    of each (0 where nothing is asked), and the block each belongs to."""

    shown: Tensor
    true: Tensor
    places: Tensor
    weights: Tensor
    block: Tensor


Cell = tuple[int, int, int, float]


def draw_block(
    batch: Batch,
    place: tuple[int, int, Lesson],
    number: int,
    noise: Noise,
    control: tuple[int, int],
    rng: random.Random,
) -> Iterator[list[Cell]]:
    """A block of one lesson and, where not all of it is hidden, its complement, numbered from `number` on.

    Cells are (token shown, place in the clean row, block, weight); `control` are the mask's id and the vocabulary's
    size.
    """
    row, at, lesson = place
    mask_id, vocabulary = control
    size = rng.choice(noise.sizes)
    low, high = 1, len(lesson) - size
    if rng.random() < noise.on_answer:
        low, high = max(1, lesson.answer - 1), max(lesson.answer, len(lesson) - 2)
    start = at + rng.randint(low, max(low, min(high, len(lesson) - 2)))
    size = min(size, at + len(lesson) - start)
    share = 1.0 if rng.random() < noise.all_hidden else max(0.05, rng.random())
    hidden = {i for i in range(1, size) if rng.random() < share} or {size - 1}
    shares = [(share, hidden)]
    if share < 1.0:
        shares.append((1.0 - share, set(range(1, size)) - hidden))
    for block, (t, masked) in enumerate(shares, number):
        scale = min(noise.clip, 1.0 / max(t, 1e-3))
        cells: list[Cell] = []
        for i, token in enumerate(batch.tokens[row, start : start + size].tolist()):
            if i not in masked:
                cells.append((token, start + i, block, 0.0))
                continue
            wrong = share < 1.0 and rng.random() < noise.drafted
            drawn = rng.randrange(FIRST_WORD, vocabulary) if wrong else mask_id
            cells.append((drawn, start + i, block, scale * math.exp(-(i - 1) / noise.decay)))
        yield cells


def draw_canvas(
    batch: Batch, noise: Noise, mask_id: int, vocabulary: int, rng: random.Random
) -> Canvas | None:
    """Blocks of every row with their complements; None for a batch without lessons."""
    rows: list[list[Cell]] = []
    for row in range(len(batch.tokens)):
        mine = [place for place in batch.lessons if place[0] == row]
        blocks: list[list[Cell]] = []
        while mine and len(blocks) < noise.blocks:
            place, control = rng.choice(mine), (mask_id, vocabulary)
            blocks += draw_block(batch, place, len(blocks), noise, control, rng)
        rows.append([cell for block in blocks for cell in block])
    return canvas_of(rows, batch, mask_id)


def canvas_of(rows: Sequence[Sequence[Cell]], batch: Batch, mask_id: int) -> Canvas | None:
    """The cells of each row of a batch side by side; None where there are none."""
    width = max(map(len, rows), default=0)
    if not width:
        return None
    pad: Cell = (mask_id, 0, -1, 0.0)
    full = [[*cells, *[pad] * (width - len(cells))] for cells in rows]
    shown, places, numbers = (
        torch.tensor([[cell[part] for cell in cells] for cells in full]) for part in range(3)
    )
    weights = torch.tensor([[cell[3] for cell in cells] for cells in full])
    return Canvas(shown, batch.tokens.gather(1, places), places, weights, numbers)


def hidden_losses(
    network: Network, batch: Batch, states: Tensor, past: Sequence[Past], canvas: Canvas
) -> Tensor:
    """-log p of every weighty token of a canvas, `[n]`, in the order of `canvas.weights.nonzero()`."""
    device = states.device
    first = canvas.places.clone()
    for places, starts, blocks in zip(canvas.places, first, canvas.block, strict=True):
        for block in blocks.unique():
            starts[blocks == block] = places[blocks == block].min()
    owner = batch.owner.gather(1, canvas.places)
    clean = batch.owner[:, None, :] == owner[:, :, None]
    clean &= torch.arange(batch.tokens.shape[1]) < first[:, :, None]
    inside = canvas.block[:, :, None] == canvas.block[:, None, :]
    mask = torch.cat([clean, inside], dim=2)[:, None].to(device)
    before = (first - 1).clamp(min=0).to(device)
    context = states.gather(1, before[:, :, None].expand(-1, -1, states.shape[-1]))
    positions = batch.positions.gather(1, canvas.places).to(device)
    out = network.denoise(canvas.shown.to(device), context, past, positions, mask)
    row, at = (canvas.weights > 0).nonzero(as_tuple=True)
    return cross_entropy(network, out[row, at], canvas.true[row, at].to(device))


def _denoise(
    network: Network,
    batch: Batch,
    states: Tensor,
    past: Sequence[Past],
    noise: Noise,
    rng: random.Random,
    found: Losses,
) -> None:
    config = network.config
    canvas = draw_canvas(batch, noise, config.special["mask"], config.vocab_size, rng)
    if canvas is not None:
        each = hidden_losses(network, batch, states, past, canvas)
        weights = canvas.weights[canvas.weights > 0].to(each.device)
        found.add("denoise", (each * weights).sum(), float(weights.sum()))
