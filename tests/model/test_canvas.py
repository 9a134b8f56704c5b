"""Decoding by every open family, against a plain loop: one token a step, everything encoded anew each time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from published_checkpoints import LAYOUTS, Reference, save_published
from torch import Tensor

from model.cache import PrefixCache
from model.canvas import ONE_AT_A_TIME, Answer, Canvas, CanvasDecoder, surest
from model.families import Published, open_published
from model.protocol import Cancelled, Stop
from model.transformer import Transformer
from model.windows import Windows

pytestmark = pytest.mark.usefixtures("one_thread")

BEFORE = [5, 17, 3, 88, 41, 41, 9, 60, 2, 33, 70, 11, 12, 200, 7, 99, 31, 54, 21, 8, 4]
AFTER = [44, 45, 10, 80, 81]
SPACE = 14
BIDIRECTIONAL = ("mdlm", "llada", "dream", "dreamon", "open-dcoder")
CAUSAL = ("nemotron", "sdar", "fast-dllm-v2", "stable-diffcoder", "bd3lm")


@dataclass
class Model:
    found: Published
    trunk: Transformer
    reference: Reference
    windows: Windows

    def write(
        self, before: list[int], after: list[int], stop: Stop | None = None, **options
    ) -> Answer:
        stop = stop or Stop()
        bound = options.pop("bound", ONE_AT_A_TIME)
        with torch.inference_mode():
            window = self.windows.open(before, after, stop)
            return CanvasDecoder(self.found, bound=bound).write(window, stop, **options)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Model]:
    """One of each, with blocks of 8 where the published ones are longer."""
    made = {}
    for name in LAYOUTS:
        folder, reference = save_published(tmp_path_factory.mktemp(name), name)
        found = open_published(folder)
        found = replace(found, block=min(found.block, 8))
        if found.family.part:
            found = replace(found, family=replace(found.family, part=4))
        if name == "nemotron":  # a size that 64 places are no multiple of
            found = replace(found, block=5)
        trunk = Transformer.load(found.weights(), found.config)
        windows = Windows(found, trunk, PrefixCache(found.config, slots=2), "none")
        made[name] = Model(found, trunk, reference, windows)
    return made


def best_row(rows: Tensor, found: Published) -> tuple[int, int]:
    """The surest row and its token, by the published measure."""
    p = rows.softmax(-1)
    if found.family.order == "entropy":
        doubt = -(p * p.clamp(min=1e-30).log()).sum(-1)
        row = int(doubt.argmin())
    else:
        row = int(p.max(-1).values.argmax())
    return row, int(p[row].argmax())


def plain(
    model: Model, before: list[int], after: list[int], limit: int, length: int = 0
) -> list[int]:
    """One token a step over the whole text: no cache, the attention pattern as a matrix of places."""
    found, family = model.found, model.found.family
    text, size = list(before), found.block
    lead = -len(before) % size if family.from_prompt else 0
    while len(text) - len(before) < limit:
        start = len(text)
        if family.attention == "bidirectional":
            room = length
        elif family.attention == "causal_context":
            room = size
        else:
            room = size - (start + lead) % size
        text += [found.mask] * room
        place = torch.arange(len(text) + len(after))
        if family.attention == "bidirectional":
            allowed = torch.ones(len(place), len(place), dtype=torch.bool)
        elif family.attention == "causal_context":
            allowed = (place[:, None] >= place[None]) | (place[:, None] >= start)
        else:
            allowed = (place[:, None] + lead) // size >= (place[None] + lead) // size
        at_border = family.shift and (start + lead) % size == 0
        first = at_border and family.attention == "block_causal"
        while masked := [i for i in range(start, len(text)) if text[i] == found.mask]:
            if family.part:
                masked = [
                    i
                    for i in masked
                    if (i + lead) // family.part == (masked[0] + lead) // family.part
                ]
            if first:
                masked, first = masked[:1], False
            logits = model.reference([*text, *after], allowed)
            rows = torch.stack([logits[i - 1 if family.shift else i] for i in masked])
            rows[:, list(found.forbidden)] = float("-inf")
            row, token = best_row(rows, found)
            text[masked[row]] = token
            known = [*text[start:], found.mask]
            if found.ends & set(known[: known.index(found.mask)]):
                break
        written = text[start:]
        end = next((i for i, token in enumerate(written) if token in found.ends), None)
        if end is not None or family.attention == "bidirectional":
            return text[len(before) : None if end is None else start + end][:limit]
    return text[len(before) :][:limit]


@pytest.mark.parametrize("name", CAUSAL)
def test_blocks_are_those_of_the_plain_loop(name: str, models) -> None:
    model = models[name]
    lengths, tokens = set(), set()
    for before in (BEFORE[:taken] for taken in (21, 16, 13, 6)):
        answer = model.write(before, [], max_tokens=11)
        assert answer.tokens == plain(model, before, [], 11)
        assert len(answer.log_probs) == len(answer.tokens)
        lengths.add(len(answer.tokens))
        tokens |= set(answer.tokens)
    assert max(lengths) > model.found.block
    assert len(tokens) > 6


@pytest.mark.parametrize("name", CAUSAL)
def test_what_an_earlier_prompt_left_changes_nothing(name: str, models) -> None:
    model = models[name]
    alone = plain(model, BEFORE, [], 9)
    for earlier in (BEFORE[:-4], BEFORE[:9], [*BEFORE[:14], 1, 2, 3], [*BEFORE, 77, 78]):
        model.write(earlier, [], max_tokens=9)
        assert model.write(BEFORE, [], max_tokens=9).tokens == alone


@pytest.mark.parametrize("name", [n for n in BIDIRECTIONAL if n != "dreamon"])
@pytest.mark.parametrize("length", [1, 7])
def test_a_canvas_is_that_of_the_plain_loop(name: str, length: int, models) -> None:
    model = models[name]
    answer = model.write(BEFORE, AFTER, max_tokens=16, length=length)
    assert answer.tokens == plain(model, BEFORE, AFTER, 16, length)
    assert answer.forwards == answer.steps == length


@pytest.mark.parametrize("name", ["mdlm", "dream"])
@pytest.mark.parametrize("reuse", ["prefix", "dual"])
def test_kept_keys_are_those_of_the_first_pass(name: str, reuse: str, models) -> None:
    """The first pass is exact; later ones see the kept texts as the first pass left them."""
    model = models[name]
    mask = model.found.mask
    with torch.inference_mode():
        exact = Windows(model.found, model.trunk, model.windows.prefixes, "none")
        kept = Windows(model.found, model.trunk, model.windows.prefixes, reuse)
        whole, window = (one.open(BEFORE, AFTER, Stop()) for one in (exact, kept))
        canvas = [mask] * 6
        torch.testing.assert_close(
            window.logits(canvas), whole.logits(canvas), atol=1e-4, rtol=1e-4
        )
        canvas[2] = 50
        second, true = window.logits(canvas), whole.logits(canvas)
        assert float((second - true).abs().max()) > 1e-3  # an approximation ...
        agree = torch.nn.functional.cosine_similarity(second, true).min()
        assert float(agree) > 0.9  # ... but of the same thing
        canvas.append(mask)  # another length: everything is encoded anew
        torch.testing.assert_close(
            window.logits(canvas), whole.logits(canvas), atol=1e-4, rtol=1e-4
        )


def test_the_kept_part_is_as_long_as_it_says(models) -> None:
    model = models["dream"]
    kept = len(BEFORE) - 1  # a shifted canvas is told by the token before it
    for reuse, length in (("none", 0), ("prefix", kept), ("dual", kept + len(AFTER))):
        window = Windows(model.found, model.trunk, model.windows.prefixes, reuse).open(
            BEFORE, AFTER, Stop()
        )
        window.logits([model.found.mask] * 3)
        assert window.cache.length == length


def grown(
    model: Model, before: list[int], after: list[int], start: int, most: int
) -> tuple[list[int], list[str]]:
    """DreamOn plainly: an expand becomes two masks, an end takes away its place and all masks behind it."""
    found, events = model.found, []
    canvas, budget = [found.mask] * start, most
    while found.mask in canvas:
        text = [*before, *canvas, *after]
        logits = model.reference(text, torch.ones(len(text), len(text), dtype=torch.bool))
        masked = [i for i, token in enumerate(canvas) if token == found.mask]
        rows = torch.stack([logits[len(before) + i - 1] for i in masked])
        rows[:, list(found.forbidden)] = float("-inf")
        if len(canvas) >= most or budget == 0:
            rows[:, found.expand] = float("-inf")
        row, token = best_row(rows, found)
        place = masked[row]
        if token == found.expand:
            canvas[place : place + 1] = [found.mask, found.mask]
            budget -= 1
            events.append("expand")
        elif token == found.end:
            canvas = canvas[:place] + [t for t in canvas[place + 1 :] if t != found.mask]
            events.append("delete")
        else:
            canvas[place] = token
    return canvas, events


def biased(model: Model, token: int, by: float) -> Model:
    """The same model with one token likelier everywhere."""

    def reference(tokens: list[int], allowed: Tensor) -> Tensor:
        logits = model.reference(tokens, allowed).clone()
        logits[:, token] += by
        return logits

    trunk = Transformer.load(model.found.weights(), model.found.config)
    head = trunk.head

    def leaning(hidden: Tensor) -> Tensor:
        logits = head(hidden).clone()
        logits[:, token] += by
        return logits

    trunk.head = leaning
    windows = Windows(model.found, trunk, model.windows.prefixes)
    return replace(model, trunk=trunk, reference=reference, windows=windows)


@pytest.mark.parametrize("what", ["expand", "end"])
def test_a_canvas_of_variable_length_is_that_of_the_plain_loop(what: str, models) -> None:
    seen = set()
    for by in (2.0, 4.0, 5.0, 6.0):
        model = biased(models["dreamon"], getattr(models["dreamon"].found, what), by)
        answer = model.write(BEFORE, AFTER, max_tokens=12, length=6)
        expected, events = grown(model, BEFORE, AFTER, 6, 12)
        assert answer.tokens == expected
        seen |= set(events)
    assert seen == {"expand" if what == "expand" else "delete"}


def test_an_answer_that_only_wants_to_grow_ends(models) -> None:
    model = biased(models["dreamon"], models["dreamon"].found.expand, 1000.0)
    answer = model.write(BEFORE, AFTER, max_tokens=10, bound=100.0)
    assert len(answer.tokens) == 10
    assert model.found.expand not in answer.tokens


def test_an_answer_that_is_deleted_is_empty(models) -> None:
    model = biased(models["dreamon"], models["dreamon"].found.end, 1000.0)
    answer = model.write(BEFORE, AFTER, max_tokens=10)
    assert answer.tokens == []
    assert answer.ended


@pytest.mark.parametrize("name", [*CAUSAL, *BIDIRECTIONAL])
def test_an_answer_begins_with_what_is_required_and_holds_no_control_token(
    name: str, models
) -> None:
    model = models[name]
    after = AFTER if name in BIDIRECTIONAL else []
    for required in (b"ret", b"xy\n", "é".encode()):
        answer = model.write(BEFORE[:15], after, required=required, max_tokens=9)
        text = b"".join(model.found.tokenizer.token_bytes(token) for token in answer.tokens)
        assert text.startswith(required)
        assert not set(answer.tokens) & model.found.tokenizer.control_ids


@pytest.mark.parametrize("name", ["sdar", "llada"])
def test_a_bound_decides_several_places_a_step(name: str, models) -> None:
    model = models[name]
    after = AFTER if name == "llada" else []
    one = model.write(BEFORE[:16], after, max_tokens=8, length=8)
    all_ = model.write(BEFORE[:16], after, max_tokens=8, length=8, bound=1e6)
    assert all_.steps < one.steps
    assert len(all_.tokens) == len(one.tokens)


def test_the_surest_rows_under_the_bound() -> None:
    p = torch.tensor([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.97, 0.03, 0.0], [1.0, 0.0, 0.0]])
    assert surest(p.log(), "confidence", ONE_AT_A_TIME).tolist() == [3]
    assert surest(p.log(), "entropy", 0.0).tolist() == [
        3,
        2,
    ]  # 0 and 0.13 nats: the largest is free
    assert surest(p.log(), "entropy", 0.14).tolist() == [3, 2, 0]
    assert sorted(surest(p.log(), "confidence", 9.0).tolist()) == [0, 1, 2, 3]


def test_a_part_of_a_block_is_filled_before_the_next() -> None:
    canvas = Canvas(6, mask=0, offset=2)
    assert canvas.masked(4) == [0, 1]
    canvas.decide(0, 5, 0.0)
    canvas.decide(1, 5, 0.0)
    assert canvas.masked(4) == [2, 3, 4, 5]
    assert canvas.masked() == [2, 3, 4, 5]


def test_a_deadline_leaves_what_is_decided_up_to_the_first_mask(models) -> None:
    model = models["llada"]

    class Soon(Stop):
        looks = 0

        @property
        def expired(self) -> bool:
            self.looks += 1
            return self.looks > 5

    answer = model.write(BEFORE, AFTER, Soon(), max_tokens=16, length=12)
    whole = model.write(BEFORE, AFTER, max_tokens=16, length=12)
    assert answer.steps == 5
    assert not answer.ended
    assert answer.tokens == whole.tokens[: len(answer.tokens)]


def test_a_withdrawn_request_is_dropped(models) -> None:
    class Withdrawn(Stop):
        looks = 0

        def check(self) -> None:
            self.looks += 1
            if self.looks > 4:
                self.cancel()
            super().check()

    stop = Withdrawn()
    with pytest.raises(Cancelled):
        models["llada"].write(BEFORE, AFTER, stop, max_tokens=30, length=12)
    assert stop.looks == 5  # it is looked at before every pass


def test_only_a_bidirectional_model_has_text_behind_its_answer(models) -> None:
    with pytest.raises(ValueError, match="behind"):
        models["sdar"].write(BEFORE, AFTER)


def test_a_fixed_length_is_chosen_at_first_sight(models) -> None:
    model = models["llada"]
    answer = model.write(BEFORE, AFTER, max_tokens=20)
    tried = {4: 0.0, 8: 0.0, 16: 0.0}
    for length in tried:
        text = [*BEFORE, *[model.found.mask] * length, *AFTER]
        logits = model.reference(text, torch.ones(len(text), len(text), dtype=torch.bool))
        rows = logits[len(BEFORE) : len(BEFORE) + length]
        tried[length] = float(rows.log_softmax(-1).amax(-1).mean())
    best = max(tried, key=tried.__getitem__)
    assert answer.steps <= best
    assert answer.forwards == answer.steps + len(tried)
