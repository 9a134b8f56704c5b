"""Open diffusion models that are known, with what a user wants to know before he pulls one.

Responsible for the list: names on the hub, family, size and licence as their makers state them, and for what each
family was trained to do. Nothing here is ever downloaded by itself; no weights of these were run when this was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.families import FAMILIES, Family

Fitness = Literal["trained", "by continuing", "by instruction"]


@dataclass(frozen=True, slots=True)
class Known:
    """A model on the hub; `billions` of parameters."""

    name: str
    family: str
    billions: float
    licence: str


KNOWN = (
    Known("Dream-org/DreamOn-v0-7B", "dreamon", 7.6, "Apache-2.0"),
    Known("Dream-org/Dream-Coder-v0-Base-7B", "dream", 7.6, "Apache-2.0"),
    Known("Dream-org/Dream-Coder-v0-Instruct-7B", "dream", 7.6, "Apache-2.0"),
    Known("Dream-org/Dream-v0-Base-7B", "dream", 7.6, "Apache-2.0"),
    Known("Dream-org/Dream-v0-Instruct-7B", "dream", 7.6, "Apache-2.0"),
    Known("apple/DiffuCoder-7B-Base", "dream", 7.6, "Apple research"),
    Known("apple/DiffuCoder-7B-cpGRPO", "dream", 7.6, "Apple research"),
    Known("ByteDance-Seed/Stable-DiffCoder-8B-Base", "stable-diffcoder", 8.3, "MIT"),
    Known("ByteDance-Seed/Stable-DiffCoder-8B-Instruct", "stable-diffcoder", 8.3, "MIT"),
    Known("fredzzp/open-dcoder-0.5B", "open-dcoder", 0.5, "Apache-2.0 (repository)"),
    Known("dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1", "mdlm", 0.5, "Apache-2.0"),
    Known("dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1", "mdlm", 0.6, "Apache-2.0"),
    Known("dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1", "bd3lm", 0.5, "Apache-2.0"),
    Known("dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1", "bd3lm", 0.6, "Apache-2.0"),
    Known("GSAI-ML/LLaDA-8B-Base", "llada", 8.0, "MIT"),
    Known("GSAI-ML/LLaDA-8B-Instruct", "llada", 8.0, "MIT"),
    Known("GSAI-ML/LLaDA-1.5", "llada", 8.0, "MIT"),
    Known("JetLM/SDAR-1.7B-Chat", "sdar", 1.7, "MIT (repository)"),
    Known("JetLM/SDAR-4B-Chat", "sdar", 4.0, "MIT (repository)"),
    Known("JetLM/SDAR-8B-Chat", "sdar", 8.0, "MIT (repository)"),
    Known("Efficient-Large-Model/Fast_dLLM_v2_1.5B", "fast-dllm-v2", 1.5, "Apache-2.0"),
    Known("Efficient-Large-Model/Fast_dLLM_v2_7B", "fast-dllm-v2", 7.0, "Apache-2.0"),
    Known("nvidia/Nemotron-Labs-Diffusion-3B", "nemotron", 3.0, "NVIDIA Open"),
    Known("nvidia/Nemotron-Labs-Diffusion-8B", "nemotron", 8.0, "NVIDIA Open"),
    Known("nvidia/Nemotron-Labs-Diffusion-14B", "nemotron", 14.0, "NVIDIA Open"),
)


def family_named(name: str) -> Family:
    """The first family of that name in the table."""
    return next(family for family in FAMILIES if family.name == name)


def fitness(family: Family) -> dict[str, Fitness]:
    """How well a family serves each mode: what it was trained to do, or only what an instruction may get from it."""
    fim: Fitness = "trained" if family.infill else "by instruction"
    if family.infill == "continue":
        fim = "by continuing"
    return {"fim": fim, "next_edit": "by instruction"}
