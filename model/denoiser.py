"""The block denoiser: fills a canvas of masked tokens in parallel, over the trunk's context.

Responsible for one denoising pass. A few transformer layers read the trunk's keys and values of the context
(token-causal, exact, cached between keystrokes) and see the canvas in both directions; each canvas row also gets the
trunk's last hidden state, which already holds the trunk's view of what comes next. Which rows to commit, and what to do
with the result, is `model.denoise`'s business.

The layout (causal context, bidirectional block) is block diffusion, Arriola et al. 2025 (arXiv 2503.09573); feeding a
drafter with the target model's own features follows EAGLE, Li et al. 2024 (arXiv 2401.15077).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from model.cache import KeyValueCache
from model.config import DenoiserConfig, ModelConfig, ModelError
from model.linear import Compute, Linear, make_linear
from model.transformer import (
    Layer,
    Transformer,
    additive_mask,
    attend,
    joined,
    load_layer,
    rms_norm,
)
from model.weights import Checkpoint

STEM = "denoiser"


@dataclass(slots=True)
class Canvas:
    """What `Denoiser.forward` was asked for, of one sequence; `mask` is added to its scores."""

    tokens: Tensor
    context: Tensor
    cache: KeyValueCache
    positions: Tensor
    mask: Tensor | None

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Read the sequence by the trunk's `layer`, and the canvas, `key` and `value [kv_heads, n, d]`."""
        keys, values = (
            torch.cat([past[layer, None, :, : self.cache.length], own[None].to(past.dtype)], dim=2)
            for past, own in ((self.cache.keys, key), (self.cache.values, value))
        )
        return attend(query.to(keys.dtype), keys, values, self.mask)


class Denoiser:
    """`layers[i]` reads the context through the keys and values of trunk layer `config.denoiser.trunk_layers[i]`."""

    def __init__(
        self,
        trunk: Transformer,
        shape: DenoiserConfig,
        layers: list[Layer],
        fuse: Linear,
        norm: Tensor,
    ):
        self.trunk, self.shape, self.layers, self.fuse, self.norm = trunk, shape, layers, fuse, norm

    @classmethod
    def load(cls, trunk: Transformer, folder: Path, compute: Compute) -> Denoiser | None:
        """The denoiser that belongs to `trunk`, or None if the checkpoint has none."""
        shape = trunk.config.denoiser
        if shape is None:
            return None
        if any(i >= trunk.config.num_layers for i in shape.trunk_layers):
            raise ModelError(f"the denoiser in {folder} names trunk layers that do not exist")
        weights = Checkpoint(folder, STEM)
        layers = [
            load_layer(weights, f"{STEM}.layers.{i}", trunk.config, compute, trunk.device)
            for i in range(len(shape.trunk_layers))
        ]
        fuse = make_linear(weights.get(f"{STEM}.fuse.weight"), None, compute, trunk.device)
        return cls(trunk, shape, layers, fuse, weights.get(f"{STEM}.norm.weight").to(trunk.device))

    def forward(
        self,
        canvas: Tensor,
        context: Tensor,
        cache: KeyValueCache,
        positions: Tensor,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """Hidden states `[n, hidden]`; row `i` predicts the token in its own place.

        `canvas [n]` token ids, mask id where undecided; `context [n, hidden]` the trunk's last hidden state before
        the canvas; `positions [n]`; `allowed [n, cache.length + n] bool`, None for the whole context and canvas.
        """
        mask = additive_mask(allowed, self.trunk.config.groups, cache.keys.dtype)
        asked = Canvas(canvas, context, cache, positions, mask)
        if self.trunk.together is None:
            return self._canvases([asked])[0]
        return self.trunk.together.step(self._canvases, asked, rows=len(canvas))

    def _canvases(self, canvases: Sequence[Canvas]) -> Sequence[Tensor]:
        """`forward` of some canvases: their rows lie one behind the other."""
        c: ModelConfig = self.trunk.config
        counts = [len(one.tokens) for one in canvases]
        positions = joined([one.positions for one in canvases])
        cos, sin = self.trunk.cos[positions], self.trunk.sin[positions]
        embedded = self.trunk.embedding[joined([one.tokens for one in canvases])].float()
        x = self.fuse(torch.cat([embedded, joined([one.context for one in canvases])], dim=-1))
        x = x.float()

        def mix(source: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            parts = zip(
                canvases, q.split(counts), k.split(counts, 1), v.split(counts, 1), strict=True
            )
            return joined([one.attend(source, *part) for one, *part in parts])

        for layer, source in zip(self.layers, self.shape.trunk_layers, strict=True):
            x = layer.run(x, c, cos, sin, partial(mix, source))
        return rms_norm(x, self.norm, c.norm_eps).split(counts)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits `[n, vocab]` through the trunk's head."""
        return self.trunk.head(hidden)
