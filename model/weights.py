"""Weights on disk: sharded safetensors, plain or packed in 4 and 8 bits.

Responsible for reading and writing tensors and for the packed layouts. Knows nothing of what the tensors are for.

Packed layouts (groups of 32 consecutive inputs share one scale; `w` is `[out, in]`):

* `w.q4 [out, in/2] uint8`, `w.scale [out, in/32] f16`, `w.min [out, in/32] f16`: `w = q * scale + min`, the values of
  GGUF's Q4_1, so a Q4_1 checkpoint is kept without loss. The low nibble of byte `j` of a group is its input `j`, the
  high nibble its input `j + 16`.
* `w.q8 [out, in] int8`, `w.scale [out, in/32] f16`: `w = q * scale`, the values of GGUF's Q8_0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from model.config import ModelError

GROUP = 32
PARTS = (".q4", ".q8", ".scale", ".min")
SHARD_BYTES = 44_000_000


def unpack_q4(q4: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """`[out, in/2]` nibbles to `[out, in]` float32."""
    rows = q4.shape[0]
    groups = q4.view(rows, -1, GROUP // 2)
    values = torch.cat([groups & 0x0F, groups >> 4], dim=-1).float()
    return (values * scale.float().unsqueeze(-1) + minimum.float().unsqueeze(-1)).view(rows, -1)


def pack_q4(weight: Tensor) -> dict[str, Tensor]:
    """Round `[out, in]` float32 to the 4-bit layout; returns the parts by suffix."""
    rows = weight.shape[0]
    groups = weight.float().view(rows, -1, GROUP)
    low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    scale = ((high - low) / 15).half()
    low = low.half()
    step = scale.float().clamp(min=1e-8)
    q = ((groups - low.float()) / step).round().clamp(0, 15).to(torch.uint8)
    half = GROUP // 2
    packed = q[..., :half] | (q[..., half:] << 4)
    return {"q4": packed.reshape(rows, -1), "scale": scale.squeeze(-1), "min": low.squeeze(-1)}


def unpack_q8(q8: Tensor, scale: Tensor) -> Tensor:
    """`[out, in]` int8 to float32."""
    rows = q8.shape[0]
    groups = q8.view(rows, -1, GROUP).float()
    return (groups * scale.float().unsqueeze(-1)).view(rows, -1)


def pack_q8(weight: Tensor) -> dict[str, Tensor]:
    """Round `[out, in]` float32 to the 8-bit layout; returns the parts by suffix."""
    rows = weight.shape[0]
    groups = weight.float().view(rows, -1, GROUP)
    scale = (groups.abs().amax(-1, keepdim=True) / 127).half()
    q = (groups / scale.float().clamp(min=1e-8)).round().clamp(-127, 127).to(torch.int8)
    return {"q8": q.reshape(rows, -1), "scale": scale.squeeze(-1)}


def save_sharded(tensors: Mapping[str, Tensor], folder: Path, stem: str = "model") -> None:
    """Write `tensors` as safetensors shards of at most `SHARD_BYTES` with a Hugging Face index."""
    save_shards(tensors.items(), folder, SHARD_BYTES, stem)


def save_shards(
    tensors: Iterable[tuple[str, Tensor]], folder: Path, most: int, stem: str = "model"
) -> None:
    """Write named tensors as shards of at most `most` bytes with an index; one shard is in memory at a time.

    A tensor that is larger than that has a shard of its own.
    """
    shards: list[list[str]] = []
    waiting: dict[str, Tensor] = {}
    size = total = 0

    def write() -> None:
        path = folder / f"{stem}-{len(shards) + 1:05d}.safetensors"
        save_file(waiting, path)
        path.chmod(0o644)
        shards.append(list(waiting))
        waiting.clear()

    for name, tensor in tensors:
        bytes_ = tensor.numel() * tensor.element_size()
        if waiting and size + bytes_ > most:
            write()
            size = 0
        waiting[name] = tensor.contiguous()
        size += bytes_
        total += bytes_
    if waiting:
        write()
    weight_map: dict[str, str] = {}
    for number, names in enumerate(shards, 1):
        file = f"{stem}-{number:05d}-of-{len(shards):05d}.safetensors"
        (folder / f"{stem}-{number:05d}.safetensors").replace(folder / file)
        weight_map.update(dict.fromkeys(names, file))
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / f"{stem}.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


class Checkpoint:
    """The tensors of a folder by name, memory-mapped and unpacked on request.

    Raises `ModelError` when a file is missing, truncated or not safetensors.
    """

    def __init__(self, folder: Path, stem: str = "model") -> None:
        self.folder = folder
        index = folder / f"{stem}.safetensors.index.json"
        single = folder / f"{stem}.safetensors"
        if index.exists():
            try:
                self._files: dict[str, str] = json.loads(index.read_text())["weight_map"]
            except (ValueError, KeyError, TypeError) as error:
                raise ModelError(f"{index} is not a weight index: {error}") from error
        elif single.exists():
            self._files = dict.fromkeys(self._open(single.name).keys(), single.name)
        else:
            raise ModelError(
                f"no weights in {folder}: neither {index.name} nor {single.name} exists"
            )
        self._handles = {file: self._open(file) for file in sorted(set(self._files.values()))}

    def _open(self, file: str) -> safe_open:
        path = self.folder / file
        try:
            return safe_open(path, framework="pt", device="cpu")
        except FileNotFoundError:
            raise ModelError(f"weights are incomplete: {path} is missing") from None
        except (SafetensorError, OSError) as error:
            size = path.stat().st_size if path.exists() else 0
            raise ModelError(f"{path} ({size} bytes) is truncated or damaged: {error}") from error

    def __contains__(self, name: str) -> bool:
        return name in self._files or f"{name}.q4" in self._files or f"{name}.q8" in self._files

    def __iter__(self) -> Iterator[str]:
        """Stored names, packed parts included."""
        return iter(self._files)

    def names(self) -> set[str]:
        """Names of the tensors, whether they are stored packed or not."""
        return {name.removesuffix(next(filter(name.endswith, PARTS), "")) for name in self}

    def raw(self, name: str) -> Tensor:
        """One stored tensor as it is on disk."""
        if name not in self._files:
            raise ModelError(f"weights in {self.folder} lack the tensor {name}")
        tensor: Tensor = self._handles[self._files[name]].get_tensor(name)
        return tensor

    def get(self, name: str) -> Tensor:
        """One tensor, unpacked to float32 if it is stored packed."""
        if f"{name}.q4" in self._files:
            return unpack_q4(*(self.raw(f"{name}.{part}") for part in ("q4", "scale", "min")))
        if f"{name}.q8" in self._files:
            return unpack_q8(*(self.raw(f"{name}.{part}") for part in ("q8", "scale")))
        return self.raw(name).float()
