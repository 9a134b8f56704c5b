"""A checkpoint of Redraft's own as a folder that vLLM serves: the layout of NVIDIA's Nemotron-Labs-Diffusion.

Responsible for what that layout holds (configuration, unpacked weights, tokenizer), for refusing what it would
misrepresent, and for reading the result back. The trunk goes out whole; the block denoiser, the gate and all that is
not in the network stay behind, and the written card says so. Knows nothing of vLLM's code or of command lines.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from model.adapter import AdaptedCheckpoint
from model.bundle import control_ids
from model.chat import chat_template
from model.config import ModelConfig, ModelError
from model.denoiser import STEM
from model.families import END_NAMES, SIDECAR, is_ours, open_published
from model.layouts import NAMED, UNUSED, nemotron_stored
from model.positions import PLAIN
from model.published import read_json
from model.tokenizer import Tokenizer
from model.transformer import Transformer
from model.vllm_card import card
from model.weights import Checkpoint, save_shards

Precision = Literal["bfloat16", "float16"]

FAMILY = "nemotron"
BLOCK = 32
LARGEST_SHARD = 1_990_000_000  # of tensors; with its header a file stays below 2 GB
DTYPES: Mapping[Precision, torch.dtype] = {"bfloat16": torch.bfloat16, "float16": torch.float16}
UNSHARED = ("attention_factor", "truncate")
NOTICES = ("LICENSE*", "NOTICE*")
SAMPLE = "def area(radius):\n    return 3.14159 * radius ** 2\n\n\ndef volume(radius, height):\n    return"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the logits of the written checkpoint are from those of its source, over the places of a text."""

    places: int
    mean: float
    most: float
    same_first: int


def export(source: Path, out: Path, precision: Precision = "bfloat16") -> ModelConfig:
    """Write `source` into the new or empty folder `out`; returns the source's configuration.

    Raises `ModelError` where the source is damaged or the layout can't hold it, `OSError` where `out` can't be written;
    `out` is then as it was.
    """
    with new_folder(out) as folder:
        config, tokenizer = readable(source)
        weights = AdaptedCheckpoint(source)
        refuse_left_out(config, weights, source)
        tensors = exported_tensors(config, weights, precision, source)
        save_shards(tensors, folder, LARGEST_SHARD)
        ends = end_ids(config, tokenizer)
        write_json(folder / "config.json", published_config(config, ends, precision))
        write_json(folder / "generation_config.json", generation_config(config, ends))
        write_json(folder / "tokenizer.json", marked_tokenizer(tokenizer, source))
        write_json(folder / "tokenizer_config.json", tokenizer_config(config, tokenizer, source))
        write_json(folder / SIDECAR, sidecar(config))
        for notice in (path for pattern in NOTICES for path in source.glob(pattern)):
            shutil.copyfile(notice, folder / notice.name)
        text = card(config, tokenizer, precision, denoises(source))
        (folder / "README.md").write_text(text, encoding="utf-8")
        read_back(folder, config)
    return config


def readable(source: Path) -> tuple[ModelConfig, Tokenizer]:
    """Configuration and tokenizer of a checkpoint that the layout can hold; raises `ModelError`."""
    if not is_ours(source):
        if not (source / "config.json").exists():
            raise ModelError(f"no model at {source}: config.json is missing")
        raise ModelError(
            f"{source} is no checkpoint of Redraft's training; vLLM takes a published model as it is"
        )
    config = ModelConfig.load(source)
    tokenizer = Tokenizer(source / "tokenizer.json", control_ids(config))
    if tokenizer.size > config.vocab_size:
        raise ModelError(f"the tokenizer of {source} has more tokens than its model")
    if reason := misfit(config):
        raise ModelError(f"{source} does not fit the layout of Nemotron-Labs-Diffusion: {reason}")
    for name, id_ in config.special.items():
        if tokenizer.control_name(id_) is None:
            raise ModelError(f"the tokenizer of {source} has no token {id_}, which is its {name}")
    return config, tokenizer


