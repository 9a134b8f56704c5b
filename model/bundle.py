"""A loaded model: trunk, denoiser, tokenizer, cache and decoder of one checkpoint folder.

Responsible for loading them together on a device and for choosing how to compute there. Knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from model.adapter import AdaptedCheckpoint
from model.cache import PrefixCache
from model.config import ModelConfig, ModelError
from model.denoise import Decoder, Decoding
from model.denoiser import Denoiser
from model.linear import Compute, load_peaks, supports
from model.tokenizer import Tokenizer
from model.transformer import Transformer

EMBEDDED = Path(__file__).parent / "embedded"
CONTROL_IDS = 17


# Rows of a denoised block where each more row costs (docs/LOG.md).
BLOCKS: Mapping[Compute, int] = {"float16": 3, "int8": 3}


@dataclass(slots=True)
class Bundle:
    """Everything that one checkpoint brings; used by one request at a time."""

    folder: Path
    config: ModelConfig
    tokenizer: Tokenizer
    trunk: Transformer
    denoiser: Denoiser | None
    prefixes: PrefixCache
    decoder: Decoder

    @property
    def device(self) -> str:
        return str(self.trunk.device)

    @classmethod
    def load(
        cls,
        folder: Path = EMBEDDED,
        *,
        device: str = "auto",
        compute: Compute | Literal["auto"] = "auto",
        threads: int | None = None,
        decoding: Decoding | Literal["auto"] = "auto",
        max_tokens: int = 4096,
    ) -> Bundle:
        """Load a checkpoint folder; raises `ModelError` with a reason a user can act on.

        `auto` is whatever was measured to be fastest there; all decodings give the same text, but for rounding.
        """
        if threads is not None:
            torch.set_num_threads(threads)
        config = ModelConfig.load(folder)
        where = pick_device(device)
        peaks = load_peaks(folder)
        how: Compute = pick_compute(where, peaks is not None) if compute == "auto" else compute
        control = control_ids(config)
        tokenizer = Tokenizer(folder / "tokenizer.json", control)
        if tokenizer.size > config.vocab_size:
            raise ModelError(f"the tokenizer of {folder} has more tokens than its model")
        with torch.inference_mode():
            trunk = Transformer.load(AdaptedCheckpoint(folder), config, how, where, peaks)
            # The peaks of its inputs are not known.
            denoiser = Denoiser.load(trunk, folder, "float16" if how == "int8" else how)
        dtype = torch.bfloat16 if where.type == "cuda" else torch.float32
        limit = min(max_tokens, config.max_positions)
        prefixes = PrefixCache(config, max_tokens=limit, device=where, dtype=dtype)
        mode: Decoding = pick_decoding(how) if decoding == "auto" else decoding
        return cls(
            folder,
            config,
            tokenizer,
            trunk,
            denoiser,
            prefixes,
            Decoder(trunk, tokenizer, denoiser, mode, block=BLOCKS.get(how)),
        )

    def sibling(self) -> Bundle:
        """The same model with a cache of its own, for a request at the same time."""
        return replace(self, prefixes=self.prefixes.sibling(), decoder=self.decoder.sibling())


def control_ids(config: ModelConfig) -> Iterable[int]:
    """Ids that never appear in text."""
    return sorted({*config.special.values(), *(range(CONTROL_IDS) if config.special else ())})


def pick_device(device: str) -> torch.device:
    """`auto` is the first CUDA device where there is one, else the CPU."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ModelError(f"unknown device {device!r}") from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ModelError(f"device {device!r} is not available: torch sees no CUDA device")
    return chosen


def pick_decoding(compute: Compute) -> Decoding:
    """Block denoising where a few rows cost about what one does; elsewhere drafts from the context (docs/LOG.md)."""
    return "refine" if compute == "float32" else "block"


def pick_compute(device: torch.device, peaks: bool = False) -> Compute:
    """bfloat16 where the processor multiplies it in tiles or the device is a GPU; else int8 where the processor sums
    products of it in one instruction and the checkpoint has `peaks`; else float16 where the library has kernels for it;
    else float32."""
    if device.type == "cuda":
        return "bfloat16"
    if supports("amx_tile"):
        return "bfloat16"
    if peaks and supports("vnni"):
        return "int8"
    packed = device.type == "cpu" and "fbgemm" in torch.backends.quantized.supported_engines
    return "float16" if packed else "float32"
