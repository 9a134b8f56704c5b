from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from model import bundle, linear
from model.bundle import EMBEDDED, pick_compute
from model.config import ModelError
from model.evaluation.miniature import CONFIG, random_trunk
from model.linear import PEAKS, Int8Linear, Packed, PlainLinear, Unpacked, bucket, load_peaks
from model.training.peaks import measure


@pytest.mark.parametrize("rows", [1, 7, 65])
def test_int8_is_close_row_by_row_whatever_the_other_rows_hold(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(64, 32, generator=generator)
    x = torch.randn(rows, 32, generator=generator)
    x[0] *= 1000  # an outlier row must not spoil its neighbours
    exact = x @ weight.T
    error = (Int8Linear(weight, None)(x) - exact).abs() / exact.abs().amax(1, keepdim=True)
    assert 0 < float(error.max()) < 0.02


def test_int8_gives_a_row_the_same_product_however_many_are_beside_it_and_packed_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = torch.Generator().manual_seed(1)
    weight, bias = torch.randn(64, 32, generator=generator), torch.randn(64, generator=generator)
    x = torch.randn(65, 32, generator=generator)
    x[2] = 0
    product = Int8Linear(weight, bias, x.abs().amax(0))
    assert isinstance(product.product, Packed if linear.packs_int8() else Unpacked)
    alone = torch.cat([product(row[None]) for row in x])
    torch.testing.assert_close(product(x), alone, atol=1e-4, rtol=1e-5)
    assert torch.equal(product(x)[2], bias)
    monkeypatch.setattr(linear, "packs_int8", lambda: False)
    unpacked = Int8Linear(weight, bias, x.abs().amax(0))
    assert isinstance(unpacked.product, Unpacked)
    torch.testing.assert_close(unpacked(x), alone, atol=1e-4, rtol=1e-5)


def test_a_channel_that_is_large_everywhere_spoils_int8_only_where_its_peak_is_unknown() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(64, 32, generator=generator)
    x = torch.randn(8, 32, generator=generator)
    x[:, 5] *= 300
    weight[:, 5] /= 300
    exact = x @ weight.T

    def error(peak: torch.Tensor | None) -> float:
        return float((Int8Linear(weight, None, peak)(x) - exact).abs().mean() / exact.abs().mean())

    assert error(None) > 0.1
    assert error(x.abs().amax(0)) < 0.02


def test_peaks_are_the_largest_inputs_of_every_product() -> None:
    trunk = random_trunk()
    ids = [[3, 1, 4, 1, 5], [9, 2, 6]]
    plain = random_trunk()
    peaks = measure(trunk, ids)
    assert len(peaks) == 4 * CONFIG.num_layers + 1
    rows = torch.cat([plain.forward(torch.tensor(one), plain.new_cache(8)) for one in ids])
    torch.testing.assert_close(peaks["lm_head"].float(), rows.abs().amax(0), atol=1e-3, rtol=1e-3)
    assert peaks["model.layers.0.down"].shape == (CONFIG.intermediate_size,)


def test_the_embedded_model_tells_its_peaks_and_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    found = load_peaks(EMBEDDED)
    assert found is not None
    assert len(found) == 121
    assert load_peaks(tmp_path) is None
    path = tmp_path / f"{PEAKS}.safetensors"
    save_file({"lm_head": torch.ones(4)}, path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ModelError, match="truncated or damaged"):
        load_peaks(tmp_path)


@pytest.mark.parametrize(
    ("features", "peaks", "expected"),
    [
        ({"vnni"}, True, "int8"),
        ({"vnni"}, False, "float16"),
        (set(), True, "float16"),
        ({"vnni", "amx_tile"}, True, "bfloat16"),
    ],
)
def test_what_a_processor_computes_in(
    monkeypatch: pytest.MonkeyPatch, features: set[str], peaks: bool, expected: str
) -> None:
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("torch has no float16 products on this processor")
    monkeypatch.setattr(bundle, "supports", features.__contains__)
    assert pick_compute(torch.device("cpu"), peaks) == expected


def test_rows_are_padded_to_few_sizes_without_changing_them() -> None:
    assert [bucket(n) for n in (1, 3, 5, 16, 17, 65, 256, 257)] == [1, 3, 8, 16, 32, 96, 256, 384]
    assert len({bucket(n) for n in range(1, 1025)}) <= 24
    weight = torch.randn(6, 32).bfloat16()
    x = torch.randn(5, 32)
    padded = PlainLinear(weight, None)
    assert padded.padded
    torch.testing.assert_close(padded(x), x.bfloat16() @ weight.T, atol=0.05, rtol=0.02)
    assert padded(x).shape == (5, 6)
