"""Weights in 8 or 4 bits, for a GPU that cannot hold them in 16.

Responsible for products with weights that bitsandbytes, an optional library, holds and multiplies: 8 bits a weight as
in LLM.int8 (Dettmers et al. 2022, arXiv 2208.07339), or 4 as in QLoRA's NF4 (Dettmers et al. 2023, arXiv 2305.14314).
Knows nothing of layers or of checkpoints. It is slower on a CPU than what `model.linear` has; it is there to be tested.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from model.config import ModelError, Quantize

OUTLIER = 6.0
GROUP = 64
"""Weights that share a scale in 4 bits. On a CPU version 0.50.2 of the library reads rows that are no multiple of it
wrongly, without saying so; such rows are filled up with zeros."""
DOWNLOADER = "kernels"
"""With this package bitsandbytes would fetch code from the hub and run it."""

DEVICES = ("cpu", "cuda")
MISSING = (
    "weights of {how} need the library bitsandbytes, which is not installed: "
    "pip install 'redraft[quantize]', in a checkout pip install -e '.[quantize]'"
)


class QuantizedLinear:
    """`x [n, in] -> [n, out]` with weights that were rounded when it was made."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, how: Quantize, device: torch.device
    ) -> None:
        """Raises `ModelError` where the library is missing or cannot use the device."""
        library = bitsandbytes(how)
        if device.type not in DEVICES:
            raise ModelError(f"weights of {how} are for {' and '.join(DEVICES)}, not for {device}")
        cuda = device.type == "cuda"
        self.padding = -weight.shape[1] % GROUP if how == "int4" else 0
        weight = F.pad(weight, (0, self.padding))
        shape = weight.shape[1], weight.shape[0]
        if how == "int8":
            self.dtype = torch.float16 if cuda else torch.float32
            self._product = library.nn.Linear8bitLt(
                *shape,
                bias=bias is not None,
                has_fp16_weights=False,
                threshold=OUTLIER,
                device="meta",
            )
            held = library.nn.Int8Params(
                weight.half().cpu(), requires_grad=False, has_fp16_weights=False
            )
        else:
            self.dtype = torch.bfloat16 if cuda else torch.float32
            self._product = library.nn.Linear4bit(
                *shape,
                bias=bias is not None,
                compute_dtype=self.dtype,
                quant_type="nf4",
                device="meta",
            )
            held = library.nn.Params4bit(
                weight.float().cpu(), requires_grad=False, quant_type="nf4"
            )
        self._product.weight = held
        if bias is not None:
            self._product.bias = torch.nn.Parameter(bias.to(self.dtype), requires_grad=False)
        try:
            self._product = self._product.to(device)
        except Exception as error:
            raise ModelError(f"bitsandbytes cannot round weights on {device}: {error}") from error

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        x = F.pad(x.to(self.dtype), (0, self.padding))
        product: Tensor = self._product(x)
        return product


def bitsandbytes(how: str) -> Any:
    """The library. Raises `ModelError` where it is missing."""
    try:
        with _without(DOWNLOADER):
            import bitsandbytes as library
    except ModuleNotFoundError:
        raise ModelError(MISSING.format(how=how)) from None
    return library


@contextmanager
def _without(module: str) -> Iterator[None]:
    """As if a module were not installed."""
    there = sys.modules.get(module)
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
        if there is not None:
            sys.modules[module] = there
