from __future__ import annotations

import pytest
import torch

from model.cache import PrefixCache, Slot
from model.denoise import prefill
from model.evaluation.miniature import CONFIG, random_trunk
from model.protocol import Stop


def fill(slot: Slot, tokens: list[int]) -> None:
    slot.cache.reserve(len(tokens) - len(slot.tokens))
    slot.append(tokens[len(slot.tokens) :])


def test_longest_common_prefix_is_kept() -> None:
    pool = PrefixCache(CONFIG)
    fill(pool.acquire([1, 2, 3, 4]), [1, 2, 3, 4])
    slot = pool.acquire([1, 2, 3, 9, 9])
    assert slot.tokens == [1, 2, 3]
    assert slot.cache.length == 3
    assert pool.shared([1, 2, 7]) == 2


def test_another_document_does_not_push_out_the_first() -> None:
    pool = PrefixCache(CONFIG, slots=2)
    fill(pool.acquire([1] * 10), [1] * 10)
    fill(pool.acquire([2] * 10), [2] * 10)
    assert pool.shared([1] * 10) == 10
    fill(pool.acquire([3] * 10), [3] * 10)  # the least recently used one makes room
    assert (pool.shared([1] * 10), pool.shared([2] * 10)) == (0, 10)


@torch.inference_mode()
def test_a_slot_that_branches_off_takes_the_shared_keys_along() -> None:
    trunk = random_trunk()
    pool = PrefixCache(trunk.config, slots=2)
    first = [5, 6, 7, *range(20, 40)]
    prefill(trunk, pool.acquire(first), first, Stop())
    second = [5, 6, 7, 50, 51]
    slot = pool.acquire(second)
    assert slot.tokens == [5, 6, 7]
    hidden, _ = prefill(trunk, slot, second, Stop())
    fresh, _ = prefill(trunk, PrefixCache(trunk.config).acquire(second), second, Stop())
    torch.testing.assert_close(hidden, fresh, atol=1e-5, rtol=1e-4)
    assert pool.shared(first) == len(first)


@torch.inference_mode()
def test_the_same_prompt_again_costs_no_pass() -> None:
    trunk = random_trunk()
    pool = PrefixCache(trunk.config)
    tokens = [5, 6, 7, 8]
    first, passes = prefill(trunk, pool.acquire(tokens), tokens, Stop())
    assert passes == 1
    slot = pool.acquire(tokens)
    trunk.forward(torch.tensor([9]), slot.cache)
    slot.append([9])  # an answer that follows
    again, passes = prefill(trunk, pool.acquire(tokens), tokens, Stop())
    assert passes == 0
    assert torch.equal(first, again)
    shorter, passes = prefill(trunk, pool.acquire(tokens[:3]), tokens[:3], Stop())
    assert passes == 1
    assert not torch.equal(first, shorter)


def test_too_long_a_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match="9 tokens exceed the cache's limit of 8"):
        PrefixCache(CONFIG, max_tokens=8).acquire([1] * 9)
