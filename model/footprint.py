"""What a checkpoint takes: parameters, bytes on disk, memory while it serves, and the memory that is there.

Responsible for figures that need no weights to be loaded. Knows nothing of families beyond a model's sizes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from model.config import ModelConfig, ModelError, Quantize

BYTES = 2
QUANTIZED: Mapping[Quantize, float] = {"int8": 1.0, "int4": 0.5 + 4 / 64}
"""Bytes a quantised weight takes: in 4 bits every 64 share a scale of four bytes."""
OVERHEAD = 1.15
FIXED = 0.6
GIB = 2**30
LARGEST_HEADER = 100_000_000


def parameters(folder: Path) -> int:
    """How many numbers the safetensors of a folder hold, packed ones as what they stand for."""
    return sum(count for path in folder.glob("*.safetensors") for count in _counts(path))


def _counts(path: Path) -> Iterable[int]:
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > LARGEST_HEADER:
                raise ValueError("its header is too long")
            header = json.loads(file.read(size))
        for name, tensor in header.items():
            if name != "__metadata__" and not name.endswith((".scale", ".min")):
                yield math.prod(tensor["shape"]) * (2 if name.endswith(".q4") else 1)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is not readable safetensors: {error}") from error


def on_disk(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def cache_bytes(config: ModelConfig, tokens: int) -> int:
    """Keys and values of so many tokens."""
    return 2 * config.num_layers * config.num_kv_heads * config.head_dim * tokens * BYTES


def needed_gib(count: int, cache: int = 0) -> float:
    """Memory that a model of so many parameters takes while it serves; two bytes for each, and what torch takes."""
    return FIXED + OVERHEAD * (BYTES * count + cache) / GIB


def quantized_gib(count: int, config: ModelConfig, how: Quantize, cache: int = 0) -> float:
    """The same with quantised layers; embedding and head stay as they are."""
    tables = config.vocab_size * config.hidden_size * (1 if config.tie_embeddings else 2)
    layers = max(count - tables, 0)
    held = QUANTIZED[how] * layers + BYTES * (count - layers)
    return FIXED + OVERHEAD * (held + cache) / GIB


def memory_gib() -> tuple[float | None, float | None]:
    """Memory of the machine and what is free of it; None for what can't be told."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        rows = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        total, free = (int(rows[key].split()[0]) / 2**20 for key in ("MemTotal", "MemAvailable"))
        return total, free
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB, None
    except (ValueError, OSError, AttributeError):
        return None, None


def there_gib() -> tuple[str, float | None]:
    """Where a model would run, and how much memory is free there: the first GPU, else the machine."""
    import torch

    if torch.cuda.is_available():
        free, _ = torch.cuda.mem_get_info(0)
        return torch.cuda.get_device_name(0), free / GIB
    total, free_gib = memory_gib()
    return "this machine", total if free_gib is None else free_gib
