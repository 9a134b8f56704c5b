"""A tiny random model, for running what is made for a GPU on any CPU.

Responsible for weights of the right shapes and for a text of random tokens. What it writes is noise.
"""

from __future__ import annotations

import torch

from model.config import DenoiserConfig, ModelConfig
from model.denoiser import Denoiser
from model.linear import PlainLinear
from model.transformer import Layer, Transformer

CONFIG = ModelConfig(
    vocab_size=61,
    hidden_size=32,
    intermediate_size=48,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    rope_theta=10000.0,
    norm_eps=1e-5,
    max_positions=512,
    name="miniature",
)
SHAPE = DenoiserConfig(trunk_layers=(0, 2), block=8, mask_id=8)
TEXT = 600


def miniature(seed: int = 0) -> tuple[Transformer, Denoiser, list[int]]:
    """Trunk, denoiser and a text, the same for equal seeds."""
    generator = torch.Generator().manual_seed(seed)
    c = CONFIG

    def linear(out: int, into: int) -> PlainLinear:
        return PlainLinear(torch.randn(out, into, generator=generator) / into**0.5, None)

    def layer() -> Layer:
        return Layer(
            input_norm=torch.ones(c.hidden_size),
            qkv=linear((c.num_heads + 2 * c.num_kv_heads) * c.head_dim, c.hidden_size),
            output=linear(c.hidden_size, c.num_heads * c.head_dim),
            post_norm=torch.ones(c.hidden_size),
            gate_up=linear(2 * c.intermediate_size, c.hidden_size),
            down=linear(c.hidden_size, c.intermediate_size),
        )

    embedding = torch.randn(c.vocab_size, c.hidden_size, generator=generator)
    norm = torch.ones(c.hidden_size)
    layers = [layer() for _ in range(c.num_layers)]
    head = PlainLinear(embedding, None)
    trunk = Transformer(c, embedding, layers, norm, head, "float32")
    shallow = [layer() for _ in SHAPE.trunk_layers]
    fuse = linear(c.hidden_size, 2 * c.hidden_size)
    denoiser = Denoiser(trunk, SHAPE, shallow, fuse, norm)
    text = torch.randint(9, c.vocab_size, (TEXT,), generator=generator).tolist()
    return trunk, denoiser, text
