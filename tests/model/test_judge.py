from __future__ import annotations

import torch
from tiny import random_trunk

from model.cache import PrefixCache
from model.denoise import prefill
from model.judge import Branch, log_probabilities
from model.protocol import Stop

CONTEXT = [4, 8, 15, 16, 23, 42]


@torch.inference_mode()
def test_branches_score_as_if_each_were_alone() -> None:
    trunk = random_trunk()
    slot = PrefixCache(trunk.config).acquire(CONTEXT)
    prefill(trunk, slot, CONTEXT, Stop())
    branches = [
        Branch(6, (1, 2, 3)),
        Branch(6, (1, 2, 9, 9)),  # shares two rows with the first
        Branch(3, (16, 23, 1)),  # continues an earlier place
        Branch(3, (7,)),
    ]
    scored = log_probabilities(trunk, slot, branches)
    for branch, found in zip(branches, scored, strict=True):
        ids = torch.tensor([*CONTEXT[: branch.start], *branch.tokens])
        table = trunk.head(trunk.forward(ids, trunk.new_cache(32))).log_softmax(-1)
        expected = [table[branch.start - 1 + i, t] for i, t in enumerate(branch.tokens)]
        torch.testing.assert_close(found, torch.stack(expected), atol=1e-4, rtol=1e-4)
    assert slot.tokens == CONTEXT
    assert slot.cache.length == 6


@torch.inference_mode()
def test_nothing_to_judge() -> None:
    trunk = random_trunk()
    slot = PrefixCache(trunk.config).acquire(CONTEXT)
    assert log_probabilities(trunk, slot, []) == []
