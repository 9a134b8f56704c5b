"""Train the block denoiser on a frozen trunk, on a CPU or a GPU.

    python -m model.training.denoiser train TEXTS.jsonl --run RUN --steps 8000     (stop and repeat to resume)
    python -m model.training.denoiser export --run RUN --model model/embedded

Responsible for the objective, the loop, exact resume and the export. A step encodes one stretch of source text once
with the frozen trunk and denoises many blocks on it. Each block shows its first token (the anchor), hides the others
by a ratio t ~ U(0, 1) or all of them, and learns to restore the hidden ones; near offsets weigh more, since the
verifier keeps a prefix. `TEXTS.jsonl` has rows `{"path", "text"}` (see `model.training.data`).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from model.cache import KeyValueCache
from model.config import DenoiserConfig, ModelConfig, denoiser_section
from model.denoiser import STEM, Denoiser
from model.transformer import Layer, Transformer
from model.weights import Checkpoint, pack_q8

TRUNK_LAYERS = (12, 18, 24, 29)
BLOCK = 8
CONTEXT = 512
BLOCKS_PER_CONTEXT = 64
ALL_MASKED = 0.6
OFFSET_DECAY = 5.0


class TrainableLayer(nn.Module):
    """The parameters of one layer, started from a layer of the trunk."""

    def __init__(self, weights: Checkpoint, prefix: str) -> None:
        super().__init__()

        def linear(*names: str) -> nn.Linear:
            weight = torch.cat([weights.get(f"{prefix}.{name}.weight") for name in names])
            module = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
            module.weight = nn.Parameter(weight)
            return module

        self.input_norm = nn.Parameter(weights.get(f"{prefix}.input_layernorm.weight"))
        self.qkv = linear("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        self.output = linear("self_attn.o_proj")
        self.post_norm = nn.Parameter(weights.get(f"{prefix}.post_attention_layernorm.weight"))
        self.gate_up = linear("mlp.gate_proj", "mlp.up_proj")
        self.down = linear("mlp.down_proj")

    def layer(self) -> Layer:
        return Layer(
            self.input_norm, self.qkv, self.output, self.post_norm, self.gate_up, self.down
        )


class TrainableDenoiser(nn.Module):
    """All parameters that are trained; `bind` gives the very forward pass that serves."""

    def __init__(self, weights: Checkpoint, config: ModelConfig) -> None:
        super().__init__()
        hidden = config.hidden_size
        self.layers = nn.ModuleList(
            TrainableLayer(weights, f"model.layers.{i}") for i in TRUNK_LAYERS
        )
        self.fuse = nn.Linear(2 * hidden, hidden, bias=False)
        with torch.no_grad():
            self.fuse.weight.copy_(torch.cat([torch.eye(hidden), 0.1 * torch.eye(hidden)], dim=1))
        self.norm = nn.Parameter(weights.get("model.norm.weight"))

    def bind(self, trunk: Transformer, shape: DenoiserConfig) -> Denoiser:
        return Denoiser(
            trunk,
            shape,
            [layer.layer() for layer in self.layers if isinstance(layer, TrainableLayer)],
            self.fuse,
            self.norm,
        )


def sample_blocks(
    ids: Tensor, shape: DenoiserConfig, blocks: int, rng: random.Random
) -> tuple[Tensor, Tensor, Tensor]:
    """Starts `[blocks]`, canvases `[blocks, B]` and the mask of hidden rows `[blocks, B]`."""
    starts = torch.tensor([rng.randrange(16, len(ids) - shape.block) for _ in range(blocks)])
    clean = ids[starts[:, None] + torch.arange(shape.block)]
    hidden = torch.zeros(blocks, shape.block, dtype=torch.bool)
    for row in range(blocks):
        ratio = 1.0 if rng.random() < ALL_MASKED else rng.random()
        count = max(1, math.ceil(ratio * (shape.block - 1)))
        hidden[row, rng.sample(range(1, shape.block), count)] = True
    canvas = clean.masked_fill(hidden, shape.mask_id)
    return starts, canvas, hidden


def block_loss(
    denoiser: Denoiser, ids: Tensor, blocks: int, rng: random.Random, cache: KeyValueCache
) -> tuple[Tensor, dict[str, Any]]:
    """Weighted cross-entropy of the hidden tokens over one context, and figures by offset for all-masked blocks."""
    trunk, shape = denoiser.trunk, denoiser.shape
    size = shape.block
    with torch.no_grad():
        cache.length = 0
        states = trunk.forward(ids, cache)
        cache.length = len(ids)
    starts, canvas, hidden = sample_blocks(ids, shape, blocks, rng)
    context = states[starts - 1].repeat_interleave(size, dim=0)
    positions = (starts[:, None] + torch.arange(size)).flatten()
    sees_context = torch.arange(len(ids))[None, :] < starts.repeat_interleave(size)[:, None]
    same_block = torch.block_diag(*[torch.ones(size, size, dtype=torch.bool)] * blocks)
    allowed = torch.cat([sees_context, same_block.bool()], dim=1)
    out = denoiser.forward(canvas.flatten(), context, cache, positions, allowed)
    rows = hidden.flatten().nonzero().squeeze(1)
    logits = denoiser.logits(out[rows])
    target = ids[positions[rows]]
    losses = F.cross_entropy(logits.float(), target, reduction="none")
    offsets = rows % size
    weight = torch.exp(-(offsets - 1).float() / OFFSET_DECAY)
    loss = (losses * weight).sum() / weight.sum()
    with torch.no_grad():
        full = (hidden.sum(1) == size - 1).repeat_interleave(size)[rows]
        hit = (logits.argmax(-1) == target).float()
        by_offset = {
            str(k): [
                round(float(losses[full & (offsets == k)].mean()), 3),
                round(float(hit[full & (offsets == k)].mean()), 3),
            ]
            for k in (1, 2, 3, 5, 7)
            if bool((full & (offsets == k)).any())
        }
    return loss, by_offset


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Linear warm-up over 100 steps, constant, linear decay over the last quarter."""
    return peak * min(1.0, (step + 1) / 100) * min(1.0, (steps - step) / max(1, steps // 4))


def load_texts(path: Path, tokenizer: Tokenizer) -> list[Tensor]:
    """Token ids of every text of at least one context and a block."""
    texts = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            ids = tokenizer.encode(f"<filename>{row['path']}\n{row['text']}").ids
            if len(ids) > 64 + BLOCK:
                texts.append(torch.tensor(ids, dtype=torch.int32))
    return texts


def sample_context(texts: list[Tensor], weights: list[int], rng: random.Random) -> Tensor:
    text = rng.choices(texts, cum_weights=weights)[0]
    length = min(CONTEXT, len(text))
    start = rng.randrange(len(text) - length + 1)
    return text[start : start + length].long()


def train(args: argparse.Namespace) -> int:
    torch.set_num_threads(args.threads)
    base = args.model
    config = ModelConfig.load(base)
    shape = DenoiserConfig(TRUNK_LAYERS, BLOCK, config.special["mask"])
    config = replace(config, denoiser=shape)
    weights = Checkpoint(base)
    trunk = Transformer.load(weights, config, compute="bfloat16")
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    texts = load_texts(args.texts, tokenizer)
    held_out, texts = texts[::50][:64], [t for i, t in enumerate(texts) if i % 50]
    cumulative = [0]
    for text in texts:
        cumulative.append(cumulative[-1] + len(text))
    cumulative = cumulative[1:]
    print(f"{len(texts)} texts, {cumulative[-1]} tokens; {len(held_out)} held out", flush=True)

    module = TrainableDenoiser(weights, config)
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.01
    )
    args.run.mkdir(parents=True, exist_ok=True)
    state_file = args.run / "state.pt"
    step = 0
    if state_file.exists():
        state = torch.load(state_file, weights_only=True)
        module.load_state_dict(state["module"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
        print(f"resumed at step {step}", flush=True)
    denoiser = module.bind(trunk, shape)
    cache = trunk.new_cache(CONTEXT)
    log = (args.run / "log.jsonl").open("a")
    began = time.monotonic()
    average = 0.0
    while step < args.steps:
        rng = random.Random(step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps, args.lr)
        with torch.autocast("cpu", torch.bfloat16):
            loss, _ = block_loss(
                denoiser, sample_context(texts, cumulative, rng), BLOCKS_PER_CONTEXT, rng, cache
            )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        step += 1
        average = loss.item() if step == 1 else 0.98 * average + 0.02 * loss.item()
        if step % 100 == 0 or step == args.steps:
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                rng = random.Random(-1)
                results = [
                    block_loss(denoiser, text[:CONTEXT].long(), 32, rng, cache)
                    for text in held_out[:16]
                ]
            figures: dict[str, list[list[float]]] = {}
            for _, by_offset in results:
                for k, pair in by_offset.items():
                    figures.setdefault(k, []).append(pair)
            row = {
                "step": step,
                "loss": round(average, 4),
                "held_out": round(sum(r[0].item() for r in results) / len(results), 4),
                "by_offset": {
                    k: [round(sum(col) / len(col), 3) for col in zip(*v, strict=True)]
                    for k, v in figures.items()
                },
                "seconds": round(time.monotonic() - began, 1),
            }
            print(json.dumps(row), flush=True)
            log.write(json.dumps(row) + "\n")
            log.flush()
            state = {
                "module": module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": step,
            }
            torch.save(state, state_file.with_suffix(".tmp"))
            state_file.with_suffix(".tmp").replace(state_file)
    return 0


_NAMES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "output": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


def export(args: argparse.Namespace) -> int:
    """Write `denoiser.safetensors` (8-bit matrices) beside the trunk and name it in `config.json`."""
    config = ModelConfig.load(args.model)
    state = torch.load(args.run / "state.pt", weights_only=True)
    c, module = config, state["module"]
    q, kv = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
    sizes = {"qkv": [q, kv, kv], "gate_up": [c.intermediate_size] * 2}
    tensors: dict[str, Tensor] = {}

    def add(name: str, weight: Tensor) -> None:
        tensors.update({f"{name}.{part}": value for part, value in pack_q8(weight).items()})

    for i in range(len(TRUNK_LAYERS)):
        prefix = f"{STEM}.layers.{i}"
        tensors[f"{prefix}.input_layernorm.weight"] = module[f"layers.{i}.input_norm"]
        tensors[f"{prefix}.post_attention_layernorm.weight"] = module[f"layers.{i}.post_norm"]
        for part, names in _NAMES.items():
            weight = module[f"layers.{i}.{part}.weight"]
            for name, piece in zip(
                names, weight.split(sizes.get(part, [len(weight)])), strict=True
            ):
                add(f"{prefix}.{name}.weight", piece)
    add(f"{STEM}.fuse.weight", module["fuse.weight"])
    tensors[f"{STEM}.norm.weight"] = module["norm"]
    save_file({k: v.contiguous() for k, v in tensors.items()}, args.model / f"{STEM}.safetensors")
    (args.model / f"{STEM}.safetensors").chmod(0o644)
    raw = json.loads((args.model / "config.json").read_text())
    shape = DenoiserConfig(TRUNK_LAYERS, BLOCK, config.special["mask"])
    raw["redraft"]["denoiser"] = denoiser_section(shape)
    (args.model / "config.json").write_text(json.dumps(raw, indent=1) + "\n")
    print(f"exported step {state['step']} to {args.model}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    default = Path(__file__).parents[1] / "embedded"
    run = commands.add_parser("train")
    run.add_argument("texts", type=Path)
    run.add_argument("--steps", type=int, default=8000)
    run.add_argument("--lr", type=float, default=6e-4)
    run.add_argument("--threads", type=int, default=2)
    run.set_defaults(command=train)
    out = commands.add_parser("export")
    out.set_defaults(command=export)
    for command in (run, out):
        command.add_argument("--run", type=Path, required=True, help="folder of the run's state")
        command.add_argument("--model", type=Path, default=default)
    args = parser.parse_args()
    result: int = args.command(args)
    return result


if __name__ == "__main__":
    sys.exit(main())
