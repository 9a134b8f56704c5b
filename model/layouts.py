"""Checkpoints of others under the names that the forward pass knows.

Responsible for translating tensor names and the keys of `config.json` from a published layout to Hugging Face's Llama
layout, and for refusing a checkpoint with tensors that would be left out. Knows nothing of what a family does with
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from model.config import ModelConfig, ModelError
from model.weights import Checkpoint

Shape = Literal["llama", "qwen2", "qwen3", "llada", "nemotron"]

NAMED = 5
UNUSED = re.compile(r"(^|\.)(rotary_emb\.inv_freq|masked_bias|position_ids)$")
LAYER = re.compile(
    r"model\.layers\.\d+\.(self_attn\.[qkv]_proj\.(weight|bias)|self_attn\.o_proj\.weight|self_attn\.[qk]_norm\.weight"
    r"|mlp\.(gate|up|down)_proj\.weight|(input|post_attention)_layernorm\.weight)"
)
ENDS = ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight")

LLADA_TENSORS = {
    "wte.weight": "model.embed_tokens.weight",
    "ln_f.weight": "model.norm.weight",
    "ff_out.weight": "lm_head.weight",
}
LLADA_PARTS = {
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
}
LLADA_BLOCK = re.compile(r"model\.transformer\.blocks\.(\d+)\.(\w+)\.(weight|bias)")
LLADA_KEYS = {
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "mlp_hidden_size": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "weight_tying": "tie_word_embeddings",
}
LLADA_NEEDS = {
    "block_type": "llama",
    "layer_norm_type": "rms",
    "activation_type": "silu",
    "scale_logits": False,
    "input_emb_norm": False,
}


def llada_name(stored: str) -> str:
    """`model.transformer.blocks.3.ff_proj.weight` is the gate of layer 3, and so on."""
    if block := LLADA_BLOCK.fullmatch(stored):
        number, part, kind = block.groups()
        return f"model.layers.{number}.{LLADA_PARTS.get(part, part)}.{kind}"
    return LLADA_TENSORS.get(stored.removeprefix("model.transformer."), stored)


def nemotron_name(stored: str) -> str:
    """The trunk is called `encoder`, the head `diffusion_head`."""
    if stored.startswith("encoder."):
        return "model." + stored.removeprefix("encoder.")
    return "lm_head.weight" if stored == "diffusion_head.weight" else stored


def nemotron_stored(name: str) -> str:
    """The name in that layout of a tensor that the forward pass calls `name`."""
    if name.startswith("model."):
        return "encoder." + name.removeprefix("model.")
    return "diffusion_head.weight" if name == "lm_head.weight" else name


RENAMES: Mapping[Shape, Callable[[str], str]] = {"llada": llada_name, "nemotron": nemotron_name}


def llada_config(raw: Mapping[str, Any]) -> dict[str, Any]:
    """LLaDA's own keys as Llama's. Raises `ValueError` for an OLMo variant that LLaDA does not use."""
    for key, needed in LLADA_NEEDS.items():
        if raw.get(key, needed) != needed:
            raise ValueError(f"{key} is {raw[key]!r}, only {needed!r} can be run")
    if raw.get("alibi") or not raw.get("rope", True) or raw.get("attention_layer_norm"):
        raise ValueError("only rotary positions and no norms of keys and queries can be run")
    found = {LLADA_KEYS.get(key, key): value for key, value in raw.items()}
    found["num_key_value_heads"] = raw.get("n_kv_heads") or raw["n_heads"]
    found["vocab_size"] = raw.get("embedding_size") or raw["vocab_size"]
    return found


def model_config(raw: Mapping[str, Any], shape: Shape, name: str) -> ModelConfig:
    """The sizes that a published `config.json` gives. Raises `KeyError`, `TypeError` or `ValueError`."""
    if raw.get("use_sliding_window"):
        raise ValueError("attention over a sliding window cannot be run")
    found = llada_config(raw) if shape == "llada" else dict(raw)
    known = "llama" if shape in ("llada", "nemotron") else shape
    return ModelConfig.from_dict({**found, "model_type": known, "redraft": {"name": name}})


class PublishedCheckpoint(Checkpoint):
    """The tensors of a published checkpoint by the names of Llama's layout.

    Raises `ModelError` when it has tensors that the forward pass would leave out.
    """

    def __init__(self, folder: Path, shape: Shape) -> None:
        super().__init__(folder)
        rename = RENAMES.get(shape, str)
        self._stored = {rename(name): name for name in self._files}
        self._files = {new: self._files[name] for new, name in self._stored.items()}
        left = [name for new, name in self._stored.items() if not expected(new)]
        if left:
            raise ModelError(
                f"weights in {folder} have {len(left)} tensors that this version cannot use, "
                f"such as {', '.join(sorted(left)[:NAMED])}"
            )

    def raw(self, name: str) -> Tensor:
        if name not in self._files:
            raise ModelError(f"weights in {self.folder} lack the tensor {name}")
        tensor: Tensor = self._handles[self._files[name]].get_tensor(self._stored[name])
        return tensor


def expected(name: str) -> bool:
    """True for a tensor that the forward pass reads, or may leave aside."""
    return name in ENDS or bool(LAYER.fullmatch(name) or UNUSED.search(name))
