"""One forward pass for the Llama, Qwen2 and Qwen3 shapes, on packed or plain weights.

Responsible for turning token ids into hidden states over a key/value cache under any attention pattern, and hidden
states into logits. Knows nothing of decoding, prompts or text. A request's branches (drafts to be judged, a canvas) are
rows of the same pass, told apart by the attention pattern; passes of several requests share the products with weights,
and each reads its own cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from model.cache import KeyValueCache
from model.config import ModelConfig, Quantize
from model.linear import Compute, Linear, Peaks, make_linear
from model.rope import frequencies
from model.weights import Checkpoint

if TYPE_CHECKING:
    from model.together import Together

EMBEDDING_TYPES = {"float32": torch.float32, "float16": torch.float16}


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x.float(), (x.shape[-1],), weight, eps)


def rope_tables(config: ModelConfig, device: torch.device) -> tuple[Tensor, Tensor]:
    """cos and sin, `[2 * max_positions, head_dim]`, for the half-rotation layout; position -1 is the last row."""
    turns, factor = frequencies(config.head_dim, config.rope_theta, config.rope_scaling)
    ahead = torch.arange(config.max_positions).float()
    positions = torch.cat([ahead, ahead - config.max_positions])
    angles = torch.outer(positions, turns)
    angles = torch.cat([angles, angles], dim=-1)
    return (factor * angles.cos()).to(device), (factor * angles.sin()).to(device)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary positions to `x [n, heads, head_dim]`; `cos`, `sin` are `[n, head_dim]`."""
    first, second = x.chunk(2, dim=-1)
    return x * cos.unsqueeze(1) + torch.cat([-second, first], dim=-1) * sin.unsqueeze(1)


def additive_mask(allowed: Tensor | None, groups: int, dtype: torch.dtype) -> Tensor | None:
    """What `attend` adds to its scores, `[..., groups * n, m]`: 0 where `allowed [..., n, m]`, else minus infinity."""
    if allowed is None:
        return None
    mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return torch.cat([mask.masked_fill_(~allowed, float("-inf"))] * groups, dim=-2)


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Grouped-query attention in each of some sequences, `[slots * n, heads * head_dim]`.

    `query [slots * n, heads, head_dim]`, `keys`/`values [slots, kv_heads, m, head_dim]`, `mask` from `additive_mask`,
    with an axis for heads where it has one for slots. Query heads of one group are laid along the row axis, so that
    keys and values are never copied.
    """
    slots, kv_heads = keys.shape[:2]
    total, heads, dim = query.shape
    n, groups = total // slots, heads // kv_heads
    rows = query.reshape(slots, n, kv_heads, groups, dim).permute(0, 2, 3, 1, 4)
    rows = rows.reshape(slots, kv_heads, groups * n, dim)
    out = F.scaled_dot_product_attention(rows, keys, values, attn_mask=mask)
    out = out.view(slots, kv_heads, groups, n, dim).permute(0, 3, 1, 2, 4)
    return out.reshape(total, heads * dim)


Mix = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From query, key and value of a layer, as `Layer.project` gives them, to what each row has read,
`[n, heads * head_dim]`."""


