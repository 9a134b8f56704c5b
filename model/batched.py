"""Several sequences decoded together in fixed shapes, for a GPU.

Responsible for a pass of the trunk and of the block denoiser over a `StaticCache`, and for the decoding step made of
both: draft a block, verify it causally, keep what agrees. One step is one piece of work without arguments or questions
to the host, so that it runs as a CUDA graph; its result is read once. What comes out is what greedy decoding of the
trunk gives, whatever the block. Knows nothing of prompts, text or requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from model.denoiser import Denoiser
from model.static_cache import StaticCache
from model.transformer import Transformer, additive_mask, attend, rms_norm

PREFILL_ROWS = 2048
WARM_UPS = 3


def in_slots(x: Tensor, slots: int) -> Tensor:
    """`[kv_heads, slots * rows, head_dim]` as `[slots, kv_heads, rows, head_dim]`."""
    return x.reshape(x.shape[0], slots, -1, x.shape[-1]).transpose(0, 1)


def run_trunk(
    trunk: Transformer, cache: StaticCache, tokens: Tensor, reach: int | None = None
) -> Tensor:
    """Hidden states `[slots, rows, hidden]` of `tokens [slots, rows]` that continue each slot's sequence.

    They are written behind it; add to `cache.lengths` to keep them. `reach` bounds the places that are looked at, by
    default the capacity; it must cover what is written.
    """
    c = trunk.config
    slots, rows = tokens.shape
    reach = cache.capacity if reach is None else reach
    places = cache.places(rows)
    cos, sin = trunk.cos[places].flatten(0, 1), trunk.sin[places].flatten(0, 1)
    mask = additive_mask(cache.causal(places, reach)[:, None], c.groups, cache.keys.dtype)
    x = trunk.embedding[tokens.flatten()].float()

    def mix(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        cache.write(i, places, in_slots(k, slots), in_slots(v, slots))
        keys, values = cache.keys[i, :, :, :reach], cache.values[i, :, :, :reach]
        return attend(q.to(keys.dtype), keys, values, mask)

    for i, layer in enumerate(trunk.layers):
        x = layer.run(x, c, cos, sin, partial(mix, i))
    return rms_norm(x, trunk.norm, c.norm_eps).view(slots, rows, -1)


def run_denoiser(denoiser: Denoiser, cache: StaticCache, canvas: Tensor, context: Tensor) -> Tensor:
    """Hidden states `[slots, rows, hidden]` of `canvas [slots, rows]` behind each sequence, whose last state is
    `context [slots, hidden]`; see `Denoiser.forward`."""
    trunk = denoiser.trunk
    c = trunk.config
    slots, rows = canvas.shape
    places = cache.places(rows)
    cos, sin = trunk.cos[places].flatten(0, 1), trunk.sin[places].flatten(0, 1)
    mask = additive_mask(cache.block(rows)[:, None], c.groups, cache.keys.dtype)
    embedded = trunk.embedding[canvas.flatten()].float()
    x = denoiser.fuse(torch.cat([embedded, context.repeat_interleave(rows, 0)], dim=-1)).float()

    def mix(source: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = (
            torch.cat([past[source], in_slots(own, slots).to(past.dtype)], dim=2)
            for past, own in ((cache.keys, k), (cache.values, v))
        )
        return attend(q.to(keys.dtype), keys, values, mask)

    for layer, source in zip(denoiser.layers, denoiser.shape.trunk_layers, strict=True):
        x = layer.run(x, c, cos, sin, partial(mix, source))
    return rms_norm(x, denoiser.norm, c.norm_eps).view(slots, rows, -1)


class BatchedDecoder:
    """Greedy decoding of `slots` sequences at once, drafted in blocks of `size` rows, the first of which is known.

    With `size` 1 or without a denoiser it is plain decoding. On a CUDA device steps and short prompts of `rows` tokens
    are captured as graphs when it is made; elsewhere the same code runs as it is. One caller at a time. What does not
    fit in `capacity` raises `ValueError` and changes nothing.
    """

    def __init__(
        self,
        trunk: Transformer,
        denoiser: Denoiser | None,
        *,
        slots: int,
        capacity: int,
        size: int,
        rows: int = 32,
    ) -> None:
        self.trunk, self.denoiser = trunk, denoiser if size > 1 else None
        self.size = size if self.denoiser is not None else 1
        device = trunk.device
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        if capacity > trunk.config.max_positions:
            raise ValueError(f"{capacity} places, but {trunk.config.max_positions} positions")
        self.cache = StaticCache.empty(trunk.config, slots, capacity, device, dtype)
        self.anchor = torch.zeros(slots, dtype=torch.long, device=device)
        self.state = torch.zeros(slots, trunk.config.hidden_size, device=device)
        self.tail = torch.zeros(slots, rows, dtype=torch.long, device=device)
        self.counts = torch.ones(slots, dtype=torch.long, device=device)
        self.given = torch.full((slots, self.size - 1), -1, device=device)
        self.known = [0] * slots
        self.next: list[int | None] = [None] * slots
        self._step = captured(self._work_of_step, device)
        self._encode = captured(self._work_of_encoding, device)
        self.rewind(self.known)

    @property
    def slots(self) -> int:
        return len(self.known)

    @torch.inference_mode()
    def prefill(self, slot: int, tokens: Sequence[int], chunk: int = PREFILL_ROWS) -> None:
        """Encode a sequence into a slot from its start, `chunk` tokens a pass."""
        self._check([len(tokens) if i == slot else 0 for i in range(self.slots)])
        one, device = self.cache.slot(slot), self.trunk.device
        one.lengths.zero_()
        for start in range(0, len(tokens), chunk):
            part = torch.tensor([tokens[start : start + chunk]], device=device)
            end = start + part.shape[1]
            hidden = run_trunk(self.trunk, one, part, reach=end)
            one.lengths.fill_(end)
        self.state[slot] = hidden[0, -1]
        self.anchor[slot] = self.trunk.head(hidden[0, -1:]).argmax(-1)[0]
        self.known[slot] = len(tokens)
        self.next[slot] = None

    @torch.inference_mode()
    def rewind(self, lengths: Sequence[int]) -> None:
        """Keep only so much of each slot's sequence; encode at least one token before the next step."""
        self.known = list(lengths)
        self.cache.lengths.copy_(torch.tensor(self.known))

    @torch.inference_mode()
    def encode(self, tails: Sequence[Sequence[int]]) -> None:
        """Put a tail of 1 to `rows` tokens behind each slot's sequence, in one pass."""
        width = self.tail.shape[1]
        if not all(1 <= len(tail) <= width for tail in tails):
            raise ValueError(f"tails have 1 to {width} tokens")
        self._check([n + width for n in self.known])
        padded = torch.tensor([[*tail, *[0] * (width - len(tail))] for tail in tails])
        self.tail.copy_(padded)
        self.counts.copy_(torch.tensor([len(tail) for tail in tails]))
        self._encode()
        self.next = [None] * self.slots
        self.known = [n + len(tail) for n, tail in zip(self.known, tails, strict=True)]

    @torch.inference_mode()
    def step(self, drafts: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
        """The next tokens of each slot, 1 to `size`; the host waits once.

        `drafts` are guesses of what follows the token that comes `next` in each slot; the denoiser guesses the rest.
        """
        self._check([n + self.size for n in self.known])
        if self.size > 1:
            room = self.size - 1
            rows = [list(one)[:room] for one in drafts or [[]] * self.slots]
            self.given.copy_(torch.tensor([[*row, *[-1] * (room - len(row))] for row in rows]))
        found = []
        for slot, (*tokens, count, following) in enumerate(self._step().tolist()):
            found.append(tokens[:count])
            self.known[slot] += count
            self.next[slot] = following
        return found

    def _check(self, lengths: Sequence[int]) -> None:
        if max(lengths) > self.cache.capacity:
            raise ValueError(f"{max(lengths)} tokens, but room for {self.cache.capacity}")

    def _work_of_encoding(self) -> Tensor:
        hidden = run_trunk(self.trunk, self.cache, self.tail)
        last = (self.counts - 1)[:, None, None].expand(-1, 1, hidden.shape[-1])
        self.state.copy_(hidden.gather(1, last).squeeze(1))
        self.anchor.copy_(self.trunk.head(self.state).argmax(-1))
        self.cache.lengths.add_(self.counts)
        return self.anchor

    def _work_of_step(self) -> Tensor:
        """`[slots, size + 2]`: a block that begins with the known token, how many of its tokens stand, and the next."""
        canvas = torch.cat([self.anchor[:, None], self._drafts()], dim=1)
        hidden = run_trunk(self.trunk, self.cache, canvas)
        best = self.trunk.head(hidden.flatten(0, 1)).argmax(-1).view(canvas.shape)
        agreed = (canvas[:, 1:] == best[:, :-1]).long().cumprod(1).sum(1)
        self.anchor.copy_(best.gather(1, agreed[:, None]).squeeze(1))
        last = agreed[:, None, None].expand(-1, 1, hidden.shape[-1])
        self.state.copy_(hidden.gather(1, last).squeeze(1))
        self.cache.lengths.add_(agreed + 1)
        return torch.cat([canvas, agreed[:, None] + 1, self.anchor[:, None]], dim=1)

    def _drafts(self) -> Tensor:
        """What was given, and where nothing was the denoiser's guess, all at once, `[slots, size - 1]`."""
        if self.denoiser is None:
            return self.given
        masks = torch.full_like(self.given, self.denoiser.shape.mask_id)
        canvas = torch.cat(
            [self.anchor[:, None], torch.where(self.given < 0, masks, self.given)], 1
        )
        hidden = run_denoiser(self.denoiser, self.cache, canvas, self.state)[:, 1:]
        guess = self.denoiser.logits(hidden.flatten(0, 1)).argmax(-1).view(self.given.shape)
        return torch.where(self.given < 0, guess, self.given)


def captured(work: Callable[[], Tensor], device: torch.device) -> Callable[[], Tensor]:
    """The work as a CUDA graph over the tensors that it uses; on other devices the work itself.

    It is run some times before, so whatever it changes must be put right afterwards.
    """
    if device.type != "cuda":
        return work
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.inference_mode(), torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            work()
    torch.cuda.current_stream(device).wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        result = work()

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay
