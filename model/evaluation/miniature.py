"""Tiny random models, for running on any CPU what is made for large ones.

Responsible for weights of the right shapes and for a text of random tokens. What they write is noise.
"""

from __future__ import annotations

import torch

from model.config import DenoiserConfig, ModelConfig
from model.denoiser import Denoiser
from model.linear import PlainLinear
from model.transformer import Layer, Transformer

CONFIG = ModelConfig(
    vocab_size=97,
    hidden_size=32,
    intermediate_size=48,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    rope_theta=10000.0,
    norm_eps=1e-5,
    max_positions=256,
)
TEXT = 600


def random_layer(config: ModelConfig, generator: torch.Generator) -> Layer:
    c = config

    def linear(out: int, into: int) -> PlainLinear:
        return PlainLinear(torch.randn(out, into, generator=generator) / into**0.5, None)

    return Layer(
        input_norm=torch.ones(c.hidden_size),
        qkv=linear((c.num_heads + 2 * c.num_kv_heads) * c.head_dim, c.hidden_size),
        output=linear(c.hidden_size, c.num_heads * c.head_dim),
        post_norm=torch.ones(c.hidden_size),
        gate_up=linear(2 * c.intermediate_size, c.hidden_size),
        down=linear(c.hidden_size, c.intermediate_size),
    )


def random_trunk(config: ModelConfig = CONFIG, seed: int = 0) -> Transformer:
    generator = torch.Generator().manual_seed(seed)
    embedding = torch.randn(config.vocab_size, config.hidden_size, generator=generator)
    layers = [random_layer(config, generator) for _ in range(config.num_layers)]
    norm = torch.ones(config.hidden_size)
    return Transformer(config, embedding, layers, norm, PlainLinear(embedding, None), "float32")


def random_denoiser(trunk: Transformer, block: int = 6, seed: int = 1) -> Denoiser:
    generator = torch.Generator().manual_seed(seed)
    size = trunk.config.hidden_size
    fuse = PlainLinear(torch.randn(size, 2 * size, generator=generator) / size, None)
    layers = [random_layer(trunk.config, generator) for _ in range(2)]
    return Denoiser(trunk, DenoiserConfig((0, 2), block, 8), layers, fuse, torch.ones(size))


def miniature(seed: int = 0) -> tuple[Transformer, Denoiser, list[int]]:
    """Trunk, denoiser and a text, the same for equal seeds."""
    trunk = random_trunk(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    text = torch.randint(9, CONFIG.vocab_size, (TEXT,), generator=generator).tolist()
    return trunk, random_denoiser(trunk, block=8), text
