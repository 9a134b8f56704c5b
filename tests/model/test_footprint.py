"""What a checkpoint takes, told from its files alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from model.config import ModelError
from model.evaluation.miniature import CONFIG
from model.footprint import cache_bytes, memory_gib, needed_gib, on_disk, parameters
from model.weights import pack_q4, pack_q8


def test_parameters_are_counted_packed_ones_too(tmp_path: Path) -> None:
    weight = torch.randn(8, 64)
    packed = {f"a.{k}": v for k, v in pack_q4(weight).items()}
    packed |= {f"b.{k}": v for k, v in pack_q8(weight).items()}
    save_file(packed | {"c": torch.zeros(3, 5), "d": torch.zeros(2)}, tmp_path / "x.safetensors")
    assert parameters(tmp_path) == 2 * 8 * 64 + 15 + 2
    assert on_disk(tmp_path) == (tmp_path / "x.safetensors").stat().st_size


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"\x08" + b"\0" * 7 + b"[1, 2, 3]"])
def test_a_file_that_is_no_safetensors_is_named(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=r"x\.safetensors is not readable"):
        parameters(tmp_path)


def test_memory_grows_with_parameters_and_context() -> None:
    assert needed_gib(8_000_000_000) == pytest.approx(17.7, abs=0.1)
    assert needed_gib(1000, 2**30) - needed_gib(1000) == pytest.approx(1.15)
    assert cache_bytes(CONFIG, 100) == 2 * 3 * 2 * 8 * 100 * 2
    assert cache_bytes(replace(CONFIG, num_kv_heads=4), 100) == 2 * cache_bytes(CONFIG, 100)


def test_memory_is_a_plausible_number() -> None:
    total, free = memory_gib()
    assert total is None or 0.1 < total < 100_000
    assert free is None or total is None or free <= total
