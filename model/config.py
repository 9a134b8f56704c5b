"""The shape of a decoder-only transformer, read from a checkpoint's `config.json`.

Responsible for naming what the forward pass needs to know (Llama, Qwen2 and Qwen3 shapes) and which token ids carry
control meaning. Knows nothing of weights or text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from model.positions import Scaling, longest, scaling_of

Quantize = Literal["int8", "int4"]
"""Bits that a weight is rounded to when it is loaded."""


class ModelError(Exception):
    """A checkpoint that cannot be used, with the reason in words a user can act on."""


@dataclass(frozen=True, slots=True)
class DenoiserConfig:
    """The block denoiser: shallow bidirectional layers over the trunk's keys and values.

    `trunk_layers[i]` is the trunk layer whose context keys and values denoiser layer `i` reads; `block` is the canvas
    length B including the anchor token.
    """

    trunk_layers: tuple[int, ...]
    block: int
    mask_id: int


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes of the transformer; `special` maps the control tokens' names to ids.

    `infill` tells that the model was trained to fill in, with the text after the cursor put first.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_theta: float
    norm_eps: float
    max_positions: int
    tie_embeddings: bool = True
    attention_bias: bool = False
    qk_norm: bool = False
    name: str = ""
    special: Mapping[str, int] = field(default_factory=dict)
    denoiser: DenoiserConfig | None = None
    infill: bool = False
    rope_scaling: Scaling = field(default_factory=dict)

    @property
    def groups(self) -> int:
        """Query heads that share one key and value head."""
        return self.num_heads // self.num_kv_heads

    @classmethod
    def load(cls, folder: Path) -> ModelConfig:
        """Read `folder/config.json`. Raises `ModelError` naming what is missing or wrong."""
        path = folder / "config.json"
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ModelError(f"no model at {folder}: config.json is missing") from None
        except (OSError, ValueError) as error:
            raise ModelError(f"{path} cannot be read: {error}") from error
        try:
            return cls.from_dict(raw)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"{path} does not describe a model this version can run: {error}"
            ) from error

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> ModelConfig:
        """From the keys of a Hugging Face `config.json`, plus our own `redraft` section."""
        kind = raw["model_type"]
        if kind not in ("llama", "qwen2", "qwen3"):
            raise ValueError(f"model_type {kind!r} is not one of llama, qwen2, qwen3")
        heads = int(raw["num_attention_heads"])
        hidden = int(raw["hidden_size"])
        rope = raw.get("rope_parameters") or {}
        own = raw.get("redraft", {})
        denoiser = own.get("denoiser")
        return cls(
            vocab_size=int(raw["vocab_size"]),
            hidden_size=hidden,
            intermediate_size=int(raw["intermediate_size"]),
            num_layers=int(raw["num_hidden_layers"]),
            num_heads=heads,
            num_kv_heads=int(raw.get("num_key_value_heads", heads)),
            head_dim=int(raw.get("head_dim") or hidden // heads),
            rope_theta=float(raw.get("rope_theta") or rope.get("rope_theta", 10000.0)),
            norm_eps=float(raw["rms_norm_eps"]),
            max_positions=longest(raw),
            tie_embeddings=bool(raw.get("tie_word_embeddings", False)),
            attention_bias=bool(raw.get("attention_bias", kind == "qwen2")),
            qk_norm=kind == "qwen3",
            name=str(own.get("name", raw.get("_name_or_path", kind))),
            special=dict(own.get("special", {})),
            infill=bool(own.get("infill", False)),
            rope_scaling=scaling_of(raw),
            denoiser=DenoiserConfig(
                tuple(denoiser["trunk_layers"]), int(denoiser["block"]), int(denoiser["mask_id"])
            )
            if denoiser
            else None,
        )


def denoiser_section(config: DenoiserConfig) -> dict[str, Any]:
    """The `redraft.denoiser` object of `config.json`."""
    return asdict(config)
