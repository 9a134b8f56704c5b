"""Keys and values in memory that never moves, for several sequences at once.

Responsible for storage of a fixed size and for who may see what of it: the two attention masks. Shapes do not depend on
how long the sequences are, so that passes over it can be captured as CUDA graphs. Knows nothing of tokens or of
decoding; what is cached between keystrokes is for `model.cache` to decide.
"""

from __future__ import annotations

import torch
from torch import Tensor

from model.config import ModelConfig


class StaticCache:
    """Keys and values `[layers, slots, kv_heads, capacity, head_dim]`, and `lengths [slots]`, all on the device.

    The first `lengths[i]` places of slot `i` are its sequence. A pass writes behind them; adding to `lengths` keeps
    what was written. Places behind are overwritten, never read.
    """

    def __init__(self, keys: Tensor, values: Tensor, lengths: Tensor) -> None:
        self.keys, self.values, self.lengths = keys, values, lengths

    @classmethod
    def empty(
        cls,
        config: ModelConfig,
        slots: int,
        capacity: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> StaticCache:
        c = config
        shape = (c.num_layers, slots, c.num_kv_heads, capacity, c.head_dim)
        keys, values = (torch.zeros(shape, device=device, dtype=dtype) for _ in range(2))
        return cls(keys, values, torch.zeros(slots, dtype=torch.long, device=device))

    @property
    def capacity(self) -> int:
        return self.keys.shape[3]

    def slot(self, index: int) -> StaticCache:
        """One slot as a cache of its own, in the same memory."""
        one = slice(index, index + 1)
        return StaticCache(self.keys[:, one], self.values[:, one], self.lengths[one])

    def places(self, rows: int) -> Tensor:
        """The places behind each sequence, `[slots, rows]`."""
        return self.lengths[:, None] + torch.arange(rows, device=self.lengths.device)

    def write(self, layer: int, places: Tensor, keys: Tensor, values: Tensor) -> None:
        """Put `keys`, `values` `[slots, kv_heads, rows, head_dim]` at `places [slots, rows]`."""
        index = places[:, None, :, None].expand(keys.shape)
        self.keys[layer].scatter_(2, index, keys.to(self.keys.dtype))
        self.values[layer].scatter_(2, index, values.to(self.values.dtype))

    def causal(self, places: Tensor, reach: int) -> Tensor:
        """Who sees what when rows continue a sequence: each all before it and itself, `[slots, rows, reach] bool`."""
        return torch.arange(reach, device=places.device) <= places[:, :, None]

    def block(self, rows: int) -> Tensor:
        """Who sees what in a canvas: every row the sequence and the whole canvas, which stands behind the capacity;
        `[slots, rows, capacity + rows] bool`."""
        columns = torch.arange(self.capacity + rows, device=self.lengths.device)
        seen = (columns < self.lengths[:, None]) | (columns >= self.capacity)
        return seen[:, None].expand(-1, rows, -1)
