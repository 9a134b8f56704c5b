"""Keys and values of encoded context, kept between keystrokes.

Responsible for storage and for finding what can be reused: the longest common prefix of token ids. Knows nothing of
what the tokens mean; causal attention makes a prefix's keys and values independent of everything after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from model.config import ModelConfig


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


class KeyValueCache:
    """Keys and values of one token sequence, `[layers, kv_heads, capacity, head_dim]` each.

    The first `length` slots belong to the sequence; a forward pass writes behind them, and `commit` makes what it
    wrote part of the sequence. What is not committed is overwritten by the next pass.
    """

    def __init__(
        self,
        config: ModelConfig,
        capacity: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.config = config
        self.length = 0
        self.keys, self.values = (self._empty(capacity, device, dtype) for _ in range(2))

    def _empty(self, capacity: int, device: torch.device | str, dtype: torch.dtype) -> Tensor:
        c = self.config
        shape = (c.num_layers, c.num_kv_heads, capacity, c.head_dim)
        return torch.empty(shape, device=device, dtype=dtype)

    @property
    def capacity(self) -> int:
        return self.keys.shape[2]

    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` slots behind the sequence, growing by half at least."""
        needed = self.length + tokens
        if needed <= self.capacity:
            return
        capacity = max(needed, self.capacity * 3 // 2)
        for name in ("keys", "values"):
            old: Tensor = getattr(self, name)
            new = self._empty(capacity, old.device, old.dtype)
            new[:, :, : self.length] = old[:, :, : self.length]
            setattr(self, name, new)

    def commit(self, tokens: int) -> None:
        """Keep the next `tokens` written slots."""
        self.length += tokens

    def append(self, other: KeyValueCache, tokens: int) -> None:
        """Put the first `tokens` of another sequence behind this one."""
        self.reserve(tokens)
        end = self.length + tokens
        self.keys[:, :, self.length : end] = other.keys[:, :, :tokens]
        self.values[:, :, self.length : end] = other.values[:, :, :tokens]
        self.length = end

    def truncate(self, length: int) -> None:
        """Forget everything from slot `length` on."""
        self.length = min(self.length, length)


class Slot:
    """A cache together with the token ids whose keys and values it holds.

    `state` is the last hidden state `[1, hidden]` of the first `state_at` tokens, for whoever asks for it again.
    """

    def __init__(self, cache: KeyValueCache) -> None:
        self.cache = cache
        self.tokens: list[int] = []
        self.used = 0
        self.state: Tensor | None = None
        self.state_at = 0

    def remember(self, state: Tensor) -> None:
        """Keep the hidden state of the last token."""
        self.state, self.state_at = state, len(self.tokens)

    def common(self, tokens: Sequence[int]) -> int:
        """Length of the longest common prefix with `tokens`."""
        return common_prefix(self.tokens, tokens)

    def rewind(self, length: int) -> None:
        """Keep only the first `length` tokens."""
        del self.tokens[length:]
        self.cache.truncate(length)
        if self.state_at > length:
            self.state = None

    def append(self, tokens: Sequence[int]) -> None:
        """Record tokens that a forward pass has just written."""
        self.tokens.extend(tokens)
        self.cache.commit(len(tokens))


class PrefixCache:
    """A few slots shared by all documents and modes; the least recently used one makes room.

    Memory is bounded by `slots * max_tokens` tokens.
    """

    def __init__(
        self,
        config: ModelConfig,
        slots: int = 3,
        max_tokens: int = 4096,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._make = lambda: Slot(KeyValueCache(config, 512, device, dtype))
        self.sibling = lambda: PrefixCache(config, slots, max_tokens, device, dtype)
        """Another one of the same bounds, empty."""
        self._slots: list[Slot] = []
        self._limit = slots
        self.max_tokens = max_tokens
        self._clock = 0

    def acquire(self, tokens: Sequence[int]) -> Slot:
        """The slot that shares the longest prefix with `tokens`, rewound to that prefix.

        A slot is taken over only if it shares at least half of what it holds or none is free, so that documents and
        modes do not push each other out at every keystroke.
        """
        if len(tokens) > self.max_tokens:
            raise ValueError(f"{len(tokens)} tokens exceed the cache's limit of {self.max_tokens}")
        self._clock += 1
        best = max(self._slots, key=lambda slot: slot.common(tokens), default=None)
        shared = best.common(tokens) if best else 0
        if best is None or 2 * shared < len(best.tokens):
            if len(self._slots) < self._limit:
                fresh = self._make()
                self._slots.append(fresh)
            else:
                fresh = min(self._slots, key=lambda slot: slot.used)
            if best is not None and fresh is not best and shared:
                fresh.rewind(0)
                fresh.cache.append(best.cache, shared)
                fresh.tokens = list(best.tokens[:shared])
            best = fresh
            shared = best.common(tokens)
        best.rewind(shared)
        best.used = self._clock
        return best

    def shared(self, tokens: Sequence[int]) -> int:
        """How many tokens of `tokens` a slot already holds."""
        return max((slot.common(tokens) for slot in self._slots), default=0)

    def clear(self) -> None:
        """Free every slot."""
        self._slots.clear()
