"""Rotary positions: how fast each pair of a head's dimensions turns.

Responsible for the frequencies of the published schemes: plain, linear, YaRN, Llama 3. Knows nothing of weights or
attention.

Rotary positions are Su et al. 2021 (arXiv 2104.09864), YaRN is Peng et al. 2023 (arXiv 2309.00071).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from model.positions import LINEAR, LLAMA3, PLAIN, YARN, Scaling


def frequencies(head_dim: int, theta: float, scaling: Scaling) -> tuple[Tensor, float]:
    """Radians a position for each pair, `[head_dim / 2]`, and the factor for cosines and sines."""
    half = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    plain = theta**-half
    kind = scaling.get("rope_type", PLAIN)
    if kind == LINEAR:
        return plain / float(scaling["factor"]), 1.0
    if kind == YARN:
        return _yarn(plain, head_dim, theta, scaling), _yarn_factor(scaling)
    if kind == LLAMA3:
        return _llama3(plain, scaling), 1.0
    return plain, 1.0


def _yarn(plain: Tensor, head_dim: int, theta: float, scaling: Scaling) -> Tensor:
    """Slow dimensions are interpolated, fast ones kept, those between are mixed."""
    length = float(scaling["original_max_position_embeddings"])

    def dimension(turns: float) -> float:
        """The pair that turns so often over the original length."""
        return head_dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low = dimension(float(scaling.get("beta_fast") or 32))
    high = dimension(float(scaling.get("beta_slow") or 1))
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    width = high - low or 0.001
    slow = ((torch.arange(head_dim // 2, dtype=torch.float32) - low) / width).clamp(0, 1)
    return plain / float(scaling["factor"]) * slow + plain * (1 - slow)


def _yarn_factor(scaling: Scaling) -> float:
    if scaling.get("attention_factor") is not None:
        return float(scaling["attention_factor"])

    def grown(weight: float) -> float:
        factor = float(scaling["factor"])
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    one, all_dims = scaling.get("mscale"), scaling.get("mscale_all_dim")
    return grown(float(one)) / grown(float(all_dims)) if one and all_dims else grown(1.0)


def _llama3(plain: Tensor, scaling: Scaling) -> Tensor:
    """Long waves are stretched by the factor, short ones kept, those between are mixed."""
    length = float(scaling["original_max_position_embeddings"])
    low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
    turns = length * plain / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return plain / float(scaling["factor"]) * (1 - kept) + plain * kept
