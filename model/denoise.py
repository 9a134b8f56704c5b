"""What goes there: a canvas, refined until every token in it is decided.

Responsible for the decoding loop. A canvas starts from a draft (tokens found earlier in the context, or masks) and is
refined by one of two means behind one interface:

* causal refinement: one causal pass keeps what agrees with the model and corrects the first token that does not;
* block denoising: the block denoiser fills masked rows in parallel, the surest first, and the causal pass that commits
  the block verifies it.

Either way the committed text is what greedy decoding of the trunk alone would have given (`accept=1`), so a draft costs
time at worst. Knows nothing of text beyond the bytes of tokens, nor where in a file the canvas lies.

Committing rows under a bound on their joint entropy follows Ben-Hamu et al. 2025 (arXiv 2505.24857); keeping the
agreeing prefix of a draft is greedy speculative decoding, Leviathan et al. 2023 (arXiv 2211.17192).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from model.cache import Slot
from model.denoiser import Denoiser
from model.grammar import Constraint
from model.protocol import Expired, Stop
from model.tokenizer import Tokenizer
from model.transformer import Transformer

Decoding = Literal["causal", "refine", "block"]

PREFILL_CHUNKS = {"cpu": 64}
PREFILL_CHUNK = 1024
NGRAM_DRAFTS = {4: 10, 3: 6, 2: 3}
RECENT_DRAFTS = {4: 10, 3: 10, 2: 10}
RECENT = 4
RIVALS = 3


@dataclass(slots=True)
class Generation:
    """Decided tokens with their log-probabilities, and what it took.

    `forwards` are passes of the trunk after the context was encoded. `bytes` begins with the bytes that were required;
    `ended` is set when the model or `done` ended the text, unset when a limit or the deadline did. `ends` are the
    log-probabilities of an end before each token, and behind the last where it was seen; empty without an end token.
    `rivals` are the likeliest other tokens at each place with their log-probabilities.
    """

    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    bytes: bytes = b""
    forwards: int = 0
    denoising_steps: int = 0
    drafted: int = 0
    kept: int = 0
    ended: bool = False
    ends: list[float] = field(default_factory=list)
    rivals: list[tuple[tuple[int, float], ...]] = field(default_factory=list)


def prefill(
    trunk: Transformer, slot: Slot, tokens: Sequence[int], stop: Stop
) -> tuple[Tensor, int]:
    """Encode what `slot` does not hold yet of `tokens`; the last hidden state `[1, hidden]` and the passes it took.

    A last state that the slot remembers costs nothing; otherwise the last token is run again. Raises as `encode` does.
    """
    stop.check()
    if slot.state is not None and slot.state_at == len(slot.tokens) == len(tokens):
        return slot.state, 0
    slot.rewind(min(len(slot.tokens), len(tokens) - 1))
    hidden, passes = encode(trunk, slot, tokens, stop)
    assert hidden is not None
    slot.remember(hidden[-1:])
    return hidden[-1:], passes


def encode(
    trunk: Transformer, slot: Slot, tokens: Sequence[int], stop: Stop, first: int = 0
) -> tuple[Tensor | None, int]:
    """Put behind what `slot` holds the rest of `tokens`; the hidden states of the last pass, None where nothing was
    missing, and the passes. The first token is at position `first`.

    Chunks are as short as the device runs efficiently, so that a withdrawn request ends soon. Raises `Cancelled`, and
    `Expired` when the deadline passes on the way.
    """
    hidden, passes, device = None, 0, trunk.device
    size = PREFILL_CHUNKS.get(device.type, PREFILL_CHUNK)
    while len(slot.tokens) < len(tokens):
        stop.check()
        if passes and stop.expired:
            raise Expired
        start = len(slot.tokens)
        chunk = list(tokens[start : start + size])
        positions = torch.arange(first + start, first + start + len(chunk), device=device)
        hidden = trunk.forward(torch.tensor(chunk, device=device), slot.cache, positions)
        slot.append(chunk)
        passes += 1
    return hidden, passes


def ngram_draft(
    tokens: Sequence[int], source: Sequence[int], limits: Mapping[int, int] = NGRAM_DRAFTS
) -> list[int]:
    """What follows, in `source`, the latest occurrence of the longest suffix n-gram of `tokens`.

    `limits` are the sizes tried, and how many tokens a match of that size is trusted for.
    """
    for size, limit in limits.items():
        if len(tokens) <= size:
            continue
        suffix = list(tokens[-size:])
        for start in range(len(source) - size - 1, -1, -1):
            if source[start] == suffix[0] and list(source[start : start + size]) == suffix:
                return list(source[start + size : start + size + limit])
    return []


def entropy(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Entropy `[n]` in nats and log-probabilities `[n, vocab]`."""
    log_probs = logits.log_softmax(-1)
    return -(log_probs.exp() * log_probs).sum(-1), log_probs


