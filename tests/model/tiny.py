"""Tiny random models with the real tokenizer, in memory and on disk, for tests that need no trained weights."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from model.bundle import EMBEDDED, Bundle, control_ids
from model.cache import PrefixCache
from model.config import ModelConfig
from model.denoise import Decoder, Decoding
from model.evaluation.miniature import CONFIG, random_denoiser, random_trunk
from model.tokenizer import Tokenizer
from model.weights import save_sharded


def real_tokenizer() -> Tokenizer:
    config = ModelConfig.load(EMBEDDED)
    return Tokenizer(EMBEDDED / "tokenizer.json", list(control_ids(config)))


def random_bundle(decoding: Decoding = "refine", *, infill: bool = False) -> Bundle:
    """The real tokenizer over a tiny random trunk: prompts are real, answers are noise."""
    embedded = ModelConfig.load(EMBEDDED)
    config = replace(
        CONFIG,
        vocab_size=embedded.vocab_size,
        max_positions=4096,
        special=embedded.special,
        infill=infill,
    )
    tokenizer, trunk = real_tokenizer(), random_trunk(config)
    denoiser = random_denoiser(trunk)
    decoder = Decoder(trunk, tokenizer, denoiser, decoding)
    return Bundle(Path("tiny"), config, tokenizer, trunk, denoiser, PrefixCache(config), decoder)


def save_checkpoint(
    folder: Path, family: str = "llama", layers: int = 3, **sizes: int
) -> ModelConfig:
    """A tiny random checkpoint in the published layout of a family, with the real tokenizer."""
    embedded = ModelConfig.load(EMBEDDED)
    c = {"hidden_size": 32, "intermediate_size": 64, "vocab_size": embedded.vocab_size} | sizes
    hidden, ffn, heads, kv, dim = c["hidden_size"], c["intermediate_size"], 4, 2, 16
    generator = torch.Generator().manual_seed(0)

    def matrix(out: int, into: int) -> torch.Tensor:
        return torch.randn(out, into, generator=generator) / into**0.5

    tensors = {
        "model.embed_tokens.weight": matrix(c["vocab_size"], hidden),
        "model.norm.weight": torch.ones(hidden),
    }
    shapes = {
        "self_attn.q_proj": (heads * dim, hidden),
        "self_attn.k_proj": (kv * dim, hidden),
        "self_attn.v_proj": (kv * dim, hidden),
        "self_attn.o_proj": (hidden, heads * dim),
        "mlp.gate_proj": (ffn, hidden),
        "mlp.up_proj": (ffn, hidden),
        "mlp.down_proj": (hidden, ffn),
    }
    for i in range(layers):
        stem = f"model.layers.{i}"
        for name, shape in shapes.items():
            tensors[f"{stem}.{name}.weight"] = matrix(*shape)
            if family == "qwen2" and name[10] in "qkv":
                tensors[f"{stem}.{name}.bias"] = 0.1 * torch.randn(shape[0], generator=generator)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{stem}.{name}.weight"] = torch.ones(hidden)
        if family == "qwen3":
            for name in ("q_norm", "k_norm"):
                tensors[f"{stem}.self_attn.{name}.weight"] = torch.ones(dim)
    folder.mkdir(parents=True, exist_ok=True)
    save_sharded(tensors, folder)
    shutil.copy(EMBEDDED / "tokenizer.json", folder)
    raw: dict[str, Any] = {
        "model_type": family,
        **c,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": dim,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "redraft": {"name": f"tiny-{family}", "special": dict(embedded.special)},
    }
    (folder / "config.json").write_text(json.dumps(raw))
    return ModelConfig.load(folder)
