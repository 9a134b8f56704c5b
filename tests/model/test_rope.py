"""Rotary positions under the published schemes, against transformers' own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from model.positions import longest, scaling_of
from model.rope import frequencies

SCHEMES = {
    "default": {},
    "linear": {"factor": 4.0},
    "yarn": {"factor": 16.0, "original_max_position_embeddings": 1024, "beta_fast": 32.0},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 1024,
    },
}


def config(kind: str) -> dict[str, Any]:
    rope = {"rope_type": kind, "rope_theta": 500000.0, **SCHEMES[kind]}
    return {"max_position_embeddings": 16384, "rope_parameters": rope}


@pytest.mark.parametrize("kind", SCHEMES)
def test_frequencies_are_the_published_ones(kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    raw = config(kind)
    reference = transformers.LlamaConfig(hidden_size=256, num_attention_heads=4, **raw)
    rotary = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(reference)
    ours, factor = frequencies(64, 500000.0, scaling_of(raw))
    torch.testing.assert_close(ours, rotary.inv_freq, rtol=1e-6, atol=0)
    assert factor == pytest.approx(rotary.attention_scaling)


def test_an_older_key_means_the_same() -> None:
    new = config("llama3")
    old = {
        "max_position_embeddings": 16384,
        "rope_scaling": {"type": "llama3", **SCHEMES["llama3"]},
    }
    a, b = (frequencies(64, 500000.0, scaling_of(raw))[0] for raw in (new, old))
    assert torch.equal(a, b)


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="longrope"):
        scaling_of({"rope_scaling": {"rope_type": "longrope"}})


def test_where_queries_are_scaled_by_place_only_the_first_stretch_is_used() -> None:
    raw = config("yarn")
    assert longest(raw) == 16384
    raw["rope_parameters"]["llama_4_scaling_beta"] = 0.1
    assert longest(raw) == 1024