def rows_within_bound(entropies: Tensor, bound: float) -> Tensor:
    """Indices of the surest rows whose joint entropy bound holds: sum minus largest <= `bound`; at least one."""
    ordered, index = entropies.sort()
    excess = ordered.cumsum(0) - ordered
    count = max(1, int((excess <= bound).sum()))
    return index[:count]


def denoise_block(
    denoiser: Denoiser,
    slot: Slot,
    anchor: int,
    context: Tensor,
    *,
    steps: int,
    bound: float,
    stop: Stop,
    size: int | None = None,
) -> tuple[list[int], int]:
    """Fill the block behind `anchor`; the tokens after the anchor and the denoising steps taken.

    `size` counts rows with the anchor; by default the size that the denoiser was trained on.

    Rows are committed the surest first; the last step commits all that is left.
    """
    shape, device = denoiser.shape, denoiser.trunk.device
    size = shape.block if size is None else min(size, shape.block)
    canvas = torch.full((size,), shape.mask_id, device=device)
    canvas[0] = anchor
    positions = torch.arange(size, device=device) + slot.cache.length
    context = context.expand(size, -1)
    undecided = torch.arange(1, size, device=device)
    taken = 0
    while len(undecided):
        stop.check()
        taken += 1
        hidden = denoiser.forward(canvas, context, slot.cache, positions)
        logits = denoiser.logits(hidden[undecided])
        if taken >= steps or stop.expired:
            canvas[undecided] = logits.argmax(-1)
            break
        entropies, log_probs = entropy(logits)
        chosen = rows_within_bound(entropies, bound)
        canvas[undecided[chosen]] = log_probs[chosen].argmax(-1)
        keep = torch.ones(len(undecided), dtype=torch.bool, device=device)
        keep[chosen] = False
        undecided = undecided[keep]
    return canvas[1:].tolist(), taken


