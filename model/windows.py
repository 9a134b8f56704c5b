"""What a canvas sees: one encoded prompt under each attention pattern of the open diffusion models.

Responsible for the logits of a canvas's places and for keeping keys and values that do not change. Knows nothing of
which places to decide, of ends, or of text.

* Causal context: the prompt is encoded causally, a canvas sees all of it and itself; a finished block is encoded anew,
  causally.
* Block-causal: a block sees the blocks before it and itself, whole; a block that the prompt has begun is part of the
  canvas.
* Bidirectional: everything sees everything, so nothing is exact but a pass over all. `prefix` keeps what the text
  before the canvas was encoded to, `dual` the text after it, too (Wu et al. 2025, arXiv 2505.22618).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from model.cache import KeyValueCache, PrefixCache, Slot
from model.denoise import prefill
from model.families import Published, Reuse
from model.protocol import Expired, Stop
from model.transformer import Transformer

CHUNK = {"cpu": 64}
MOST_CHUNK = 1024


class Window(Protocol):
    """A prompt, ready for a canvas behind it or in it. `forwards` counts passes over canvases and blocks."""

    forwards: int

    def room(self) -> int | None:
        """Places of the next block; None where an answer is one canvas."""

    def begin(self) -> Tensor | None:
        """Logits `[vocab]` that already tell the next block's first token, if any do."""

    def logits(self, canvas: Sequence[int]) -> Tensor:
        """Logits `[n, vocab]` of the canvas's own places."""

    def commit(self, canvas: Sequence[int]) -> None:
        """The canvas is decided; what follows sees it."""


def seen(trunk: Transformer, tokens: Sequence[int], cache: KeyValueCache) -> Tensor:
    """States `[n, hidden]` of tokens behind the cache that all see each other and all of it."""
    n = len(tokens)
    everything = torch.ones(n, cache.length + n, dtype=torch.bool, device=trunk.device)
    return trunk.forward(torch.tensor(tokens, device=trunk.device), cache, allowed=everything)


def placed(tokens: Sequence[int], start: int) -> list[tuple[int, int]]:
    """Tokens with their places."""
    return [(token, start + i) for i, token in enumerate(tokens)]


class CausalContext:
    """The prompt and finished blocks causal, the canvas open."""

    def __init__(
        self, trunk: Transformer, block: int, slot: Slot, prompt: Sequence[int], stop: Stop
    ) -> None:
        self.trunk, self.block, self.slot = trunk, block, slot
        self.forwards = 0
        prefill(trunk, slot, prompt, stop)

    def room(self) -> int:
        return self.block

    def begin(self) -> None:
        return None

    def logits(self, canvas: Sequence[int]) -> Tensor:
        self.forwards += 1
        return self.trunk.head(seen(self.trunk, canvas, self.slot.cache))

    def commit(self, canvas: Sequence[int]) -> None:
        self.forwards += 1
        self.trunk.forward(torch.tensor(canvas, device=self.trunk.device), self.slot.cache)
        self.slot.append(canvas)


