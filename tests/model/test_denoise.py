from __future__ import annotations

import pytest
import torch
from tiny import random_bundle

from model.cache import PrefixCache
from model.denoise import Decoder, denoise_block, ngram_draft, prefill, rows_within_bound
from model.evaluation.miniature import random_denoiser, random_trunk
from model.protocol import Cancelled, Expired, Stop

CONTEXT = [20, 30, 40, 20, 30, 40, 20, 30]


def greedy(decoder: Decoder, count: int) -> list[int]:
    trunk, ids = decoder.trunk, list(CONTEXT)
    while len(ids) < len(CONTEXT) + count:
        logits = trunk.head(trunk.forward(torch.tensor(ids), trunk.new_cache(64)))[-1]
        ids.append(int(logits.argmax()))
    return ids[len(CONTEXT) :]


@pytest.mark.parametrize("decoding", ["causal", "refine", "block"])
@torch.inference_mode()
def test_every_decoding_gives_the_greedy_text(decoding) -> None:
    bundle = random_bundle(decoding)
    slot = bundle.prefixes.acquire(CONTEXT)
    made = bundle.decoder.generate(slot, CONTEXT, max_tokens=12)
    expected = greedy(bundle.decoder, 12)
    assert made.tokens == expected
    assert len(made.log_probs) == len(made.entropies) == 12
    assert made.bytes == b"".join(bundle.tokenizer.token_bytes(t) for t in expected)
    assert (made.denoising_steps > 0) == (decoding == "block")


@torch.inference_mode()
def test_drafts_save_passes_when_they_are_right() -> None:
    bundle = random_bundle()
    first = bundle.decoder.generate(bundle.prefixes.acquire(CONTEXT), CONTEXT, max_tokens=8)
    reference = [*CONTEXT, *first.tokens]  # the answer has been seen before
    slot = PrefixCache(bundle.config).acquire(CONTEXT)
    again = bundle.decoder.generate(slot, CONTEXT, max_tokens=8, reference=reference)
    assert again.tokens == first.tokens
    assert again.kept >= 5
    assert again.forwards < first.forwards


@torch.inference_mode()
def test_the_answer_to_the_last_key_is_the_draft_for_the_next() -> None:
    bundle = random_bundle()
    first = bundle.decoder.generate(bundle.prefixes.acquire(CONTEXT), CONTEXT, max_tokens=8)
    typed = [*CONTEXT, *first.tokens[:2]]
    again = bundle.decoder.generate(bundle.prefixes.acquire(typed), typed, max_tokens=6)
    assert again.tokens == first.tokens[2:]
    assert again.forwards <= 3  # context, draft and one at its end


@torch.inference_mode()
def test_the_answer_begins_with_what_is_required() -> None:
    bundle = random_bundle()
    made = bundle.decoder.generate(
        bundle.prefixes.acquire(CONTEXT), CONTEXT, required=b" retur", max_tokens=6
    )
    assert made.bytes.startswith(b" retur")


@torch.inference_mode()
def test_done_ends_the_text_at_the_first_token_it_can() -> None:
    bundle = random_bundle()
    wanted = greedy(bundle.decoder, 6)
    size = len(b"".join(bundle.tokenizer.token_bytes(t) for t in wanted[:3]))
    made = bundle.decoder.generate(
        bundle.prefixes.acquire(CONTEXT),
        CONTEXT,
        max_tokens=6,
        done=lambda made: len(made.bytes) >= size,
    )
    assert made.tokens == wanted[:3]
    assert made.ended


def test_a_withdrawn_request_stops_and_a_deadline_keeps_what_is_decided() -> None:
    bundle = random_bundle()
    stop = Stop()
    stop.cancel()
    with pytest.raises(Cancelled):
        bundle.decoder.generate(bundle.prefixes.acquire(CONTEXT), CONTEXT, stop=stop)

    class Soon(Stop):
        calls = 0

        @property
        def expired(self) -> bool:
            self.calls += 1
            return self.calls > 3

    with torch.inference_mode():
        made = bundle.decoder.generate(
            PrefixCache(bundle.config).acquire(CONTEXT), CONTEXT, max_tokens=50, stop=Soon()
        )
        assert made.tokens == greedy(bundle.decoder, len(made.tokens))
    assert 0 < len(made.tokens) < 50
    assert not made.ended