@dataclass(slots=True)
class Layer:
    """Weights of one transformer layer; q, k, v and gate, up are fused."""

    input_norm: Tensor
    qkv: Linear
    output: Linear
    post_norm: Tensor
    gate_up: Linear
    down: Linear
    q_norm: Tensor | None = None
    k_norm: Tensor | None = None

    def project(
        self, x: Tensor, config: ModelConfig, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated query `[n, heads, d]`, rotated key and value `[kv_heads, n, d]` of the normed input."""
        c = config
        n = x.shape[0]
        fused = self.qkv(rms_norm(x, self.input_norm, c.norm_eps)).float()
        heads = fused.view(n, c.num_heads + 2 * c.num_kv_heads, c.head_dim)
        qk, v = heads.tensor_split([c.num_heads + c.num_kv_heads], dim=1)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = qk.tensor_split([c.num_heads], dim=1)
            q, k = rms_norm(q, self.q_norm, c.norm_eps), rms_norm(k, self.k_norm, c.norm_eps)
            qk = torch.cat([q, k], dim=1)
        q, k = rotate(qk, cos, sin).tensor_split([c.num_heads], dim=1)
        return q, k.transpose(0, 1), v.transpose(0, 1)

    def run(self, x: Tensor, config: ModelConfig, cos: Tensor, sin: Tensor, mix: Mix) -> Tensor:
        """`x [n, hidden]` behind this layer."""
        x = x + self.output(mix(*self.project(x, config, cos, sin))).float()
        return x + self.feed_forward(x, config.norm_eps)

    def feed_forward(self, x: Tensor, eps: float) -> Tensor:
        gate, up = self.gate_up(rms_norm(x, self.post_norm, eps)).float().chunk(2, dim=-1)
        return self.down(F.silu(gate) * up).float()


def load_layer(
    weights: Checkpoint,
    prefix: str,
    config: ModelConfig,
    compute: Compute,
    device: torch.device,
    peaks: Peaks | None = None,
    quantize: Quantize | None = None,
) -> Layer:
    """The layer whose tensors are named `{prefix}.…` in Hugging Face's way."""

    def fused(part: str, *names: str) -> Linear:
        peak = peaks.get(f"{prefix}.{part}") if peaks else None
        parts = [f"{prefix}.{name}" for name in names]
        weight = torch.cat([weights.get(f"{part}.weight") for part in parts])
        biases = [f"{part}.bias" for part in parts]
        bias = torch.cat([weights.get(b) for b in biases]) if biases[0] in weights else None
        return make_linear(weight, bias, compute, device, peak, quantize)

    def norm(name: str) -> Tensor:
        return weights.get(f"{prefix}.{name}.weight").to(device)

    return Layer(
        input_norm=norm("input_layernorm"),
        qkv=fused("qkv", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        output=fused("output", "self_attn.o_proj"),
        post_norm=norm("post_attention_layernorm"),
        gate_up=fused("gate_up", "mlp.gate_proj", "mlp.up_proj"),
        down=fused("down", "mlp.down_proj"),
        q_norm=norm("self_attn.q_norm") if config.qk_norm else None,
        k_norm=norm("self_attn.k_norm") if config.qk_norm else None,
    )


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Rows of some tensors, one behind the other."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


@dataclass(slots=True)
class Pass:
    """What `Transformer.forward` was asked for, of one sequence; `mask` is added to its scores."""

    tokens: Tensor
    cache: KeyValueCache
    positions: Tensor
    mask: Tensor | None

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Write `key` and `value [kv_heads, n, d]` of a layer behind the sequence, and read all of it."""
        start = self.cache.length
        end = start + len(self.tokens)
        keys, values = self.cache.keys[layer, None], self.cache.values[layer, None]
        keys[0, :, start:end] = key.to(keys.dtype)
        values[0, :, start:end] = value.to(values.dtype)
        return attend(query.to(keys.dtype), keys[:, :, :end], values[:, :, :end], self.mask)


class Transformer:
    """The causal trunk. `forward` may be called under any attention pattern; nothing in it assumes decoding order.

    Where `together` is set, requests that it runs side by side share passes.
    """

    together: Together | None = None

    def __init__(
        self,
        config: ModelConfig,
        embedding: Tensor,
        layers: list[Layer],
        norm: Tensor,
        head: Linear,
        compute: Compute,
    ) -> None:
        self.config = config
        self.embedding, self.layers, self.norm, self.unembed = embedding, layers, norm, head
        self.compute = compute
        self.device = embedding.device
        self.cos, self.sin = rope_tables(config, self.device)

    @classmethod
    def load(
        cls,
        weights: Checkpoint,
        config: ModelConfig,
        compute: Compute = "float32",
        device: torch.device | str = "cpu",
        peaks: Peaks | None = None,
        quantize: Quantize | None = None,
    ) -> Transformer:
        """Build the trunk from a checkpoint; raises `ModelError` for missing or damaged tensors.

        `peaks` make int8 exact enough; see `model.linear`. `quantize` rounds the layers' weights, not embedding and
        head.
        """
        device = torch.device(device)
        embedding = weights.get("model.embed_tokens.weight")
        output = embedding if config.tie_embeddings else weights.get("lm_head.weight")
        layers = [
            load_layer(weights, f"model.layers.{i}", config, compute, device, peaks, quantize)
            for i in range(config.num_layers)
        ]
        return cls(
            config,
            embedding.to(device, EMBEDDING_TYPES.get(compute, torch.bfloat16)),
            layers,
            weights.get("model.norm.weight").to(device),
            make_linear(output, None, compute, device, peaks.get("lm_head") if peaks else None),
            compute,
        )

    def new_cache(self, capacity: int) -> KeyValueCache:
        dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        return KeyValueCache(self.config, capacity, self.device, dtype)

    def forward(
        self,
        tokens: Tensor,
        cache: KeyValueCache,
        positions: Tensor | None = None,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """Hidden states after the last norm, `[n, hidden]` float32.

        `tokens [n]` are written behind the cache's sequence (call `cache.commit` to keep them). By default they
        continue it causally; `positions [n]` and `allowed [n, length + n] bool` describe any other pattern.
        """
        n, start = tokens.shape[0], cache.length
        cache.reserve(n)
        if positions is None:
            positions = torch.arange(start, start + n, device=self.device)
        if allowed is None and n > 1:
            allowed = torch.ones(n, start + n, dtype=torch.bool, device=self.device).tril(start)
        mask = additive_mask(allowed, self.config.groups, cache.keys.dtype)
        asked = Pass(tokens, cache, positions, mask)
        if self.together is None:
            return self._passes([asked])[0]
        return self.together.step(self._passes, asked, rows=n, rank=1)

    def _passes(self, passes: Sequence[Pass]) -> Sequence[Tensor]:
        """`forward` of some sequences: their rows lie one behind the other."""
        c = self.config
        counts = [len(one.tokens) for one in passes]
        positions = joined([one.positions for one in passes])
        cos, sin = self.cos[positions], self.sin[positions]
        x = self.embedding[joined([one.tokens for one in passes])].float()

        def mix(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            parts = zip(
                passes, q.split(counts), k.split(counts, 1), v.split(counts, 1), strict=True
            )
            return joined([one.attend(i, *part) for one, *part in parts])

        for i, layer in enumerate(self.layers):
            x = layer.run(x, c, cos, sin, partial(mix, i))
        return rms_norm(x, self.norm, c.norm_eps).split(counts)

    def head(self, hidden: Tensor) -> Tensor:
        """Logits `[n, vocab]` float32 of hidden states `[n, hidden]`."""
        if self.together is None:
            return self._heads([hidden])[0]
        return self.together.step(self._heads, hidden, rows=len(hidden))

    def _heads(self, states: Sequence[Tensor]) -> Sequence[Tensor]:
        logits = self.unembed(joined(states)).float()
        return logits.split([len(one) for one in states])