def misfit(config: ModelConfig) -> str | None:
    """Why the layout can't hold a model of these sizes; None where it can."""
    if config.qk_norm:
        return "its queries and keys are normed"
    if config.attention_bias:
        return "its attention has biases"
    if "mask" not in config.special:
        return "its config.json names no mask token"
    if found := [key for key in UNSHARED if key in config.rope_scaling]:
        return f"its rotary positions have {' and '.join(found)}, which vLLM reads otherwise"
    return None


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The tensors of the layout by the names of the forward pass."""
    c = config
    heads, kv = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
    layer = {
        "input_layernorm": (c.hidden_size,),
        "self_attn.q_proj": (heads, c.hidden_size),
        "self_attn.k_proj": (kv, c.hidden_size),
        "self_attn.v_proj": (kv, c.hidden_size),
        "self_attn.o_proj": (c.hidden_size, heads),
        "post_attention_layernorm": (c.hidden_size,),
        "mlp.gate_proj": (c.intermediate_size, c.hidden_size),
        "mlp.up_proj": (c.intermediate_size, c.hidden_size),
        "mlp.down_proj": (c.hidden_size, c.intermediate_size),
    }
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (c.vocab_size, c.hidden_size)}
    for i in range(c.num_layers):
        found |= {f"model.layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    return found | {
        "model.norm.weight": (c.hidden_size,),
        "lm_head.weight": (c.vocab_size, c.hidden_size),
    }


def refuse_left_out(config: ModelConfig, weights: Checkpoint, source: Path) -> None:
    """Raise `ModelError` for tensors that the layout has no place for."""
    left = [n for n in sorted(weights.names() - set(shapes(config))) if not UNUSED.search(n)]
    if left:
        raise ModelError(
            f"weights in {source} have {len(left)} tensors that would be left out, such as {', '.join(left[:NAMED])}"
        )


def exported_tensors(
    config: ModelConfig, weights: Checkpoint, precision: Precision, source: Path
) -> Iterator[tuple[str, Tensor]]:
    """Names and tensors of the layout, unpacked and with the adapter; the head is always written out."""
    for name, shape in shapes(config).items():
        tied = config.tie_embeddings and name == "lm_head.weight"
        value = weights.get("model.embed_tokens.weight" if tied else name)
        if tuple(value.shape) != shape:
            raise ModelError(
                f"the tensor {name} in {source} is {list(value.shape)}, not {list(shape)} as config.json says"
            )
        rounded = value.to(DTYPES[precision])
        if not torch.isfinite(rounded).all():
            raise ModelError(
                f"the tensor {name} in {source} has values that are no numbers in {precision}"
            )
        yield nemotron_stored(name), rounded


def published_config(config: ModelConfig, ends: list[int], precision: Precision) -> dict[str, Any]:
    """The keys of the published `config.json`; `ar_mode` makes causal decoding the default in vLLM."""
    c = config
    return {
        "architectures": ["NemotronLabsDiffusionModel"],
        "model_type": "nemotron_labs_diffusion",
        "ar_mode": True,
        "dtype": precision,
        "vocab_size": c.vocab_size,
        "hidden_size": c.hidden_size,
        "intermediate_size": c.intermediate_size,
        "num_hidden_layers": c.num_layers,
        "num_attention_heads": c.num_heads,
        "num_key_value_heads": c.num_kv_heads,
        "head_dim": c.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": c.norm_eps,
        "max_position_embeddings": c.max_positions,
        "rope_theta": c.rope_theta,
        "rope_parameters": {
            "rope_type": PLAIN,
            **c.rope_scaling,
            "rope_theta": c.rope_theta,
        },
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "mask_token_id": c.special["mask"],
        "block_size": c.denoiser.block if c.denoiser else BLOCK,
        **text_ids(c, ends),
        "eos_token_id": ends[0] if ends else None,
    }


def generation_config(config: ModelConfig, ends: list[int]) -> dict[str, Any]:
    """What ends an answer, chats included."""
    return {**text_ids(config, ends), "eos_token_id": ends or None}


def text_ids(config: ModelConfig, ends: list[int]) -> dict[str, int | None]:
    """The token that begins a text, and the one that fills a batch up."""
    return {"bos_token_id": config.special.get("endoftext"), "pad_token_id": next(iter(ends), None)}


def end_ids(config: ModelConfig, tokenizer: Tokenizer) -> list[int]:
    """Tokens that end a text or a turn; the end of a text first."""
    found = [config.special.get("endoftext"), *map(tokenizer.control_id, END_NAMES)]
    return list(dict.fromkeys(id_ for id_ in found if id_ is not None))


def marked_tokenizer(tokenizer: Tokenizer, source: Path) -> dict[str, Any]:
    """The tokenizer with its control tokens named as such: others than Redraft must be able to write them."""
    raw = read_json(source / "tokenizer.json")
    named = {int(row["id"]): row for row in raw.get("added_tokens") or []}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for id_ in tokenizer.control_ids:
        if text := tokenizer.control_name(id_):
            named[id_] = {"id": id_, "content": text, **flags, "special": True}
    return {**raw, "added_tokens": [named[id_] for id_ in sorted(named)]}


def tokenizer_config(config: ModelConfig, tokenizer: Tokenizer, source: Path) -> dict[str, Any]:
    """Roles of the control tokens and the chat template."""
    roles = {"mask": config.special["mask"]}
    if "endoftext" in config.special:
        roles |= dict.fromkeys(("bos", "eos", "pad"), config.special["endoftext"])
    template = chat_template(source)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.max_positions,
        "add_bos_token": False,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        **{f"{role}_token": tokenizer.control_name(id_) for role, id_ in roles.items()},
        **({"chat_template": template} if template else {}),
    }


def sidecar(config: ModelConfig) -> dict[str, Any]:
    """What Redraft itself needs to know of the folder, and vLLM passes over."""
    return {"name": config.name, "family": FAMILY, "special": dict(config.special)}


def denoises(source: Path) -> bool:
    """Whether a block denoiser stays behind."""
    return (source / f"{STEM}.safetensors").exists()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to write into that becomes `out` when all went well; `ModelError` unless that is new or empty."""
    out = out.resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ModelError(f"{out} is there already and not an empty folder; nothing is overwritten")
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        part.chmod(0o755)
        yield part
        if out.exists():
            out.rmdir()
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_back(folder: Path, config: ModelConfig) -> None:
    """Open what was written as any published model. Raises `ModelError` where it is not what was meant."""
    found = open_published(folder)
    weights = found.weights()
    same = (
        found.family.name == FAMILY
        and found.mask == config.special["mask"]
        and (found.config.vocab_size, found.config.num_layers)
        == (config.vocab_size, config.num_layers)
        and weights.names() == set(shapes(config))
    )
    if not same:
        raise ModelError(f"what was written of {config.name} reads back as another model")


@torch.inference_mode()
def compare(source: Path, out: Path, text: str = SAMPLE) -> Agreement:
    """Run a text through both checkpoints, causally and in float32; both are in memory."""
    config = ModelConfig.load(source)
    found = open_published(out)
    tokens = torch.tensor(found.tokenizer.encode(text)[: config.max_positions])
    before, after = (
        trunk.head(trunk.forward(tokens, trunk.new_cache(len(tokens))))
        for trunk in (
            Transformer.load(AdaptedCheckpoint(source), config),
            Transformer.load(found.weights(), found.config),
        )
    )
    apart = (before - after).abs()
    same = int((before.argmax(-1) == after.argmax(-1)).sum())
    return Agreement(len(tokens), float(apart.mean()), float(apart.max()), same)
