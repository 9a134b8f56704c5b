"""A model that says itself where to stop, on a tiny random trunk with the real tokenizer."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from tiny import random_bundle

from model.context import ContextBuilder
from model.denoise import Generation
from model.evaluation.variants import build, parse_variant
from model.gate import Gate
from model.infill import Infiller, offered
from model.local import LocalPredictor
from model.prompt import PromptWriter
from model.protocol import Request, Stop

TEXT = "def area(radius):\n    return radius\n"


def test_every_candidate_has_the_probability_of_its_tokens_and_an_end() -> None:
    bundle = random_bundle(infill=True)
    request = Request("fim", "a.py", TEXT, TEXT.index("radius\n"), max_tokens=6)
    writer = PromptWriter(bundle.tokenizer, bundle.config)
    prompt = writer.fim("a.py", ContextBuilder(writer.count, 128).build(request))
    assert prompt.tokens[0] == bundle.config.special["fim_suffix"]
    with torch.inference_mode():
        found, made = Infiller(bundle).complete(
            prompt.tokens, prompt.required, request, Stop(), prompt.reference
        )
        assert {one.text for one in found} >= {""}
        for one in found:
            tokens = (
                made.tokens[: one.tokens]
                if one.tokens
                else bundle.tokenizer.encode(prompt.required.decode())
            )
            sequence = [*prompt.tokens, *tokens, 0]
            cache = bundle.trunk.new_cache(len(sequence))
            rows = bundle.trunk.head(bundle.trunk.forward(torch.tensor(sequence), cache))
            picked = rows.log_softmax(-1)[:-1].gather(1, torch.tensor(sequence[1:])[:, None])
            exact = float(picked[len(prompt.tokens) - 1 :].sum())
            nothing = next(c for c in found if not c.text)
            if one is nothing:
                base = exact
        for one in found:
            sequence = [*prompt.tokens, *made.tokens[: one.tokens], 0]
            if one.tokens:
                cache = bundle.trunk.new_cache(len(sequence))
                rows = bundle.trunk.head(bundle.trunk.forward(torch.tensor(sequence), cache))
                picked = rows.log_softmax(-1)[:-1].gather(1, torch.tensor(sequence[1:])[:, None])
                exact = float(picked[len(prompt.tokens) - 1 :].sum())
                assert math.isclose(one.log_odds, exact - base, abs_tol=1e-3)
    assert math.isclose(sum(one.share for one in found), 1.0, abs_tol=1e-6)
    shares = [one.share for one in found]
    assert shares == sorted(shares, reverse=True)


def test_a_cut_inside_a_character_or_inside_what_is_required_is_no_candidate() -> None:
    bundle = random_bundle(infill=True)
    tokens = bundle.tokenizer.encode("ret é")
    data = b"".join(bundle.tokenizer.token_bytes(t) for t in tokens)
    made = Generation(tokens=tokens, log_probs=[-1.0] * len(tokens), bytes=data)
    made.ends = [-2.0] * (len(tokens) + 1)
    cuts = Infiller(bundle)._cuts(made, b"re")
    assert all(("re" + text).encode() == data[: len(("re" + text).encode())] for text in cuts)
    assert cuts["t é"][1] == len(tokens)
    assert cuts["t é"][0] == -1.0 * len(tokens) - 2.0
    assert "" not in cuts or tokens[0] == bundle.tokenizer.encode("re")[0]


def test_what_goes_before_an_indented_line_is_a_whole_line() -> None:
    scores = {"": (-9.0, 0), "   ": (-1.0, 1), "    x = 1": (-3.0, 3), "    x = 1\n": (-5.0, 4)}
    found = offered(scores, "def f():\n", "    return x\n")
    assert found == {"": (-9.0, 0), "    x = 1\n": (-3.0, 3)}


def test_elsewhere_texts_are_left_as_they_are() -> None:
    scores = {"": (-9.0, 0), "\n  ": (-1.0, 1), "x = 1": (-3.0, 3)}
    kept = {"": (-9.0, 0), "x = 1": (-3.0, 3)}
    assert offered(scores, "def f():\n    ", "\n    return x\n") == kept
    assert offered(scores, "", "return x\n") == kept
    assert offered(scores, "a\n", "   \n") == kept


def test_every_variant_of_its_decoder_knows_the_end() -> None:
    predictor = LocalPredictor(random_bundle(infill=True), Gate({}, {}), 256)
    for name in ("causal", "refine:accept=0.5", "block:bound=0.5"):
        assert build(parse_variant(name), predictor).bundle.decoder.end_id == 0
    assert random_bundle().decoder.end_id is None
