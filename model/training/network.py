"""The trainable network: the trunk with whatever is trained in it, the block denoiser, and the locate head.

Responsible for parameters (all weights, or low-rank adapters on frozen ones) and for the training forward pass over
packed sequences; the equations are those of `model.transformer`, without a cache. Knows nothing of losses, data or
optimizers.

Low-rank adapters follow Hu et al. 2021 (arXiv 2106.09685).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.config import ModelConfig
from model.denoiser import STEM
from model.transformer import Layer, rms_norm, rope_tables
from model.weights import Checkpoint

Tune = Literal["full", "adapters", "frozen"]

POINTER = "locate"
"""The file of the locate head."""

LINEARS = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "output": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


class AdaptedLinear(nn.Module):
    """`x [..., in] -> [..., out]`: a frozen weight plus `up @ down` of rank r, scaled by `alpha / r`.

    `up` starts at zero, so that training starts from the base.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None, rank: int, alpha: float) -> None:
        super().__init__()
        out, into = weight.shape
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("bias", bias, persistent=False)
        self.down = nn.Parameter(torch.randn(rank, into) / math.sqrt(into))
        self.up = nn.Parameter(torch.zeros(out, rank))
        self.scale = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight.to(x.dtype), self.bias)
        return y + F.linear(F.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype)) * self.scale

    def merged(self) -> Tensor:
        """What the adapter adds to the weight, `[out, in]`."""
        return (self.up @ self.down) * self.scale


class FixedLinear(nn.Module):
    """A frozen linear layer."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), self.bias)


def make_linear(
    weight: Tensor, bias: Tensor | None, tune: Tune, rank: int, alpha: float, dtype: torch.dtype
) -> nn.Module:
    if tune == "full":
        module = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        module.weight = nn.Parameter(weight.float())
        if bias is not None:
            module.bias = nn.Parameter(bias.float())
        return module
    weight = weight.to(dtype)
    bias = None if bias is None else bias.to(dtype)
    if tune == "adapters":
        return AdaptedLinear(weight, bias, rank, alpha)
    return FixedLinear(weight, bias)


class TrainableLayer(nn.Module):
    """One transformer layer, started from the layer of a checkpoint named `{prefix}.…` in Hugging Face's way."""

    def __init__(
        self,
        weights: Checkpoint,
        prefix: str,
        config: ModelConfig,
        tune: Tune,
        rank: int = 32,
        alpha: float = 32.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.input_norm: Tensor
        self.post_norm: Tensor
        for part, names in LINEARS.items():
            stems = [f"{prefix}.{name}" for name in names]
            weight = torch.cat([weights.get(f"{stem}.weight") for stem in stems])
            has_bias = f"{stems[0]}.bias" in weights
            bias = torch.cat([weights.get(f"{stem}.bias") for stem in stems]) if has_bias else None
            self.add_module(part, make_linear(weight, bias, tune, rank, alpha, dtype))
        norms = {
            "input_norm": "input_layernorm",
            "post_norm": "post_attention_layernorm",
        }
        if config.qk_norm:
            norms |= {"q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm"}
        for name, stem in norms.items():
            value = weights.get(f"{prefix}.{stem}.weight")
            if tune == "full":
                self.register_parameter(name, nn.Parameter(value.clone()))
            else:
                self.register_buffer(name, value, persistent=False)

    def bind(self) -> Layer:
        """The same parameters as the layer that serves."""
        modules = {part: getattr(self, part) for part in LINEARS}
        return Layer(
            input_norm=self.input_norm,
            post_norm=self.post_norm,
            q_norm=getattr(self, "q_norm", None),
            k_norm=getattr(self, "k_norm", None),
            **modules,
        )


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Grouped-query attention `[b, heads, n, d]`; `mask [b, 1, n, m] bool`.

    On a CPU the library's fused kernel takes twice as long forward and backward as three plain products (docs/LOG.md).
    """
    b, heads, n, dim = q.shape
    kv_heads, m = k.shape[1:3]
    if q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=heads > kv_heads)
    grouped = q.reshape(b, kv_heads, heads // kv_heads * n, dim)
    scores = (grouped @ k.transpose(-1, -2)).view(b, heads, n, m).float() * dim**-0.5
    shares = scores.masked_fill(~mask, float("-inf")).softmax(-1).to(v.dtype)
    return (shares.view(b, kv_heads, -1, m) @ v).view(b, heads, n, dim)


Past = tuple[Tensor, Tensor]
Below = tuple[Tensor, list[Past]]
"""What frozen layers make of a batch: `x [b, n, hidden]`, and each layer's keys and values."""


def run_layer(
    layer: Layer,
    config: ModelConfig,
    x: Tensor,
    turn: tuple[Tensor, Tensor],
    mask: Tensor,
    past: Past | None = None,
) -> tuple[Tensor, Past]:
    """One layer over `x [b, n, hidden]`; `turn` are cos and sin `[b, n, head_dim]`, `mask [b, 1, n, m] bool`.

    `past` are keys and values `[b, kv_heads, m - n, head_dim]` that stand before the layer's own. Returns the new `x`
    and the layer's own keys and values.
    """
    b, n, hidden = x.shape
    cos, sin = (t.reshape(b * n, -1) for t in turn)
    q, k, v = layer.project(x.reshape(b * n, hidden), config, cos, sin)
    q = q.view(b, n, config.num_heads, -1).transpose(1, 2)
    key, value = (t.reshape(config.num_kv_heads, b, n, -1).transpose(0, 1) for t in (k, v))
    keys, values = key, value
    if past is not None:
        keys, values = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
    low = torch.bfloat16 if torch.is_autocast_enabled(x.device.type) else x.dtype
    mixed = attend(q.to(low), keys.to(low), values.to(low), mask)
    x = x + layer.output(mixed.transpose(1, 2).reshape(b, n, -1)).float()
    fed = layer.feed_forward(x.reshape(b * n, hidden), config.norm_eps)
    return x + fed.view(b, n, hidden), (key, value)


class LocateHead(nn.Module):
    """A pointer from the cursor's state to the states at line ends, and to a learned "nowhere"."""

    def __init__(self, hidden: int, width: int = 128) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, width, bias=False)
        self.key = nn.Linear(hidden, width, bias=False)
        self.nowhere = nn.Linear(hidden, 1)

    def forward(self, cursor: Tensor, lines: Tensor) -> Tensor:
        """Scores `[k + 1]` of the lines `[k, hidden]` and of nowhere, last, for one cursor state `[hidden]`."""
        scores = self.key(lines) @ self.query(cursor) / math.sqrt(self.query.out_features)
        return torch.cat([scores, self.nowhere(cursor)])