class BlockCausal:
    """Whole blocks are kept; `lead` places before the text make its end the end of a block.

    With `shift` the state before a place tells its token, across the border of a block, too.
    """

    def __init__(
        self,
        trunk: Transformer,
        block: int,
        slot: Slot,
        prompt: Sequence[int],
        stop: Stop,
        *,
        lead: int = 0,
        shift: bool = False,
    ) -> None:
        self.trunk, self.block, self.slot, self.lead, self.shift = trunk, block, slot, lead, shift
        self.forwards = 0
        self.before: Tensor | None = None
        whole = (lead + len(prompt)) // block * block - lead
        slot.rewind(self._border(min(len(slot.tokens), whole - 1 if shift else whole)))
        self._encode(prompt[:whole], stop)
        self.begun = list(prompt[whole:])

    def _border(self, length: int) -> int:
        """The last end of a block that is not behind `length`."""
        return max(0, (self.lead + length) // self.block * self.block - self.lead)

    def _encode(self, tokens: Sequence[int], stop: Stop) -> None:
        size = CHUNK.get(self.trunk.device.type, MOST_CHUNK)
        step = max(self.block, size // self.block * self.block)
        started = len(self.slot.tokens)
        while (at := len(self.slot.tokens)) < len(tokens):
            stop.check()
            if at > started and stop.expired:
                raise Expired
            end = min(len(tokens), self._border(at + step))
            place = torch.arange(end, device=self.trunk.device) + self.lead
            blocks = place // self.block
            allowed = blocks[at:, None] >= blocks[None, :]
            chunk = tokens[at:end]
            states = self.trunk.forward(
                torch.tensor(chunk, device=self.trunk.device), self.slot.cache, allowed=allowed
            )
            self.slot.append(chunk)
            self.before = states[-1:]

    def room(self) -> int:
        return self.block - len(self.begun)

    def begin(self) -> Tensor | None:
        if not self.shift or self.begun or self.before is None:
            return None
        return self.trunk.head(self.before)[0]

    def logits(self, canvas: Sequence[int]) -> Tensor:
        self.forwards += 1
        states = seen(self.trunk, [*self.begun, *canvas], self.slot.cache)
        if self.shift:
            first = states[:1] if self.before is None else self.before
            states = torch.cat([first, states[:-1]])
        return self.trunk.head(states[len(self.begun) :])

    def commit(self, canvas: Sequence[int]) -> None:
        self.forwards += 1
        block = [*self.begun, *canvas]
        self.before = seen(self.trunk, block, self.slot.cache)[-1:]
        self.slot.append(block)
        self.begun = []


class Bidirectional:
    """One canvas between two texts; `reuse` says which of their keys and values outlive a pass."""

    def __init__(
        self,
        trunk: Transformer,
        cache: KeyValueCache,
        before: Sequence[int],
        after: Sequence[int],
        *,
        reuse: Reuse = "none",
        shift: bool = False,
    ) -> None:
        self.trunk, self.cache, self.shift, self.reuse = trunk, cache, shift, reuse
        own = min(len(before), int(shift))  # a shifted canvas is told by the token before it
        self.before, self.told, self.after = (
            before[: len(before) - own],
            before[len(before) - own :],
            after,
        )
        self.kept: int | None = None
        self.forwards = 0

    def room(self) -> None:
        return None

    def begin(self) -> None:
        return None

    def logits(self, canvas: Sequence[int]) -> Tensor:
        """A canvas of another length than the last is encoded with everything anew."""
        self.forwards += 1
        live = [*self.told, *canvas]
        start, end = len(self.before), len(self.before) + len(live)
        fresh = self.reuse == "none" or self.kept != len(canvas)
        if fresh:
            self.cache.truncate(0)
        head = placed(self.before, 0) if fresh else []
        tail = placed(self.after, end) if fresh or self.reuse == "prefix" else []
        own = placed(live, start)
        dual = self.reuse == "dual"
        rows = [*head, *tail, *own] if dual else [*head, *own, *tail]
        first = len(head) + (len(tail) if dual else 0)
        states = self._run(rows)[first : first + len(own)]
        if fresh and self.reuse != "none":
            self.cache.commit(first)
            self.kept = len(canvas)
        if not self.shift:
            return self.trunk.head(states)
        return self.trunk.head(states[:-1] if self.told else torch.cat([states[:1], states[:-1]]))

    def _run(self, rows: Sequence[tuple[int, int]]) -> Tensor:
        device, n = self.trunk.device, len(rows)
        tokens, places = torch.tensor(rows, device=device).unbind(1)
        everything = torch.ones(n, self.cache.length + n, dtype=torch.bool, device=device)
        return self.trunk.forward(tokens, self.cache, positions=places, allowed=everything)

    def commit(self, canvas: Sequence[int]) -> None:
        pass


class Windows:
    """Opens windows of one model; keeps what prompts of a causal kind were encoded to."""

    def __init__(
        self,
        published: Published,
        trunk: Transformer,
        prefixes: PrefixCache,
        reuse: Reuse | None = None,
    ) -> None:
        self.published, self.trunk, self.prefixes = published, trunk, prefixes
        self.reuse = reuse or published.reuse
        self._lead = 0

    def open(self, before: Sequence[int], after: Sequence[int], stop: Stop) -> Window:
        """Encode a prompt of at least one token as its family sees it.

        Only a bidirectional family has text `after` the canvas. Raises `Cancelled`, and `Expired` when the deadline
        passes on the way.
        """
        family, block, trunk = self.published.family, self.published.block, self.trunk
        if family.attention == "bidirectional":
            cache = trunk.new_cache(len(before) + len(after) + MOST_CHUNK // 8)
            return Bidirectional(trunk, cache, before, after, reuse=self.reuse, shift=family.shift)
        if after:
            raise ValueError(f"a {family.name} model has no text behind its answer")
        lead = -len(before) % block if family.from_prompt else 0
        if lead != self._lead:  # blocks that begin elsewhere were encoded to something else
            self.prefixes.clear()
            self._lead = lead
        slot = self.prefixes.acquire(before)
        if family.attention == "causal_context":
            return CausalContext(trunk, block, slot, before, stop)
        return BlockCausal(trunk, block, slot, before, stop, lead=lead, shift=family.shift)
