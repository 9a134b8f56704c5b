"""Products with weights, in whatever precision is fastest on a device.

Responsible for the four ways to compute `x @ weight.T`. Knows nothing of layers.

int8 needs to know the largest input of each channel ("peaks"), measured once on sample texts by `model.training.peaks`
and kept beside the weights; without them outliers cost quality.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from model.config import Quantize
from model.quantize import QuantizedLinear
from model.weights import Checkpoint

Compute = Literal["float32", "float16", "bfloat16", "int8"]
Linear = Callable[[Tensor], Tensor]
Peaks = Mapping[str, Tensor]

PEAKS = "peaks"
LEAST_PEAK = 1e-3
# The range of int8, and where its zero lies in the unsigned bytes that the library multiplies.
LARGEST, ZERO_POINT = 127, 128
# How much of an outlier the weights take over (docs/LOG.md).
MIGRATION = 0.65


def load_peaks(folder: Path) -> Peaks | None:
    """The largest inputs of every product's channels, by name; None if the checkpoint does not tell.

    Raises `ModelError` for a damaged file.
    """
    if not (folder / f"{PEAKS}.safetensors").exists():
        return None
    stored = Checkpoint(folder, PEAKS)
    return {name: stored.get(name) for name in stored}


def bucket(rows: int) -> int:
    """The number of rows, rounded up to one of few sizes."""
    for limit, step in ((4, 1), (16, 4), (64, 16), (256, 32)):
        if rows <= limit:
            return -(-rows // step) * step
    return -(-rows // 128) * 128


class PlainLinear:
    """`x [n, in] -> [n, out]` in the weight's own precision.

    In bfloat16 on a CPU the library keeps a compiled kernel for every number of rows it has met, about 2 MB a forward
    pass; rows are padded to a few sizes, so that memory stays bounded.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.padded = weight.dtype == torch.bfloat16 and weight.device.type == "cpu"

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.shape[0]
        x = x.to(self.weight.dtype)
        if not self.padded:
            return F.linear(x, self.weight, self.bias)
        return F.linear(F.pad(x, (0, 0, 0, bucket(rows) - rows)), self.weight, self.bias)[:rows]


class Float16Linear:
    """`x [n, in] -> [n, out]` on an x86 CPU: float16 weights, float32 activations and sums.

    Half the memory to read of float32; the library has kernels for few rows, where its float32 ones are slow.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.packed = torch.ops.quantized.linear_prepack_fp16(weight.float(), bias)

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = torch.ops.quantized.linear_dynamic_fp16(x.float(), self.packed)
        return product


class Int8Linear:
    """`x [n, in] -> [n, out]` on a CPU: int8 weights with a scale per output, int8 activations with a scale per row.

    `peak [in]` is the largest input of each channel that was met. Channels are scaled so that weights and activations
    share the burden of outliers: SmoothQuant, Xiao et al. 2023 (arXiv 2211.10438).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, peak: Tensor | None = None) -> None:
        self.shrink = None if peak is None else 1 / smoothing(weight, peak)
        if self.shrink is not None:
            weight = weight / self.shrink
        scale = (weight.abs().amax(1) / LARGEST).clamp(min=1e-8)
        rounded = (weight / scale[:, None]).round().to(torch.int8)
        self.bias = bias
        self.product: Linear = Packed(rounded, scale) if packs_int8() else Unpacked(rounded, scale)

    def __call__(self, x: Tensor) -> Tensor:
        x = x.float() if self.shrink is None else x * self.shrink
        peak = x.abs().amax(1, keepdim=True).clamp_(min=1e-6)
        y = self.product(x / peak).mul_(peak)
        return y if self.bias is None else y + self.bias


class Packed:
    """Rows within -1..1 times int8 weights that lie in the order in which a product reads them."""

    def __init__(self, weight: Tensor, scale: Tensor) -> None:
        zero = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():
            # Quantised tensors are to leave the library; `packs_int8` sees when they have.
            warnings.simplefilter("ignore", UserWarning)
            stored = torch._make_per_channel_quantized_tensor(weight, scale, zero, 0)
            self.weight = torch.ops.quantized.linear_prepack(stored, None)

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            x, 1 / LARGEST, ZERO_POINT, self.weight
        )
        return product


class Unpacked:
    """The same where the library packs none: weights are laid out anew for each product."""

    def __init__(self, weight: Tensor, scale: Tensor) -> None:
        self.weight, self.scale = weight.t(), scale / LARGEST

    def __call__(self, x: Tensor) -> Tensor:
        return torch._int_mm((x * LARGEST).round_().to(torch.int8), self.weight) * self.scale


def packs_int8() -> bool:
    """Whether the library has int8 products that do not saturate here."""
    has_tensors = hasattr(torch, "_make_per_channel_quantized_tensor")
    has_product = hasattr(torch.ops.quantized, "linear_with_input_q_dq_qweight_dq_output_fp32")
    packs = "fbgemm" in torch.backends.quantized.supported_engines
    return has_tensors and has_product and packs and supports("vnni")


def supports(feature: str) -> bool:
    """Whether the processor has `amx_tile` or `vnni` (AVX-512), as far as torch can tell."""
    asked = getattr(torch.cpu, f"_is_{feature}_supported", None)
    return asked is not None and bool(asked())


def smoothing(weight: Tensor, peak: Tensor) -> Tensor:
    """What each input is divided by, and its weights multiplied with, `[in]`."""
    burden = weight.abs().amax(0).clamp(min=LEAST_PEAK)
    return peak.float().clamp(min=LEAST_PEAK) ** MIGRATION / burden ** (1 - MIGRATION)


def make_linear(
    weight: Tensor,
    bias: Tensor | None,
    compute: Compute,
    device: torch.device,
    peak: Tensor | None = None,
    quantize: Quantize | None = None,
) -> Linear:
    """A product with `weight [out, in]`; `peak [in]` only serves int8. Weights that are to be quantised are, whatever
    the rest is computed in."""
    if quantize is not None:
        return QuantizedLinear(weight, bias, quantize, device)
    if compute == "int8":
        return Int8Linear(weight, bias, peak)
    if compute == "float16":
        return Float16Linear(weight, bias)
    dtype = torch.bfloat16 if compute == "bfloat16" else torch.float32
    return PlainLinear(weight.to(device, dtype), None if bias is None else bias.to(device, dtype))