@dataclass(frozen=True)
class Plan:
    """What is trained: the trunk (`tune`, from layer `first` on), a denoiser stack, a locate head.

    `denoiser` are the trunk layers whose keys and values the stack reads, which it also starts from; empty for none.
    The stack is trained whole, or by adapters like the trunk's (`stack`).
    """

    tune: Tune = "adapters"
    first: int = 0
    rank: int = 32
    alpha: float = 32.0
    denoiser: tuple[int, ...] = ()
    stack: Literal["full", "adapters"] = "full"
    locate: bool = True


class Network(nn.Module):
    """All parts that train together, over one checkpoint; `stack` is a denoiser to start from, `pointer` a locate head.

    Frozen weights are kept in `dtype`, trained ones in float32 and never in the memory of the checkpoint's file, which
    all that is read from it shares. Layers below the first trained one are run without
    gradients.
    """

    cos: Tensor
    sin: Tensor
    norm: Tensor
    embedding: Tensor
    head: Tensor | None

    def __init__(
        self,
        weights: Checkpoint,
        config: ModelConfig,
        plan: Plan,
        dtype: torch.dtype = torch.float32,
        stack: Checkpoint | None = None,
        pointer: Checkpoint | None = None,
    ) -> None:
        super().__init__()
        self.config, self.plan = config, plan
        full = plan.tune == "full"
        self.first = config.num_layers if plan.tune == "frozen" else plan.first

        def layer(index: int) -> TrainableLayer:
            tune = plan.tune if index >= self.first else "frozen"
            return TrainableLayer(
                weights, f"model.layers.{index}", config, tune, plan.rank, plan.alpha, dtype
            )

        self.layers = nn.ModuleList(layer(i) for i in range(config.num_layers))
        embedding = weights.get("model.embed_tokens.weight")
        norm = weights.get("model.norm.weight")
        head = None if config.tie_embeddings else weights.get("lm_head.weight")
        for name, value in (("embedding", embedding), ("norm", norm), ("head", head)):
            if full and value is not None:
                self.register_parameter(name, nn.Parameter(value.clone()))
            else:
                kept = value.to(dtype) if value is not None and value.dim() > 1 else value
                self.register_buffer(name, kept, persistent=False)
        if plan.denoiser:
            self.stack = nn.ModuleList(
                TrainableLayer(
                    stack or weights,
                    self._stem(stack, i, source),
                    config,
                    plan.stack,
                    plan.rank,
                    plan.alpha,
                    dtype,
                )
                for i, source in enumerate(plan.denoiser)
            )
            hidden = config.hidden_size
            self.fuse = nn.Linear(2 * hidden, hidden, bias=False)
            start = torch.cat([torch.eye(hidden), 0.1 * torch.eye(hidden)], dim=1)
            self.fuse.weight.data.copy_(stack.get(f"{STEM}.fuse.weight") if stack else start)
            own_norm = stack.get(f"{STEM}.norm.weight") if stack else norm
            self.stack_norm: Tensor = nn.Parameter(own_norm.clone())
            for value in (self.fuse.weight, self.stack_norm):
                value.requires_grad_(plan.stack == "full")
        self.locate = LocateHead(config.hidden_size) if plan.locate else None
        if self.locate is not None and pointer is not None:
            self.locate.load_state_dict({name: pointer.get(name) for name in pointer})
        cos, sin = rope_tables(config, torch.device("cpu"))
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def compile_layers(self) -> None:
        """Fuse what one layer does; the first passes are slow."""
        for layer in (*self.layers, *(self.stack if self.plan.denoiser else ())):
            layer.compile()

    @staticmethod
    def _stem(stack: Checkpoint | None, number: int, source: int) -> str:
        return f"{STEM}.layers.{number}" if stack else f"model.layers.{source}"

    def turn(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin `[b, n, head_dim]` of `positions [b, n]`."""
        return self.cos[positions], self.sin[positions]

    @torch.no_grad()
    def below(self, tokens: Tensor, positions: Tensor, mask: Tensor) -> Below:
        """The clean stream up to the first layer that is trained."""
        x, kept = F.embedding(tokens, self.embedding).float(), []
        for layer in self.layers[: self.first]:
            assert isinstance(layer, TrainableLayer)
            x, own = run_layer(layer.bind(), self.config, x, self.turn(positions), mask)
            kept.append(own)
        return x, kept

    def encode(
        self, tokens: Tensor, positions: Tensor, mask: Tensor, below: Below | None = None
    ) -> tuple[Tensor, list[Past]]:
        """The clean, causal stream: states `[b, n, hidden]` after the last norm, and each layer's keys and values.

        `below` may be given where the same tokens are read again with other trained weights.
        """
        if below is None and self.first:
            below = self.below(tokens, positions, mask)
        x, under = below or (F.embedding(tokens, self.embedding).float(), [])
        kept = list(under)
        for layer in self.layers[self.first :]:
            assert isinstance(layer, TrainableLayer)
            x, own = run_layer(layer.bind(), self.config, x, self.turn(positions), mask)
            kept.append(own)
        return rms_norm(x, self.norm, self.config.norm_eps), kept

    def denoise(
        self, canvas: Tensor, context: Tensor, past: Sequence[Past], positions: Tensor, mask: Tensor
    ) -> Tensor:
        """The noisy stream: states `[b, m, hidden]` of `canvas [b, m]` over the clean stream's keys and values.

        `context [b, m, hidden]` is the clean state before each row's block, `mask [b, 1, m, n + m]`. Without a stack of
        its own the canvas runs through the trunk's layers, as in open block diffusion models.
        """
        x = F.embedding(canvas, self.embedding).float()
        turn = self.turn(positions)
        if self.plan.denoiser:
            x = self.fuse(torch.cat([x, context], dim=-1)).float()
            layers = [
                (layer, past[i]) for layer, i in zip(self.stack, self.plan.denoiser, strict=True)
            ]
            norm = self.stack_norm
        else:
            layers, norm = list(zip(self.layers, past, strict=True)), self.norm
        for layer, kept in layers:
            assert isinstance(layer, TrainableLayer)
            x, _ = run_layer(layer.bind(), self.config, x, turn, mask, kept)
        return rms_norm(x, norm, self.config.norm_eps)

    def logits(self, states: Tensor) -> Tensor:
        """Logits `[n, vocab]` float32 of states `[n, hidden]`."""
        weight = self.embedding if self.head is None else self.head
        return F.linear(states.to(weight.dtype), weight).float()
