"""Requests side by side: what they share, and that nothing of one shows in another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("greenlet")

from tiny import random_bundle

from model.bundle import Bundle
from model.denoise import Decoding
from model.protocol import Stop
from model.together import Together

Work = Callable[[], None]


def run(together: Together, *batches: Sequence[Work]) -> None:
    """Each batch arrives one pass after the one before."""
    arriving = iter(batches)
    together.run(lambda: next(arriving, ()))


def double(arguments: list[int]) -> list[int]:
    return [2 * one for one in arguments]


class Recorded:
    """`double`, and who was in it with whom."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    def __call__(self, arguments: list[int]) -> list[int]:
        self.groups.append(list(arguments))
        if 13 in arguments:
            raise ValueError("13")
        return double(arguments)


def asks(
    together: Together, steps: Sequence[tuple[Any, int]], into: list[Any], **more: int
) -> Work:
    """A request that asks for one step after another, and keeps what it gets."""

    def work() -> None:
        try:
            for function, argument in steps:
                into.append(together.step(function, argument, **{"rows": 1, **more}))
        except ValueError as error:
            into.append(error)

    return work


def test_outside_of_a_run_a_step_is_done_at_once() -> None:
    assert Together().step(double, 4, rows=1) == 8


def test_what_is_asked_at_once_is_done_in_one_pass() -> None:
    together, recorded = Together(), Recorded()
    got: list[list[Any]] = [[], [], []]
    first = asks(together, [(recorded, 1), (recorded, 2)], got[0])
    second = asks(together, [(recorded, 3)], got[1])
    late = asks(together, [(recorded, 5), (recorded, 6)], got[2])
    run(together, [first, second], [late])
    assert recorded.groups == [[1, 3], [2, 5], [6]]
    assert got == [[2, 4], [6], [10, 12]]


def test_a_low_rank_goes_first_so_that_a_high_one_has_company() -> None:
    together, cheap, dear = Together(), Recorded(), Recorded()
    got: list[Any] = []

    def work() -> None:
        got.append(together.step(cheap, 1, rows=1))
        got.append(together.step(dear, 2, rows=1, rank=1))

    run(together, [asks(together, [(dear, 7)], got, rank=1), work])
    assert cheap.groups == [[1]]
    assert dear.groups == [[7, 2]]
    assert sorted(got) == [2, 4, 14]


def test_a_pass_has_a_limit_beside_the_one_that_has_waited_longest() -> None:
    together, recorded = Together(beside=10), Recorded()
    rows = {1: 90, 2: 6, 3: 5, 4: 4, 5: 70}
    run(together, [asks(together, [(recorded, n)], [], rows=count) for n, count in rows.items()])
    assert recorded.groups == [[1, 4, 3], [2], [5]]


def test_nobody_waits_for_long_and_the_small_go_with_every_one() -> None:
    together, recorded = Together(beside=10), Recorded()
    long = [
        asks(together, [(recorded, 10 * n + turn) for turn in range(3)], [], rows=64)
        for n in range(1, 4)
    ]
    short = asks(together, [(recorded, turn) for turn in range(4)], [])
    run(together, [*long, short])
    assert [group[0] for group in recorded.groups] == [10, 20, 30, 11, 21, 31, 12, 22, 32]
    assert [group[1:] for group in recorded.groups[:5]] == [[0], [1], [2], [3], []]


def test_one_that_fails_fails_alone() -> None:
    together, recorded = Together(), Recorded()
    got: list[list[Any]] = [[], [], []]
    numbers = (1, 13, 2)
    works = [
        asks(together, [(recorded, n), (double, n)], into)
        for n, into in zip(numbers, got, strict=True)
    ]
    run(together, works)
    assert recorded.groups == [[1, 13, 2], [1], [13], [2]]
    assert (got[0], got[2]) == ([2, 2], [4, 4])
    assert [str(one) for one in got[1]] == ["13"]


PROMPTS = (
    "def add(a, b):\n    return ",
    "import os\n",
    "class A:\n    x = 1\n    y = 2\n    z",
    "for",
)


def written(bundle: Bundle, prompt: str) -> list[int]:
    tokens = bundle.tokenizer.encode(prompt)
    slot = bundle.prefixes.acquire(tokens)
    return bundle.decoder.generate(slot, tokens, max_tokens=12, stop=Stop()).tokens


@pytest.mark.parametrize("decoding", ["causal", "refine", "block"])
@pytest.mark.usefixtures("one_thread")
def test_texts_written_side_by_side_are_those_written_alone(decoding: Decoding) -> None:
    alone = [written(random_bundle(decoding), prompt) for prompt in PROMPTS]
    together, bundle = Together(), random_bundle(decoding)
    bundle.trunk.together = together
    groups: list[int] = []
    passes = bundle.trunk._passes

    def counted(asked: Sequence[Any]) -> Sequence[Any]:
        groups.append(len(asked))
        return passes(asked)

    bundle.trunk._passes = counted  # type: ignore[method-assign]
    texts: dict[str, list[int]] = {}

    def works(prompt: str) -> Work:
        sibling = bundle.sibling()
        return lambda: texts.update({prompt: written(sibling, prompt)})

    run(together, [works(prompt) for prompt in PROMPTS])
    assert [texts[prompt] for prompt in PROMPTS] == alone
    assert len(set(map(tuple, alone))) == len(PROMPTS)
    assert groups.count(len(PROMPTS)) >= len(groups) // 2
    assert not bundle.prefixes.shared(bundle.tokenizer.encode(PROMPTS[0]))
