"""From a training's state to a checkpoint folder that serves.

    redraft export --run RUN --recipe cpu --model model/embedded --out FOLDER

Responsible for the files of what was trained: adapters, whole weights, the denoiser, the locate head. Parts that
were not trained are copied as they are. Knows nothing of how they were trained.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.adapter import AdaptedCheckpoint, save_adapter
from model.bundle import EMBEDDED
from model.config import DenoiserConfig, ModelConfig, ModelError, denoiser_section
from model.denoiser import STEM
from model.targets import TargetError, check_folder
from model.training.network import LINEARS, POINTER, Plan
from model.training.recipe import RecipeError, read_recipe
from model.training.train import STATE
from model.weights import Checkpoint, pack_q8, save_sharded

NORMS = {"input_norm": "input_layernorm", "post_norm": "post_attention_layernorm"}
QK_NORMS = {"q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm"}


def outputs(config: ModelConfig) -> dict[str, list[int]]:
    """Rows of each weight that a fused one is made of."""
    kv = config.num_kv_heads * config.head_dim
    return {
        "qkv": [config.num_heads * config.head_dim, kv, kv],
        "output": [config.hidden_size],
        "gate_up": [config.intermediate_size] * 2,
        "down": [config.hidden_size],
    }


def split(fused: Tensor, part: str, config: ModelConfig) -> dict[str, Tensor]:
    """A fused tensor `[out, ...]` by the names of the weights it is made of."""
    pieces = fused.split(outputs(config)[part])
    return dict(zip(LINEARS[part], pieces, strict=True))


def adapter_factors(
    network: Mapping[str, Tensor], plan: Plan, config: ModelConfig, base: AdaptedCheckpoint
) -> dict[str, tuple[Tensor, Tensor]]:
    """The adapter of a run; where the base had one of its own, both are laid side by side (ranks add up)."""
    found: dict[str, tuple[Tensor, Tensor]] = {}
    scale = plan.alpha / plan.rank
    for layer in range(plan.first, config.num_layers):
        for part in LINEARS:
            down = network[f"layers.{layer}.{part}.down"]
            ups = split(network[f"layers.{layer}.{part}.up"] * scale, part, config)
            for name, up in ups.items():
                full = f"model.layers.{layer}.{name}.weight"
                before = base.factors(full)
                if before is not None:
                    found[full] = (
                        torch.cat([before[0], down]),
                        torch.cat([before[1], up], dim=1),
                    )
                else:
                    found[full] = (down, up)
    return found


def layer_weights(
    network: Mapping[str, Tensor], stem: str, target: str, config: ModelConfig
) -> dict[str, Tensor]:
    """Weights and norms of one fully trained layer by their names in a checkpoint."""
    found = {}
    for part in LINEARS:
        for kind in ("weight", "bias"):
            fused = network.get(f"{stem}.{part}.{kind}")
            if fused is not None:
                for name, value in split(fused, part, config).items():
                    found[f"{target}.{name}.{kind}"] = value
    for own, name in (NORMS | (QK_NORMS if config.qk_norm else {})).items():
        found[f"{target}.{name}.weight"] = network[f"{stem}.{own}"]
    return found


def tuned_stack(
    network: Mapping[str, Tensor], plan: Plan, config: ModelConfig, source: Path
) -> dict[str, Tensor]:
    """The denoiser of `source` with what the adapters of a run add to it. Raises `ModelError` where it has none."""
    before = Checkpoint(source, STEM)
    found = {name: before.get(name) for name in before.names()}
    for i in range(len(plan.denoiser)):
        for part in LINEARS:
            down, up = (network[f"stack.{i}.{part}.{side}"] for side in ("down", "up"))
            added = up @ down * (plan.alpha / plan.rank)
            for name, value in split(added, part, config).items():
                found[f"{STEM}.layers.{i}.{name}.weight"] += value
    return found


def packed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices rounded to 8 bits, the rest as it is."""
    found: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if value.dim() == 2 and value.shape[1] % 32 == 0:
            found |= {f"{name}.{part}": tensor for part, tensor in pack_q8(value).items()}
        else:
            found[name] = value.contiguous()
    return found


def export(
    state: Mapping[str, Any], plan: Plan, source: Path, out: Path, *, taught: bool = True
) -> ModelConfig:
    """Write a checkpoint folder `out` that differs from `source` in what was trained; returns its configuration.

    `taught` says that the lessons were in filling in; otherwise the model fills in as it did before.
    """
    config = ModelConfig.load(source)
    network: Mapping[str, Tensor] = state["network"]
    if out.resolve() != source.resolve():
        shutil.copytree(source, out, dirs_exist_ok=True)
    raw = json.loads((out / "config.json").read_text(encoding="utf-8"))
    own = raw.setdefault("redraft", {})
    if plan.tune == "adapters":
        factors = adapter_factors(network, plan, config, AdaptedCheckpoint(source))
        save_adapter(factors, out, str(own.get("base", config.name)))
    elif plan.tune == "full":
        for stale in [*out.glob("model-*.safetensors"), *out.glob("adapter_*")]:
            stale.unlink()
        tensors = {"model.embed_tokens.weight": network["embedding"]}
        for layer in range(config.num_layers):
            tensors |= layer_weights(network, f"layers.{layer}", f"model.layers.{layer}", config)
        tensors["model.norm.weight"] = network["norm"]
        if "head" in network:
            tensors["lm_head.weight"] = network["head"]
        save_sharded(packed(tensors), out)
    if plan.tune != "frozen" and taught:
        own["infill"] = True
    if plan.denoiser:
        if plan.stack == "adapters":
            tensors = tuned_stack(network, plan, config, source)
        else:
            tensors = {f"{STEM}.fuse.weight": network["fuse.weight"]}
            for i in range(len(plan.denoiser)):
                tensors |= layer_weights(network, f"stack.{i}", f"{STEM}.layers.{i}", config)
            tensors[f"{STEM}.norm.weight"] = network["stack_norm"]
        save_file(packed(tensors), out / f"{STEM}.safetensors")
        (out / f"{STEM}.safetensors").chmod(0o644)
        block = config.denoiser.block if config.denoiser else 8
        shape = DenoiserConfig(plan.denoiser, block, config.special["mask"])
        own["denoiser"] = denoiser_section(shape)
    head = {n.removeprefix("locate."): t for n, t in network.items() if n.startswith("locate.")}
    if head:
        save_file({n: t.contiguous() for n, t in head.items()}, out / f"{POINTER}.safetensors")
        (out / f"{POINTER}.safetensors").chmod(0o644)
    (out / "config.json").write_text(json.dumps(raw, indent=1) + "\n")
    return ModelConfig.load(out)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, required=True, help="folder of the run's state")
    parser.add_argument("--recipe", required=True, help="the recipe it followed")
    parser.add_argument("--model", type=Path, default=EMBEDDED, help="what it started from")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint folder to write")


def run(args: argparse.Namespace) -> int:
    """Carry `redraft export` out; returns the exit code."""
    try:
        recipe = read_recipe(args.recipe)
        check_folder(args.out)
        state = torch.load(args.run / STATE, weights_only=True)
        export(state, recipe.plan, args.model, args.out, taught=recipe.preference is None)
    except (ModelError, RecipeError, FileNotFoundError, TargetError) as error:
        print(f"redraft export: {error}", file=sys.stderr)
        return 2
    print(f"step {state['step']} of {args.run} is in {args.out}")
    return 0
