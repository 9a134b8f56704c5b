from __future__ import annotations

import pytest
import torch
from tiny import random_bundle

from model.branching import LONGER, Fork, forks, write_branches
from model.denoise import Generation
from model.protocol import Cancelled, Stop

CONTEXT = [20, 30, 40, 20, 30, 40, 20, 30]


@torch.inference_mode()
def test_branches_written_together_are_what_each_alone_would_be() -> None:
    bundle = random_bundle()
    slot = bundle.prefixes.acquire(CONTEXT)
    made = bundle.decoder.generate(slot, CONTEXT, max_tokens=8)
    chosen = [
        Fork(at, token, sum(made.log_probs[:at]) + score)
        for at in (0, 2, 5)
        for token, score in made.rivals[at][:1]
    ]
    held, length = list(slot.tokens), slot.cache.length
    written = write_branches(
        bundle.trunk, bundle.tokenizer, slot, len(CONTEXT), made, chosen, lambda _: False, Stop()
    )
    assert (slot.tokens, slot.cache.length) == (held, length)
    for fork, branch in zip(chosen, written, strict=True):
        begun = [*made.tokens[: fork.at], fork.token]
        alone = random_bundle("causal")
        rest = [*CONTEXT, *begun]
        wanted = alone.decoder.generate(alone.prefixes.acquire(rest), rest, max_tokens=20)
        own = branch.tokens[len(begun) :]
        assert branch.tokens[: len(begun)] == begun
        assert own == wanted.tokens[: len(own)]
        assert branch.log_probs[len(begun) :] == pytest.approx(
            wanted.log_probs[: len(own)], abs=1e-4
        )
        assert branch.ended or len(branch.tokens) >= len(made.tokens) + LONGER
        assert sum(branch.log_probs[: len(begun)]) == pytest.approx(fork.score, abs=1e-5)
    assert written[0].forwards > 0


def continuation(bundle, text: str, rivals: dict[int, list[tuple[str, float]]]) -> Generation:
    """Tokens of one character each, every one with log-probability -0.5."""
    encode = bundle.tokenizer.encode
    tokens = [encode(char)[0] for char in text]
    return Generation(
        tokens=tokens,
        log_probs=[-0.5] * len(tokens),
        bytes=text.encode(),
        rivals=[
            tuple((encode(char)[0], score) for char, score in rivals.get(at, ()))
            for at in range(len(tokens))
        ],
    )


def test_forks_are_the_likeliest_rivals_on_the_first_line_that_keep_to_what_is_required() -> None:
    bundle = random_bundle()
    rivals = {
        0: [("q", -0.6)],  # not what is required
        1: [("r", -0.9)],
        2: [("s", -0.7), ("t", -3.6)],  # the second is too unlikely
        4: [("u", -0.6)],  # on the second line
    }
    made = continuation(bundle, "abc\nd", rivals)
    found = forks(made, bundle.tokenizer, b"a")
    assert [(fork.at, round(fork.score, 3)) for fork in found] == [(1, -1.4), (2, -1.7)]
    assert [f.at for f in forks(made, bundle.tokenizer, b"a", limit=1)] == [1]


def test_a_fork_far_behind_the_whole_line_is_not_worth_a_branch() -> None:
    bundle = random_bundle()
    made = continuation(bundle, "abcd", {0: [("x", -1.0)], 2: [("y", -3.4)]})
    assert [fork.at for fork in forks(made, bundle.tokenizer, b"")] == [0, 2]  # -1, -4.4: line -2
    sure = continuation(bundle, "abcd", {0: [("x", -2.6)]})
    sure.log_probs = [-0.01] * 4
    assert forks(sure, bundle.tokenizer, b"") == []


def test_what_would_hardly_be_shown_is_not_written() -> None:
    bundle = random_bundle()
    made = continuation(bundle, "ab", {0: [("x", -6.5)], 1: [("y", -1.0)]})
    made.log_probs = [-6.0, -0.5]
    assert forks(made, bundle.tokenizer, b"") == []


@torch.inference_mode()
def test_a_withdrawn_request_ends_the_branches() -> None:
    bundle = random_bundle()
    slot = bundle.prefixes.acquire(CONTEXT)
    made = bundle.decoder.generate(slot, CONTEXT, max_tokens=8)
    stop = Stop()
    stop.cancel()
    chosen = forks(made, bundle.tokenizer, b"")
    arguments = (bundle.trunk, bundle.tokenizer, slot, len(CONTEXT), made, chosen)
    with pytest.raises(Cancelled):
        write_branches(*arguments, lambda _: False, stop)
    assert slot.cache.length == len(slot.tokens)
