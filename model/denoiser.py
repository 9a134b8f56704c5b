"""The block denoiser: fills a canvas of masked tokens in parallel, over the trunk's context.

Responsible for one denoising pass. A few transformer layers read the trunk's keys and values of the context
(token-causal, exact, cached between keystrokes) and see the canvas in both directions; each canvas row also gets the
trunk's last hidden state, which already holds the trunk's view of what comes next. Which rows to commit, and what to do
with the result, is `model.denoise`'s business.

The layout (causal context, bidirectional block) is block diffusion, Arriola et al. 2025 (arXiv 2503.09573); feeding a
drafter with the target model's own features follows EAGLE, Li et al. 2024 (arXiv 2401.15077).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from model.cache import KeyValueCache
from model.config import DenoiserConfig, ModelConfig, ModelError
from model.linear import Compute, Linear, make_linear
from model.transformer import Layer, Transformer, additive_mask, attend, load_layer, rms_norm
from model.weights import Checkpoint

STEM = "denoiser"


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
        c: ModelConfig = self.trunk.config
        length = cache.length
        cos, sin = self.trunk.cos[positions], self.trunk.sin[positions]
        embedded = self.trunk.embedding[canvas].float()
        mask = additive_mask(allowed, c.groups, cache.keys.dtype)
        x = self.fuse(torch.cat([embedded, context], dim=-1)).float()

        def mix(source: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = (
                torch.cat([past[source, None, :, :length], own[None].to(past.dtype)], dim=2)
                for past, own in ((cache.keys, k), (cache.values, v))
            )
            return attend(q.to(keys.dtype), keys, values, mask)

        for layer, source in zip(self.layers, self.shape.trunk_layers, strict=True):
            x = layer.run(x, c, cos, sin, partial(mix, source))
        return rms_norm(x, self.norm, c.norm_eps)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits `[n, vocab]` through the trunk's head."""
        return self.trunk.head(hidden)
