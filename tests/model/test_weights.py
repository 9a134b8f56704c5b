from __future__ import annotations

import pytest
import torch

from model.bundle import EMBEDDED
from model.config import ModelConfig, ModelError
from model.weights import Checkpoint, pack_q4, pack_q8, save_sharded, unpack_q4, unpack_q8


def test_q4_layout_is_low_nibbles_first() -> None:
    q4 = torch.arange(16, dtype=torch.uint8).view(1, 16)  # high nibbles 0, low nibbles 0..15
    out = unpack_q4(q4, torch.tensor([[2.0]]).half(), torch.tensor([[-1.0]]).half())
    assert out[0, :16].tolist() == [2.0 * i - 1 for i in range(16)]
    assert out[0, 16:].tolist() == [-1.0] * 16


@pytest.mark.parametrize(
    ("pack", "unpack", "parts", "worst"),
    [
        (pack_q4, unpack_q4, ("q4", "scale", "min"), 0.034),
        (pack_q8, unpack_q8, ("q8", "scale"), 0.0041),
    ],
)
def test_packing_rounds_to_the_nearest_step(pack, unpack, parts, worst) -> None:
    weight = torch.rand(8, 64, generator=torch.Generator().manual_seed(0))
    packed = pack(weight)
    restored = unpack(*(packed[part] for part in parts))
    assert float((restored - weight).abs().max()) < worst
    again = pack(restored)
    assert float((unpack(*(again[part] for part in parts)) - restored).abs().max()) < worst / 20


def test_shards_and_index(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("model.weights.SHARD_BYTES", 1000)
    tensors = {f"t{i}": torch.full((100,), float(i)) for i in range(5)}
    save_sharded(tensors, tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) == 3
    checkpoint = Checkpoint(tmp_path)
    assert [float(checkpoint.get(f"t{i}")[0]) for i in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ModelError, match="lack the tensor nope"):
        checkpoint.get("nope")


def test_truncated_and_missing_shards_are_named(tmp_path) -> None:
    save_sharded({"t": torch.zeros(1000)}, tmp_path)
    shard = next(tmp_path.glob("*.safetensors"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        ModelError, match=r"model-00001-of-00001.safetensors \(\d+ bytes\) is truncated or damaged"
    ):
        Checkpoint(tmp_path)
    shard.unlink()
    with pytest.raises(ModelError, match="weights are incomplete"):
        Checkpoint(tmp_path)
    with pytest.raises(ModelError, match="no model at"):
        ModelConfig.load(tmp_path)


def test_the_embedded_shards_are_small_and_whole() -> None:
    sizes = [path.stat().st_size for path in EMBEDDED.glob("*.safetensors")]
    assert max(sizes) <= 45_000_000
    assert 90e6 < sum(sizes) < 125e6
    config = ModelConfig.load(EMBEDDED)
    checkpoint = Checkpoint(EMBEDDED)
    assert checkpoint.get("model.embed_tokens.weight").shape == (
        config.vocab_size,
        config.hidden_size,
    )
