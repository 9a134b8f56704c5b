from __future__ import annotations

from dataclasses import fields

import pytest
import tiny
import torch
from torch import Tensor

from model.batched import BatchedDecoder, run_denoiser, run_trunk
from model.cache import KeyValueCache, Slot
from model.denoise import Generation, prefill
from model.evaluation.miniature import random_denoiser, random_trunk
from model.protocol import Stop
from model.static_cache import StaticCache
from model.transformer import Layer

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPTS = [[5, 9, 33], [70, 2, 41, 41, 8, 19, 60], [12], [3, 3, 3, 3], [50, 60, 70, 80, 90, 11]]


def decoder(size: int, slots: int = 1, **options: int) -> BatchedDecoder:
    trunk = random_trunk()
    denoiser = random_denoiser(trunk)
    return BatchedDecoder(trunk, denoiser, slots=slots, capacity=96, size=size, **options)


def written(found: BatchedDecoder, least: int) -> list[list[int]]:
    """Step until every slot has `least` tokens; those."""
    texts: list[list[int]] = [[] for _ in range(found.slots)]
    while min(map(len, texts)) < least:
        for text, tokens in zip(texts, found.step(), strict=True):
            text.extend(tokens)
    return [text[:least] for text in texts]


def greedy(prompt: list[int], count: int) -> list[int]:
    """Plain decoding by the ordinary trunk, one token a pass."""
    trunk = random_trunk()
    slot = Slot(KeyValueCache(trunk.config, 8))
    hidden, _ = prefill(trunk, slot, prompt, Stop())
    found: list[int] = []
    while len(found) < count:
        found.append(int(trunk.head(hidden).argmax()))
        hidden = trunk.forward(torch.tensor(found[-1:]), slot.cache)
        slot.append(found[-1:])
    return found


@pytest.mark.parametrize("size", [1, 2, 6])
def test_a_batch_writes_what_plain_decoding_writes(size: int) -> None:
    batch = decoder(size, slots=len(PROMPTS))
    for slot, prompt in enumerate(PROMPTS):
        batch.prefill(slot, prompt)
    assert written(batch, 24) == [greedy(prompt, 24) for prompt in PROMPTS]


def test_five_together_are_five_alone() -> None:
    together = decoder(6, slots=5)
    for slot, prompt in enumerate(PROMPTS):
        together.prefill(slot, prompt)
    for prompt, expected in zip(PROMPTS, written(together, 20), strict=True):
        alone = decoder(6)
        alone.prefill(0, prompt)
        assert written(alone, 20) == [expected]


def test_the_ordinary_engine_gives_the_same_tokens() -> None:
    bundle = tiny.random_bundle("block")
    context = bundle.tokenizer.encode("def area(width, height):\n    return width")
    slot = bundle.prefixes.acquire(context)
    hidden, _ = prefill(bundle.trunk, slot, context, Stop())
    made: Generation = bundle.decoder.generate(
        slot, context, hidden, required=b"", max_tokens=16, done=lambda _: False, stop=Stop()
    )
    assert len(made.tokens) == 16
    batch = BatchedDecoder(bundle.trunk, bundle.denoiser, slots=2, capacity=64, size=4)
    batch.prefill(0, context[:-2])
    batch.prefill(1, context)
    assert written(batch, 16)[1] == made.tokens


class Oracle(BatchedDecoder):
    """Drafts what is right for `right` places and wrong behind."""

    texts: tuple[list[int], ...]
    begin: tuple[int, ...]
    right = 0

    def _drafts(self) -> Tensor:
        rows = []
        for slot, text in enumerate(self.texts):
            at = self.known[slot] - self.begin[slot] + 1
            good = text[at : at + self.size - 1]
            rows.append([t if i < self.right else (t + 1) % 97 for i, t in enumerate(good)])
        return torch.tensor(rows)


@pytest.mark.parametrize("right", [0, 2, 5])
def test_right_drafts_are_kept_and_wrong_ones_are_not(right: int) -> None:
    trunk = random_trunk()
    batch = Oracle(trunk, random_denoiser(trunk), slots=2, capacity=96, size=6)
    batch.right = right
    batch.texts = tuple(greedy(prompt, 40) for prompt in PROMPTS[:2])
    batch.begin = (len(PROMPTS[0]), len(PROMPTS[1]))
    for slot in range(2):
        batch.prefill(slot, PROMPTS[slot])
    for _ in range(4):
        assert [len(tokens) for tokens in batch.step()] == [right + 1] * 2
    begin = 4 * (right + 1)
    batch.right = 0
    assert written(batch, 6) == [text[begin : begin + 6] for text in batch.texts]


def test_given_drafts_are_verified_too() -> None:
    batch = decoder(6, slots=2)
    texts = [greedy(prompt, 20) for prompt in PROMPTS[:2]]
    for slot in range(2):
        batch.prefill(slot, PROMPTS[slot])
    assert batch.next == [None, None]
    first = batch.step()
    counts = [len(tokens) for tokens in first]
    assert batch.next == [text[n] for text, n in zip(texts, counts, strict=True)]
    right = texts[0][counts[0] + 1 : counts[0] + 4]
    wrong = [(token + 1) % 97 for token in texts[1][counts[1] + 1 : counts[1] + 4]]
    second = batch.step([right, wrong])
    assert second[0][:4] == [texts[0][counts[0]], *right]
    assert second[1] == [texts[1][counts[1]]]
    found = written(batch, 6)
    for slot, text in enumerate(texts):
        begin = counts[slot] + len(second[slot])
        assert found[slot] == text[begin : begin + 6]


