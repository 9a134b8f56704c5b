"""What a checkpoint's `config.json` says of rotary positions.

Responsible for naming the scheme, old keys and new ones alike, and for how many positions can be used. Knows nothing of
the arithmetic (`model.rope`), nor of torch, which a server starts without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLAIN, LINEAR, YARN, LLAMA3 = "default", "linear", "yarn", "llama3"
KINDS = (PLAIN, LINEAR, YARN, LLAMA3)

Scaling = Mapping[str, Any]


def scaling_of(raw: Mapping[str, Any]) -> Scaling:
    """The part of a `config.json` that scales positions; empty where nothing does. Raises `ValueError`."""
    found = {**(raw.get("rope_parameters") or {}), **(raw.get("rope_scaling") or {})}
    kind = found.get("rope_type", found.get("type", PLAIN))
    if kind not in KINDS:
        raise ValueError(f"rotary positions of type {kind!r} are none of {', '.join(KINDS)}")
    if kind == PLAIN:
        return {}
    original = raw.get("max_position_embeddings")
    return {"original_max_position_embeddings": original, **found, "rope_type": kind}


def longest(raw: Mapping[str, Any]) -> int:
    """Positions that can be used: where queries are scaled beyond a first stretch, that stretch."""
    scaling = scaling_of(raw)
    most = int(raw["max_position_embeddings"])
    if scaling.get("llama_4_scaling_beta"):
        return min(most, int(scaling["original_max_position_embeddings"]))
    return most
