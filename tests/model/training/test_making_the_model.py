"""The commands that made the embedded model, on tiny inputs."""

from __future__ import annotations

import pytest
import torch


def test_unpermute_undoes_the_interleaving_of_rotary_halves() -> None:
    pytest.importorskip("gguf")
    from model.training.convert import unpermute

    heads, half = 2, 3
    rows = torch.arange(heads * 2 * half).view(-1, 1)
    # llama.cpp lays row (h, i, j) of the halves j at (h, i * 2 + j)
    stored = rows.view(heads, 2, half, 1).transpose(1, 2).reshape(-1, 1)
    assert torch.equal(unpermute(stored, heads), rows)


def test_repacked_blocks_keep_their_values() -> None:
    pytest.importorskip("gguf")
    import numpy as np
    from gguf import GGMLQuantizationType, dequantize, quantize

    from model.training.convert import repack
    from model.weights import unpack_q8

    weight = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    data = quantize(weight, GGMLQuantizationType.Q8_0)
    parts = repack(data, GGMLQuantizationType.Q8_0)
    expected = dequantize(data, GGMLQuantizationType.Q8_0)
    np.testing.assert_array_equal(unpack_q8(parts["q8"], parts["scale"]).numpy(), expected)
