"""Other ways that a continuation might have gone, written side by side.

Greedy decoding takes the likeliest token although what follows, or what stands after the cursor, may speak for a rival.
Responsible for choosing the forks, places where a rival was nearly as likely, and for writing all branches together:
each pass decides at least one token of every branch, under tree attention over the context and the branch's own tokens.
Knows nothing of text after the cursor or of which branch is best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from model.cache import Slot
from model.denoise import Generation, entropy, ngram_draft
from model.protocol import Stop
from model.tokenizer import Tokenizer
from model.transformer import Transformer

MAX_BRANCHES = 4
# Nats that a rival may be behind the token it rivals, and a fork behind the whole first line as it was written; a fork
# less likely than the last would hardly be shown.
MARGIN = 3.0
BEHIND = 2.5
HOPELESS = -6.0
REJOIN_DRAFTS = {3: 8, 2: 6, 1: 4}
LONGER = 8


@dataclass(frozen=True, slots=True)
class Fork:
    """The first `at` tokens of a continuation and another one behind them; `score` is their log-probability."""

    at: int
    token: int
    score: float


@dataclass(slots=True)
class Branch:
    """A continuation that is being written. `rows` are where its own tokens stand in the cache."""

    fork: Fork
    made: Generation
    rows: list[int] = field(default_factory=list)
    ended: bool = False


def forks(
    made: Generation, tokenizer: Tokenizer, required: bytes, limit: int = MAX_BRANCHES
) -> list[Fork]:
    """The likeliest places on the first line with text where `made` might have gone another way, at most `limit`.

    Every fork agrees with the `required` bytes.
    """
    found = []
    text, score = b"", 0.0
    for at, (token, rivals) in enumerate(zip(made.tokens, made.rivals, strict=True)):
        if b"\n" in text[len(required) :].lstrip(b"\n"):
            break
        for rival, log_prob in rivals:
            whole = text + tokenizer.token_bytes(rival)
            near = log_prob > made.log_probs[at] - MARGIN
            if near and whole.startswith(required) and rival not in tokenizer.control_ids:
                found.append(Fork(at, rival, score + log_prob))
        score += made.log_probs[at]
        text += tokenizer.token_bytes(token)
    least = max(HOPELESS, score - BEHIND)
    found = [fork for fork in found if fork.score > least]
    return sorted(found, key=lambda fork: -fork.score)[:limit]


def write_branches(
    trunk: Transformer,
    tokenizer: Tokenizer,
    slot: Slot,
    context: int,
    made: Generation,
    chosen: Sequence[Fork],
    done: Callable[[Generation], bool],
    stop: Stop,
) -> list[Generation]:
    """A continuation for each fork, greedy from there on until `done` or some tokens more than `made` has.

    `slot` holds `context` tokens of context and those of `made`; it is left as it was. `forwards` of the first counts
    the passes. Raises `Cancelled` when the request was withdrawn; branches are cut short at the deadline.
    """
    branches = [begin(fork, made, tokenizer) for fork in chosen]
    limit = len(made.tokens) + LONGER
    end, passes = len(slot.tokens), 0
    try:
        while alive := [b for b in branches if not b.ended and len(b.made.tokens) < limit]:
            stop.check()
            if stop.expired:
                break
            passes += 1
            advance(trunk, tokenizer, slot, context, made, alive, done)
    finally:
        slot.cache.truncate(end)
    if branches:
        branches[0].made.forwards = passes
    return [branch.made for branch in branches]


def begin(fork: Fork, made: Generation, tokenizer: Tokenizer) -> Branch:
    tokens = [*made.tokens[: fork.at], fork.token]
    own = fork.score - sum(made.log_probs[: fork.at])
    return Branch(
        fork,
        Generation(
            tokens=tokens,
            log_probs=[*made.log_probs[: fork.at], own],
            entropies=made.entropies[: fork.at + 1],
            bytes=b"".join(map(tokenizer.token_bytes, tokens)),
        ),
    )


def advance(
    trunk: Transformer,
    tokenizer: Tokenizer,
    slot: Slot,
    context: int,
    greedy: Generation,
    alive: Sequence[Branch],
    done: Callable[[Generation], bool],
) -> None:
    """One pass: every branch keeps what agrees of a draft of its rest, as the greedy one has it, and one token more."""
    drafts = [ngram_draft(b.made.tokens, greedy.tokens, REJOIN_DRAFTS) for b in alive]
    canvas = [[b.made.tokens[-1], *draft] for b, draft in zip(alive, drafts, strict=True)]
    first, total = slot.cache.length, sum(map(len, canvas))
    allowed = torch.zeros(total, first + total, dtype=torch.bool)
    positions: list[int] = []
    row = 0
    for branch, tokens in zip(alive, canvas, strict=True):
        size = len(tokens)
        mine = allowed[row : row + size]
        mine[:, : context + branch.fork.at] = True
        mine[:, branch.rows] = True
        mine[:, first + row : first + row + size] = torch.ones(size, size).tril().bool()
        start = context + len(branch.made.tokens) - 1
        positions += range(start, start + size)
        row += size
    device = trunk.device
    hidden = trunk.forward(
        torch.tensor([t for tokens in canvas for t in tokens], device=device),
        slot.cache,
        positions=torch.tensor(positions, device=device),
        allowed=allowed.to(device),
    )
    slot.cache.commit(total)
    entropies, log_probs = entropy(trunk.head(hidden))
    best = log_probs.argmax(-1).tolist()
    row = first
    for branch, draft in zip(alive, drafts, strict=True):
        for offset in range(len(draft) + 1):
            at = row - first + offset
            branch.rows.append(row + offset)
            token = best[at]
            if token in tokenizer.control_ids:
                branch.ended = branch.made.ended = True
                break
            record(branch.made, token, log_probs[at, token], entropies[at], tokenizer)
            if done(branch.made):
                branch.ended = branch.made.ended = True
                break
            if draft[offset : offset + 1] != [token]:
                break
        row += len(draft) + 1


def record(
    made: Generation,
    token: int,
    log_prob: torch.Tensor,
    uncertainty: torch.Tensor,
    tokenizer: Tokenizer,
) -> None:
    made.tokens.append(token)
    made.log_probs.append(float(log_prob))
    made.entropies.append(float(uncertainty))
    made.bytes += tokenizer.token_bytes(token)