@torch.inference_mode()
def test_a_deadline_on_the_way_into_the_context_keeps_what_was_encoded(monkeypatch) -> None:
    monkeypatch.setattr("model.denoise.PREFILL_CHUNKS", {"cpu": 3})
    trunk = random_trunk()
    slot = PrefixCache(trunk.config).acquire(CONTEXT)
    with pytest.raises(Expired):
        prefill(trunk, slot, CONTEXT, Stop(timeout=0))
    assert slot.tokens == CONTEXT[:3]
    hidden, passes = prefill(trunk, slot, CONTEXT, Stop())
    assert passes == 2
    whole = trunk.forward(torch.tensor(CONTEXT), trunk.new_cache(16))
    torch.testing.assert_close(hidden, whole[-1:], atol=1e-5, rtol=1e-4)


def test_ngram_draft_continues_the_latest_longest_match() -> None:
    tokens = [1, 2, 3, 9, 9, 1, 2, 3, 7, 8, 1, 2, 3]
    assert ngram_draft(tokens, tokens, {2: 2}) == [7, 8]
    assert ngram_draft([5, 5, 5, 5], [5, 5, 5, 5]) == [5]
    assert ngram_draft([1, 2, 3, 4], [1, 2, 3, 4]) == []
    assert ngram_draft([8, 2, 3], [2, 3, 6, 3]) == [6, 3]
    assert ngram_draft([8, 2, 3], [1, 2, 3]) == []


def test_rows_are_committed_within_the_joint_entropy_bound() -> None:
    entropies = torch.tensor([0.5, 0.01, 0.04, 0.06])
    # sorted 0.01 0.04 0.06 0.5; sums before each: 0, 0.01, 0.05, 0.11
    assert rows_within_bound(entropies, 0.05).tolist() == [1, 2, 3]
    assert rows_within_bound(entropies, 0.2).tolist() == [1, 2, 3, 0]
    assert rows_within_bound(torch.tensor([3.0, 2.0]), 0.0).tolist() == [1]


@torch.inference_mode()
def test_a_block_is_filled_in_as_many_steps_as_allowed() -> None:
    trunk = random_trunk()
    denoiser = random_denoiser(trunk)
    slot = PrefixCache(trunk.config).acquire(CONTEXT)
    hidden, _ = prefill(trunk, slot, CONTEXT, Stop())
    one, steps = denoise_block(denoiser, slot, 7, hidden, steps=1, bound=0.0, stop=Stop())
    assert (len(one), steps) == (5, 1)
    short, _ = denoise_block(denoiser, slot, 7, hidden, steps=1, bound=0.0, stop=Stop(), size=3)
    assert len(short) == 2
    many, steps = denoise_block(denoiser, slot, 7, hidden, steps=9, bound=0.0, stop=Stop())
    assert (len(many), steps) == (5, 5)  # one row a step under a bound of nothing
    assert denoiser.shape.mask_id not in many or denoiser.shape.mask_id in one
    assert slot.tokens == CONTEXT


def test_watching_shows_drafts_and_what_became_of_them() -> None:
    bundle = random_bundle("block")
    states: list[tuple[list[int], list[int]]] = []
    context = bundle.tokenizer.encode("def f(a):\n    return")
    slot = bundle.prefixes.acquire(context)
    made = bundle.decoder.generate(
        slot,
        context,
        max_tokens=12,
        watch=lambda decided, drafted: states.append((list(decided), list(drafted))),
    )
    assert any(drafted for _, drafted in states)
    assert states[-1] == (made.tokens, [])
    for decided, _ in states:
        assert made.tokens[: len(decided)] == decided
