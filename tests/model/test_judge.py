from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from model.cache import PrefixCache
from model.denoise import prefill
from model.evaluation.miniature import random_trunk
from model.judge import ROOM, Aside, Branch, log_probabilities
from model.protocol import Expired, Stop

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
    beside, start, tokens = (31, 32, 33), 5, (1, 2, 9)
    aside = Aside(trunk).read(beside, 2, Stop())
    (found,) = log_probabilities(trunk, slot, [Branch(start, tokens)], aside)

    shared = start - 1  # the last shared token is the root of the branch
    ids = [*CONTEXT[:shared], *beside, CONTEXT[shared], *tokens]
    first = 2 - ROOM
    positions = [*range(shared), *range(first, first + 3), *range(shared, shared + 4)]
    allowed = torch.ones(len(ids), len(ids)).tril().bool()
    allowed[shared : shared + 3, :shared] = False
    hidden = trunk.forward(torch.tensor(ids), trunk.new_cache(32), torch.tensor(positions), allowed)
    table = trunk.head(hidden[shared + 3 :]).log_softmax(-1)
    expected = torch.stack([table[row, token] for row, token in enumerate(tokens)])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert slot.tokens == CONTEXT
    assert slot.cache.length == len(CONTEXT)


@torch.inference_mode()
def test_of_a_text_aside_that_grows_only_the_changed_tail_is_encoded() -> None:
    trunk = random_trunk()
    rows: list[int] = []
    forward = trunk.forward

    def counted(tokens: Tensor, *args: Any) -> Tensor:
        rows.append(len(tokens))
        return forward(tokens, *args)

    trunk.forward = counted  # type: ignore[method-assign]
    aside = Aside(trunk)
    grown = [*range(20, 40), 7, 8]
    aside.read([*range(20, 40), 8], 50, Stop())
    found = aside.read(grown, 50, Stop())
    assert rows == [21, 2]
    anew = Aside(trunk).read(grown, 50, Stop())
    torch.testing.assert_close(found.keys[:, :, :22], anew.keys[:, :, :22])
    rows.clear()
    aside.read([*grown, *range(20)], 50, Stop())  # it has outgrown its room
    assert rows == [len(grown) + 20]
    assert aside.read([], 50, Stop()).length == 0


@torch.inference_mode()
def test_a_text_aside_ends_at_the_deadline_and_is_read_on_from_there() -> None:
    aside = Aside(random_trunk())
    beside = [i % 90 for i in range(100)]
    with pytest.raises(Expired):
        aside.read(beside, 128, Stop(0))
    read = aside.slot.tokens
    assert read == beside[: len(read)]
    assert 0 < len(read) < 100
    anew = Aside(random_trunk()).read(beside, 128, Stop())
    torch.testing.assert_close(
        aside.read(beside, 128, Stop()).keys[:, :, :100], anew.keys[:, :, :100]
    )


@torch.inference_mode()
def test_positions_before_the_first_continue_the_rotation() -> None:
    trunk = random_trunk()
    ids = torch.tensor(CONTEXT)
    plain = trunk.forward(ids, trunk.new_cache(32))
    moved = trunk.forward(ids, trunk.new_cache(32), torch.arange(-4, 2))
    torch.testing.assert_close(moved, plain, atol=1e-4, rtol=1e-4)