def test_prompts_in_chunks_are_prompts_in_one_pass() -> None:
    prompt = [(7 * i) % 90 + 1 for i in range(61)]
    whole, parts = decoder(6), decoder(6)
    whole.prefill(0, prompt)
    parts.prefill(0, prompt, chunk=7)
    logits = [one.trunk.head(one.state) for one in (whole, parts)]
    assert (logits[0] - logits[1]).abs().max() < 1e-4
    keys = [one.cache.keys[:, 0, :, : len(prompt)] for one in (whole, parts)]
    assert (keys[0] - keys[1]).abs().max() < 1e-4
    slot = Slot(KeyValueCache(whole.trunk.config, 8))
    hidden, _ = prefill(whole.trunk, slot, prompt, Stop())
    assert (whole.trunk.head(hidden) - logits[1]).abs().max() < 1e-4
    assert written(whole, 10) == written(parts, 10)


def test_a_tail_behind_what_is_kept_is_the_whole_prompt() -> None:
    batch = decoder(6, slots=2, rows=8)
    prompts = [PROMPTS[1], PROMPTS[4]]
    for slot, prompt in enumerate(prompts):
        batch.prefill(slot, [*prompt, 1, 1, 1])
    written(batch, 5)
    batch.rewind([4, 2])
    batch.encode([prompts[0][4:], prompts[1][2:]])
    assert batch.known == [7, 6]
    assert written(batch, 12) == [greedy(prompt, 12) for prompt in prompts]


def test_passes_agree_with_the_ordinary_ones() -> None:
    trunk = random_trunk()
    denoiser = random_denoiser(trunk)
    cache, static = KeyValueCache(trunk.config, 64), StaticCache.empty(trunk.config, 3, 32)
    past, canvas = torch.tensor([4, 7, 9, 20, 31]), torch.tensor([6, 8, 8, 8])
    hidden = trunk.forward(past, cache)
    cache.commit(5)
    static.lengths[2] = 3
    same = run_trunk(trunk, static.slot(1), past[None])
    static.lengths[1] = 5
    assert torch.allclose(same[0], hidden, atol=1e-5)
    assert static.keys[:, 2].abs().sum() == 0, "other slots are left alone"
    expected = denoiser.forward(canvas, hidden[-1:].expand(4, -1), cache, torch.arange(5, 9))
    states = torch.zeros(3, trunk.config.hidden_size)
    states[1] = hidden[-1]
    found = run_denoiser(denoiser, static, canvas.expand(3, 4), states)
    assert torch.allclose(found[1], expected, atol=1e-5)


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    batch = decoder(6, rows=8)
    batch.prefill(0, list(range(1, 88)))
    state = batch.state.clone()
    with pytest.raises(ValueError, match="97 tokens, but room for 96"):
        batch.prefill(0, [1] * 97)
    with pytest.raises(ValueError, match="1 to 8 tokens"):
        batch.encode([[1] * 9])
    with pytest.raises(ValueError, match="1 to 8 tokens"):
        batch.encode([[]])
    assert batch.known == [87]
    assert torch.equal(batch.state, state)
    for _ in range(9):
        if batch.known[0] + 6 > 96:
            break
        batch.step()
    with pytest.raises(ValueError, match="but room for 96"):
        batch.step()
    with pytest.raises(ValueError, match="300 places, but 256 positions"):
        BatchedDecoder(batch.trunk, None, slots=1, capacity=300, size=1)


def without_data(layers: list[Layer]) -> None:
    for layer in layers:
        for field in fields(layer):
            value = getattr(layer, field.name)
            if isinstance(value, Tensor):
                setattr(layer, field.name, value.to("meta"))
            elif value is not None:
                value.weight, value.padded = value.weight.to("meta", torch.bfloat16), False


def test_a_step_asks_nothing_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without data whatever waits for a value fails, as it would while a graph is captured; so do mixed devices."""
    trunk = random_trunk()
    denoiser = random_denoiser(trunk)
    without_data([*trunk.layers, *denoiser.layers])
    for name in ("embedding", "norm", "cos", "sin"):
        setattr(trunk, name, getattr(trunk, name).to("meta"))
    for linear in (trunk.unembed, denoiser.fuse):
        linear.weight = linear.weight.to("meta", torch.bfloat16)  # type: ignore[attr-defined]
        linear.padded = False  # type: ignore[attr-defined]
    denoiser.norm, trunk.device = denoiser.norm.to("meta"), torch.device("meta")
    monkeypatch.setattr(BatchedDecoder, "rewind", lambda self, lengths: None)
    batch = BatchedDecoder(trunk, denoiser, slots=3, capacity=64, size=6, rows=8)
    assert batch._work_of_encoding().shape == (3,)
    found = batch._work_of_step()
    assert (found.shape, found.dtype) == ((3, 8), torch.long)
    with pytest.raises(RuntimeError, match="meta"):
        found.tolist()
