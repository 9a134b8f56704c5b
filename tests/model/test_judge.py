from __future__ import annotations

import torch
from tiny import random_trunk

from model.cache import PrefixCache
from model.denoise import prefill
from model.judge import Aside, Branch, log_probabilities
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


@torch.inference_mode()
def test_what_is_read_aside_is_seen_by_the_branches_alone() -> None:
    trunk = random_trunk()
    slot = PrefixCache(trunk.config).acquire(CONTEXT)
    prefill(trunk, slot, CONTEXT, Stop())
    aside, start, tokens = Aside((31, 32, 33), at=2), 5, (1, 2, 9)
    (found,) = log_probabilities(trunk, slot, [Branch(start, tokens)], aside)

    shared = start - 1  # the last shared token is the root of the branch
    ids = [*CONTEXT[:shared], *aside.tokens, CONTEXT[shared], *tokens]
    positions = [*range(shared), -1, 0, 1, *range(shared, shared + 1 + len(tokens))]
    allowed = torch.ones(len(ids), len(ids)).tril().bool()
    allowed[shared : shared + 3, :shared] = False
    hidden = trunk.forward(torch.tensor(ids), trunk.new_cache(32), torch.tensor(positions), allowed)
    table = trunk.head(hidden[shared + 3 :]).log_softmax(-1)
    expected = torch.stack([table[row, token] for row, token in enumerate(tokens)])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert slot.tokens == CONTEXT


@torch.inference_mode()
def test_positions_before_the_first_continue_the_rotation() -> None:
    trunk = random_trunk()
    ids = torch.tensor(CONTEXT)
    plain = trunk.forward(ids, trunk.new_cache(32))
    moved = trunk.forward(ids, trunk.new_cache(32), torch.arange(-4, 2))
    torch.testing.assert_close(moved, plain, atol=1e-4, rtol=1e-4)
