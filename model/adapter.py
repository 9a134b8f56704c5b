"""Low-rank adapters on disk, added to a checkpoint's weights as they are read.

Responsible for the files `adapter_config.json` and `adapter_model.safetensors` in the layout of the peft library. Knows
nothing of how an adapter is trained or what the weights are for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.config import ModelError
from model.weights import Checkpoint

CONFIG = "adapter_config.json"
STEM = "adapter_model"
PREFIX = "base_model.model."


class AdaptedCheckpoint(Checkpoint):
    """A checkpoint folder with the adapter that lies in it, if any.

    Raises `ModelError` when a file is missing, damaged or does not fit.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.adapter: Checkpoint | None = None
        self.scale = 1.0
        path = folder / CONFIG
        if path.exists():
            try:
                raw = json.loads(path.read_text(encoding="utf-8"))
                self.scale = float(raw["lora_alpha"]) / float(raw["r"])
            except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
                raise ModelError(f"{path} does not describe an adapter: {error}") from error
            self.adapter = Checkpoint(folder, STEM)

    def factors(self, name: str) -> tuple[Tensor, Tensor] | None:
        """`down [r, in]` and `up [out, r]` of a weight, the scale worked into `up`; None without an adapter."""
        stem = PREFIX + name.removesuffix(".weight")
        if self.adapter is None or f"{stem}.lora_A.weight" not in self.adapter:
            return None
        down = self.adapter.get(f"{stem}.lora_A.weight")
        return down, self.adapter.get(f"{stem}.lora_B.weight") * self.scale

    def get(self, name: str) -> Tensor:
        """One tensor, unpacked to float32, with what the adapter adds to it."""
        weight = super().get(name)
        factors = self.factors(name)
        if factors is None:
            return weight
        down, up = factors
        if (up.shape[0], down.shape[1]) != tuple(weight.shape):
            raise ModelError(f"the adapter in {self.folder} does not fit the tensor {name}")
        return torch.addmm(weight, up, down)


def save_adapter(factors: Mapping[str, tuple[Tensor, Tensor]], folder: Path, base: str) -> None:
    """Write `down [r, in]` and `up [out, r]` by weight name, in float16; all must have the same rank."""
    tensors: dict[str, Tensor] = {}
    for name, (down, up) in factors.items():
        stem = PREFIX + name.removesuffix(".weight")
        tensors[f"{stem}.lora_A.weight"] = down.half().contiguous()
        tensors[f"{stem}.lora_B.weight"] = up.half().contiguous()
    ranks = {down.shape[0] for down, _ in factors.values()}
    if len(ranks) != 1:
        raise ValueError(f"one rank is needed, not {sorted(ranks)}")
    rank = ranks.pop()
    save_file(tensors, folder / f"{STEM}.safetensors")
    (folder / f"{STEM}.safetensors").chmod(0o644)
    about = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({name.split(".")[-2] for name in factors}),
        "layers_to_transform": sorted({int(name.split(".")[2]) for name in factors}),
    }
    (folder / CONFIG).write_text(json.dumps(about, indent=1) + "\n")
