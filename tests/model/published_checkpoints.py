"""Tiny random checkpoints in the published layouts of the open diffusion models, and plain references for them.

A reference takes token ids and a matrix of who sees whom, and gives logits: transformers' own class for the Llama,
Qwen2, Qwen3 and Ministral shapes, LLaDA's equations written out for LLaDA.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

Reference = Callable[[list[int], Tensor], Tensor]

VOCABULARY = 320
HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, DIM = 32, 48, 2, 4, 2, 8
LLAMA = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": FFN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e6,
    "factor": 16.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
QWEN_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True)
class Layout:
    """A published layout: the class that computes it, its own keys, its control tokens, its tensors' names."""

    kind: str
    config: Mapping[str, Any]
    control: tuple[str, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    mask_in_config: str | None = None
    rename: Callable[[str], str] = str
    plain_vocabulary: bool = False
    folder: str = "model"


def nemotron(name: str) -> str:
    if name == "lm_head.weight":
        return "diffusion_head.weight"
    return name.replace("model.", "encoder.", 1)


def dream(*control: str, name: str = "Dream-v0") -> Layout:
    return Layout(
        "qwen2",
        {"architectures": ["DreamModel"], "model_type": "Dream", "rope_theta": 1e6},
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>", *control),
        {"bos": "<|beginoftext|>", "eos": "<|endoftext|>", "mask": "<|mask|>"},
        mask_in_config="<|mask|>",
        plain_vocabulary=True,
        folder=name,
    )


LAYOUTS = {
    "nemotron": Layout(
        "ministral3",
        {
            "architectures": ["NemotronLabsDiffusionModel"],
            "model_type": "nemotron_labs_diffusion",
            "head_dim": 16,
            "block_size": 8,
            "rope_parameters": YARN,
        },
        ("<s>", "</s>", "<SPECIAL_100>"),
        {"bos": "<s>", "eos": "</s>"},
        mask_in_config="<SPECIAL_100>",
        rename=nemotron,
    ),
    "sdar": Layout(
        "qwen3",
        {
            "architectures": ["SDARForCausalLM"],
            "model_type": "sdar",
            "head_dim": 16,
            "rope_theta": 1e6,
        },
        (*QWEN_TOKENS, "<|MASK|>"),
        {"eos": "<|im_end|>", "mask": "<|MASK|>"},
        folder="SDAR-1.7B-Chat",
    ),
    "fast-dllm-v2": Layout(
        "qwen2",
        {
            "architectures": ["Fast_dLLM_QwenForCausalLM"],
            "model_type": "Fast_dLLM_Qwen",
            "bd_size": 8,
            "rope_theta": 1e6,
            "use_sliding_window": False,
        },
        (*QWEN_TOKENS, "|<MASK>|"),
        {"eos": "<|im_end|>"},
    ),
    "stable-diffcoder": Layout(
        "llama",
        {
            "architectures": ["StableDiffcoderForCausalLM"],
            "model_type": "llama",
            "rope_theta": 5e5,
            "rope_scaling": None,
            "attention_bias": False,
            "mlp_bias": False,
        },
        (
            "<[begin_of_sentence]>",
            "<[end_of_sentence]>",
            "<[MASK_TOKEN]>",
            *("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"),
        ),
        {"eos": "<[end_of_sentence]>", "mask": "<[MASK_TOKEN]>"},
    ),
    "bd3lm": Layout(
        "qwen3",
        {"architectures": ["A2DQwen3LMHeadModel"], "model_type": "a2d-qwen3", "head_dim": 16},
        (*QWEN_TOKENS, "<|mask|>"),
        {"eos": "<|im_end|>", "pad": "<|endoftext|>", "mask": "<|mask|>"},
        folder="Qwen3-0.6B-diffusion-bd3lm-v0.1",
    ),
    "mdlm": Layout(
        "qwen2",
        {"architectures": ["A2DQwen2LMHeadModel"], "model_type": "a2d-qwen2"},
        (*QWEN_TOKENS, "<|mask|>"),
        {"eos": "<|im_end|>", "pad": "<|endoftext|>", "mask": "<|mask|>"},
        folder="Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1",
    ),
    "llada": Layout(
        "llada",
        {
            "architectures": ["LLaDAModelLM"],
            "model_type": "llada",
            "d_model": HIDDEN,
            "n_layers": LAYERS,
            "n_heads": HEADS,
            "n_kv_heads": HEADS,
            "mlp_hidden_size": FFN,
            "mlp_ratio": 4,
            "max_sequence_length": 512,
            "vocab_size": VOCABULARY,
            "embedding_size": VOCABULARY,
            "rms_norm_eps": 1e-5,
            "rope": True,
            "rope_theta": 5e5,
            "alibi": False,
            "attention_layer_norm": False,
            "block_type": "llama",
            "layer_norm_type": "rms",
            "activation_type": "silu",
            "include_bias": False,
            "include_qkv_bias": False,
            "weight_tying": False,
        },
        ("<|startoftext|>", "<|endoftext|>", "<|eot_id|>", "<|mdm_mask|>"),
        {"eos": "<|endoftext|>"},
        mask_in_config="<|mdm_mask|>",
    ),
    "dream": dream(),
    "dream-coder": dream(name="Dream-Coder-v0-Base-7B"),
    "diffucoder": dream(name="DiffuCoder-7B-Base"),
    "dreamon": dream("<|expand|>", name="DreamOn-v0-7B"),
    "open-dcoder": Layout(
        "qwen2",
        {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "tie_word_embeddings": True},
        (*QWEN_TOKENS, "[MASK]"),
        {"eos": "<|endoftext|>", "mask": "[MASK]"},
        folder="open-dcoder-0.5B",
    ),
}
SHARED = {"dream-coder": "dream", "diffucoder": "dream"}


def save_tokenizer(folder: Path, layout: Layout) -> dict[str, int]:
    """The bytes, a few merges, and the control tokens at the end; returns their ids."""
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("r", "e"), ("t", "u"), ("re", "tu"), ("retu", "r"), ("retur", "n"), ("Ġ", "x")]
    vocabulary = {piece: i for i, piece in enumerate([*symbols, *("".join(m) for m in merges)])}
    added = {text: len(vocabulary) + i for i, text in enumerate(layout.control)}
    if layout.plain_vocabulary:
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
        (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (folder / "added_tokens.json").write_text(json.dumps(added))
    else:
        tokenizer = Tokenizer(models.BPE(vocabulary, merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens(list(layout.control))
        tokenizer.save(str(folder / "tokenizer.json"))
    roles = {f"{role}_token": {"content": text} for role, text in layout.roles.items()}
    (folder / "special_tokens_map.json").write_text(json.dumps(roles))
    return added


def save_weights(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Two shards with an index, in bfloat16-safe values but float32, so that references can be exact."""
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-{number:05d}-of-00002.safetensors"
        save_file({name: tensors[name].contiguous() for name in part}, folder / file)
        weight_map.update(dict.fromkeys(part, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def hugging_face(layout: Layout, raw: Mapping[str, Any]) -> tuple[Reference, dict[str, Tensor]]:
    transformers = pytest.importorskip("transformers")
    sizes = {k: v for k, v in raw.items() if k not in ("architectures", "model_type")}
    config = transformers.AutoConfig.for_model(layout.kind, **sizes)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    generator = torch.Generator().manual_seed(len(layout.folder))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if name.endswith("norm.weight") else 0.0
            spread = 0.5 if ".q_proj" in name or ".k_proj" in name else 0.15  # places must matter
            parameter.copy_(centre + spread * torch.randn(parameter.shape, generator=generator))

    @torch.inference_mode()
    def reference(tokens: list[int], allowed: Tensor) -> Tensor:
        mask = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
        return model(torch.tensor([tokens]), attention_mask=mask[None, None]).logits[0]

    tensors = {name: value.detach().clone() for name, value in model.state_dict().items()}
    if raw["tie_word_embeddings"]:
        del tensors["lm_head.weight"]
    return reference, tensors


def llada(raw: Mapping[str, Any]) -> tuple[Reference, dict[str, Tensor]]:
    """LLaDA's block, plainly: no bias, RMS norms before attention and before the gated feed-forward."""
    generator = torch.Generator().manual_seed(7)

    def draw(*shape: int) -> Tensor:
        return 0.15 * torch.randn(shape, generator=generator)

    stem = "model.transformer"
    t = {
        f"{stem}.wte.weight": draw(VOCABULARY, HIDDEN),
        f"{stem}.ff_out.weight": draw(VOCABULARY, HIDDEN),
    }
    t[f"{stem}.ln_f.weight"] = 1 + draw(HIDDEN)
    for i in range(LAYERS):
        block = f"{stem}.blocks.{i}"
        for name in ("q_proj", "k_proj", "v_proj", "attn_out"):
            t[f"{block}.{name}.weight"] = draw(HIDDEN, HIDDEN)
        t[f"{block}.ff_proj.weight"], t[f"{block}.up_proj.weight"] = (
            draw(FFN, HIDDEN),
            draw(FFN, HIDDEN),
        )
        t[f"{block}.ff_out.weight"] = draw(HIDDEN, FFN)
        for name in ("attn_norm", "ff_norm"):
            t[f"{block}.{name}.weight"] = 1 + draw(HIDDEN)

    def norm(x: Tensor, name: str) -> Tensor:
        return (
            x / (x.pow(2).mean(-1, keepdim=True) + raw["rms_norm_eps"]).sqrt() * t[f"{name}.weight"]
        )

    def turned(x: Tensor) -> Tensor:
        """`x [heads, n, d]`: each pair (j, j + d/2) is turned by its place times theta^(-2j/d)."""
        d, n = x.shape[-1], x.shape[-2]
        speeds = raw["rope_theta"] ** (-torch.arange(0, d, 2) / d)
        angles = torch.arange(n)[:, None] * speeds[None, :]
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return torch.cat(
            [a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1
        )

    def heads(x: Tensor) -> Tensor:
        return x.view(len(x), HEADS, -1).transpose(0, 1)

    def reference(tokens: list[int], allowed: Tensor) -> Tensor:
        x = t[f"{stem}.wte.weight"][tokens]
        for i in range(LAYERS):
            b = f"{stem}.blocks.{i}"
            seen = norm(x, f"{b}.attn_norm")
            q, k, v = (heads(seen @ t[f"{b}.{n}.weight"].T) for n in ("q_proj", "k_proj", "v_proj"))
            scores = turned(q) @ turned(k).transpose(1, 2) / (HIDDEN / HEADS) ** 0.5
            mixed = scores.masked_fill(~allowed, float("-inf")).softmax(-1) @ v
            x = x + mixed.transpose(0, 1).reshape(len(tokens), HIDDEN) @ t[f"{b}.attn_out.weight"].T
            seen = norm(x, f"{b}.ff_norm")
            gate, up = seen @ t[f"{b}.ff_proj.weight"].T, seen @ t[f"{b}.up_proj.weight"].T
            x = x + (gate * gate.sigmoid() * up) @ t[f"{b}.ff_out.weight"].T
        return norm(x, f"{stem}.ln_f") @ t[f"{stem}.ff_out.weight"].T

    return reference, t


def save_published(root: Path, name: str) -> tuple[Path, Reference]:
    """A checkpoint folder in the layout called `name`, and what it must compute."""
    layout = LAYOUTS[name]
    folder = root / layout.folder
    folder.mkdir(parents=True)
    raw = dict(layout.config) if layout.kind == "llada" else {**LLAMA, **layout.config}
    added = save_tokenizer(folder, layout)
    reference, tensors = llada(raw) if layout.kind == "llada" else hugging_face(layout, raw)
    save_weights({layout.rename(key): value for key, value in tensors.items()}, folder)
    if layout.mask_in_config:
        raw["mask_token_id"] = added[layout.mask_in_config]
    if "eos" in layout.roles:
        raw["eos_token_id"] = added[layout.roles["eos"]]
    (folder / "config.json").write_text(json.dumps(raw))
    return folder, reference