class Decoder:
    """The decoding loop over one trunk; one request at a time.

    `block` counts the rows of a denoised block with its anchor; by default as many as the denoiser was trained on.
    A model that was trained to fill in ends an answer with its end-of-text token, `end_id`; others have none.
    """

    def __init__(
        self,
        trunk: Transformer,
        tokenizer: Tokenizer,
        denoiser: Denoiser | None = None,
        decoding: Decoding = "refine",
        *,
        steps: int = 1,
        bound: float = 0.1,
        accept: float = 1.0,
        block: int | None = None,
    ) -> None:
        config = trunk.config
        self.end_id = config.special["endoftext"] if config.infill else None
        self.trunk, self.tokenizer, self.denoiser = trunk, tokenizer, denoiser
        self.decoding: Decoding = "refine" if decoding == "block" and denoiser is None else decoding
        self.steps, self.bound, self.accept, self.block = steps, bound, accept, block
        self._recent: deque[list[int]] = deque(maxlen=RECENT)

    def sibling(self) -> Decoder:
        """One of the same model and ways that remembers nothing of this one's requests."""
        other = copy(self)
        other._recent = deque(maxlen=RECENT)
        return other

    def generate(
        self,
        slot: Slot,
        context: Sequence[int],
        hidden: Tensor | None = None,
        *,
        required: bytes = b"",
        max_tokens: int = 64,
        done: Callable[[Generation], bool] = lambda _: False,
        reference: Sequence[int] = (),
        constraint: Constraint | None = None,
        stop: Stop | None = None,
        watch: Callable[[Sequence[int], Sequence[int]], None] = lambda decided, drafted: None,
    ) -> Generation:
        """Continue `context` (at least one token) until `done`, a control token, a limit or the deadline.

        `done` is asked after every token; the slot then holds the context and at least the tokens decided so far.
        `hidden [1, hidden]` is the context's last state if the caller has encoded it into `slot`.
        `required` are bytes the continuation must begin with. `reference` are tokens from elsewhere that drafts may
        be copied from; what was generated recently is always tried first, because the next key mostly agrees with it.
        Under a `constraint` each token is the likeliest that it allows, and drafts are what it leaves no choice about;
        nothing may be required then. `watch` sees each state of the canvas: the decided tokens, and the drafted ones
        that are yet to be verified. Raises `Cancelled` when the request was withdrawn.
        """
        stop = stop or Stop()
        out = Generation()
        if hidden is None:
            hidden, _ = prefill(self.trunk, slot, context, stop)
        logits = self.trunk.head(hidden)[0]
        sequence = [*reference, *context]
        stopped = False
        forced = self.tokenizer.forced(required)
        if forced:
            hidden, rows = self._commit(slot, forced, out, stop)
            self._record(out, [logits, *rows[:-1]], forced, lambda _: False)
            sequence.extend(forced)
            hidden, logits = hidden[-1:], rows[-1]
        while len(out.tokens) < max_tokens and not stop.expired:
            pending = required[len(out.bytes) :]
            first = self._choose(logits, pending, constraint)
            if first in self.tokenizer.control_ids:
                out.ended = True
                break
            sequence.append(first)
            if constraint is not None:
                constraint.take(first)
                draft = constraint.forced()
            else:
                begun = len(pending) > len(self.tokenizer.token_bytes(first))
                draft = [] if begun else self._draft(slot, sequence, first, hidden, out, stop)
            draft = draft[: max_tokens - len(out.tokens) - 1]
            watch([*out.tokens, first], draft)
            hidden, rows = self._commit(slot, [first, *draft], out, stop)
            accepted = self._verify(rows, draft, constraint)
            slot.rewind(len(slot.tokens) - len(draft) + accepted)
            out.drafted += len(draft)
            out.kept += accepted
            sequence.extend(draft[:accepted])
            stopped = self._record(
                out, [logits, *rows[:accepted]], [first, *draft[:accepted]], done
            )
            watch(out.tokens, ())
            if constraint is not None and constraint.closed:
                out.ended = stopped = True
            if stopped:
                break
            hidden, logits = hidden[accepted : accepted + 1], rows[accepted]
        if self.end_id is not None and len(out.ends) == len(out.tokens) and not stopped:
            out.ends.append(float(logits.log_softmax(-1)[self.end_id]))
        self._recent.append([*context[-max(NGRAM_DRAFTS) :], *out.tokens])
        return out

    def _choose(self, logits: Tensor, pending: bytes, constraint: Constraint | None) -> int:
        """The likeliest token, among those that agree with the constraint or the pending bytes if there are any."""
        if constraint is not None:
            return int(constraint.only(logits, self.tokenizer.control_ids).argmax())
        if not pending:
            return int(logits.argmax())
        allowed = self.tokenizer.continuations(pending)
        if not allowed:
            return int(logits.argmax())
        return allowed[int(logits[torch.tensor(allowed, device=logits.device)].argmax())]

    def _draft(
        self,
        slot: Slot,
        sequence: list[int],
        anchor: int,
        hidden: Tensor,
        out: Generation,
        stop: Stop,
    ) -> list[int]:
        if self.decoding == "causal":
            return []
        for recent in reversed(self._recent):
            if found := ngram_draft(sequence, recent, RECENT_DRAFTS):
                return found
        found = ngram_draft(sequence, sequence)
        if found or self.decoding == "refine" or self.denoiser is None:
            return found
        block, steps = denoise_block(
            self.denoiser,
            slot,
            anchor,
            hidden,
            steps=self.steps,
            bound=self.bound,
            stop=stop,
            size=self.block,
        )
        out.denoising_steps += steps
        return block

    def _commit(
        self, slot: Slot, canvas: list[int], out: Generation, stop: Stop
    ) -> tuple[Tensor, Tensor]:
        """One causal pass over the canvas: hidden states and logits of its rows; the slot keeps all of it."""
        stop.check()
        hidden = self.trunk.forward(torch.tensor(canvas, device=self.trunk.device), slot.cache)
        slot.append(canvas)
        out.forwards += 1
        return hidden, self.trunk.head(hidden)

    def _verify(self, rows: Tensor, draft: list[int], constraint: Constraint | None) -> int:
        """How many drafted tokens stand: each must be the likeliest, or nearly so if `accept` < 1. Those of a
        constraint stand all."""
        if constraint is not None:
            for token in draft:
                constraint.take(token)
            return len(draft)
        if not draft:
            return 0
        wanted = torch.tensor(draft, device=rows.device)
        best = rows[:-1].amax(-1)
        chosen = rows[:-1].gather(1, wanted[:, None]).squeeze(1)
        margin = 0.0 if self.accept >= 1 else -float(torch.tensor(self.accept).log())
        agree = chosen >= best - margin
        agree &= ~torch.tensor([t in self.tokenizer.control_ids for t in draft], device=rows.device)
        return int(agree.long().cumprod(0).sum())

    def _record(
        self,
        out: Generation,
        before: list[Tensor],
        tokens: list[int],
        done: Callable[[Generation], bool],
    ) -> bool:
        """Append decided tokens one by one, so that `done` ends the text at the first place it can."""
        entropies, log_probs = entropy(torch.stack(before))
        values, likeliest = (found.tolist() for found in log_probs.topk(RIVALS + 1))
        for row, token in enumerate(tokens):
            ranked = zip(likeliest[row], values[row], strict=True)
            out.rivals.append(tuple(pair for pair in ranked if pair[0] != token)[:RIVALS])
            out.tokens.append(token)
            out.log_probs.append(float(log_probs[row, token]))
            out.entropies.append(float(entropies[row]))
            if self.end_id is not None:
                out.ends.append(float(log_probs[row, self.end_id]))
            out.bytes += self.tokenizer.token_bytes(token)
            if done(out):
                out.ended = True
                return True
        return False
