"""Tiny random models for tests that need a forward pass but no trained weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from model.bundle import EMBEDDED, Bundle, control_ids
from model.cache import PrefixCache
from model.config import DenoiserConfig, ModelConfig
from model.denoise import Decoder, Decoding
from model.denoiser import Denoiser
from model.tokenizer import Tokenizer
from model.transformer import Layer, PlainLinear, Transformer

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


def real_tokenizer() -> Tokenizer:
    config = ModelConfig.load(EMBEDDED)
    return Tokenizer(EMBEDDED / "tokenizer.json", list(control_ids(config)))


def random_bundle(decoding: Decoding = "refine") -> Bundle:
    """The real tokenizer over a tiny random trunk: prompts are real, answers are noise."""
    embedded = ModelConfig.load(EMBEDDED)
    config = replace(
        CONFIG, vocab_size=embedded.vocab_size, max_positions=4096, special=embedded.special
    )
    tokenizer, trunk = real_tokenizer(), random_trunk(config)
    denoiser = random_denoiser(trunk)
    decoder = Decoder(trunk, tokenizer, denoiser, decoding)
    return Bundle(Path("tiny"), config, tokenizer, trunk, denoiser, PrefixCache(config), decoder)
