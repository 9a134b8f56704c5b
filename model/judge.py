"""Likelihood of alternative continuations of one context, all in one forward pass.

Responsible for scoring branches: token sequences that continue the cached context from given places. Branches that
share a beginning share rows (a token trie under tree attention), so judging what a draft changes costs little more
than the draft itself. Knows nothing of edits, text or thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.cache import KeyValueCache, Slot
from model.denoise import encode
from model.protocol import Stop
from model.transformer import Transformer

HEAD_ROWS = 256
# Positions by which the text aside moves when it has outgrown its room.
ROOM = 32


@dataclass(frozen=True, slots=True)
class Branch:
    """`tokens` continue the context's first `start` tokens; `start` is at least 1."""

    start: int
    tokens: tuple[int, ...]


class Aside:
    """Tokens that branches read as though they stood before one of the context's: what changes with every key.

    They see only each other and the context does not see them, so the context's keys and values outlive them
    (independent windows, as in Ratner et al. 2023, arXiv 2212.10947). Their own are kept, too: of a text that grows
    only the changed tail is encoded.
    """

    def __init__(self, trunk: Transformer) -> None:
        self.trunk = trunk
        self.slot = Slot(trunk.new_cache(ROOM))
        self.first = 0

    def read(self, tokens: Sequence[int], before: int, stop: Stop) -> KeyValueCache:
        """The keys and values of `tokens`, which end before the position `before`, closely.

        Their first position changes in steps, so that one more token leaves the others where they are. Raises as
        `encode` does.
        """
        first = before - -(-len(tokens) // ROOM) * ROOM
        if first != self.first:
            self.slot.rewind(0)
            self.first = first
        self.slot.rewind(self.slot.common(tokens))
        encode(self.trunk, self.slot, tokens, stop, first)
        return self.slot.cache


def log_probabilities(
    trunk: Transformer,
    slot: Slot,
    branches: Sequence[Branch],
    aside: KeyValueCache | None = None,
) -> list[Tensor]:
    """For each branch the log-probability of each of its tokens, `[len(tokens)]` float32.

    One forward pass; the slot's sequence is left as it was. The last shared token is run again as the root of its
    branches, so that no hidden state of the context need be kept. All branches see `aside`.
    """
    nodes: list[int] = []
    parents: list[int] = []
    starts: list[int] = []
    children: dict[tuple[int, int, int], int] = {}

    def node(start: int, parent: int, token: int) -> int:
        key = (start, parent, token)
        if key not in children:
            children[key] = len(nodes)
            nodes.append(token)
            parents.append(parent)
            starts.append(start)
        return children[key]

    paths: list[list[int]] = []
    for branch in branches:
        path = [node(branch.start, -1, slot.tokens[branch.start - 1])]
        for token in branch.tokens[:-1]:
            path.append(node(branch.start, path[-1], token))
        paths.append(path)
    if not nodes:
        return []

    past, n = slot.cache.length, len(nodes)
    beside = 0 if aside is None else aside.length
    depth = [0] * n
    inside = torch.zeros(n, n, dtype=torch.bool)
    for i, parent in enumerate(parents):
        if parent >= 0:
            inside[i] = inside[parent]
            depth[i] = depth[parent] + 1
        inside[i, i] = True
    roots = torch.tensor(starts) - 1
    allowed = torch.ones(n, past + beside + n, dtype=torch.bool)
    allowed[:, :past] = torch.arange(past) < roots[:, None]
    allowed[:, past + beside :] = inside
    device = trunk.device
    if aside is not None:
        slot.cache.append(aside, beside)
    hidden = trunk.forward(
        torch.tensor(nodes, device=device),
        slot.cache,
        positions=(roots + torch.tensor(depth)).to(device),
        allowed=allowed.to(device),
    )
    slot.cache.truncate(past)
    rows = torch.tensor([i for path in paths for i in path], device=device)
    targets = torch.tensor([t for branch in branches for t in branch.tokens], device=device)
    parts = []
    for block in range(0, len(rows), HEAD_ROWS):
        chunk = slice(block, block + HEAD_ROWS)
        logits = trunk.head(hidden[rows[chunk]])
        parts.append(logits.gather(1, targets[chunk, None]).squeeze(1) - logits.logsumexp(-1))
    return list(torch.cat(parts).cpu().split([len(branch.tokens) for branch in branches]))
