from __future__ import annotations

import torch
from tiny import random_bundle

from model.denoise import prefill
from model.protocol import Stop
from model.word import likely_rest, words_begun


def test_words_that_were_begun_nearest_first() -> None:
    prefix = "widget = 1\nwidth = 2\nwith x:\n    print(wid"
    assert words_begun(prefix, ")\nwidest = 3\n") == ("wid", ["width", "widget", "widest"])
    assert words_begun("print(", "print_all") == ("", [])
    assert words_begun("naïve_name = naïve", "") == ("naïve", ["naïve_name"])


@torch.inference_mode()
def test_the_likelier_of_the_texts_words_and_the_single_tokens() -> None:
    bundle = random_bundle()
    prefix = "zqxjk_alpha = 1\nzqxjk_beta = 2\nreturn zqxjk_"
    context = bundle.tokenizer.encode(prefix[: -len(" zqxjk_")])
    slot = bundle.prefixes.acquire(context)
    hidden, _ = prefill(bundle.trunk, slot, context, Stop())
    assert bundle.tokenizer.continuations(b" zqxjk_") != []
    rest = likely_rest(bundle, slot, hidden, b" zqxjk_", prefix, "\n")

    def score(text: str) -> float:
        ids = bundle.tokenizer.encode(text)
        states = bundle.trunk.forward(torch.tensor([*context, *ids]), bundle.trunk.new_cache(64))
        table = bundle.trunk.head(states).log_softmax(-1)
        return sum(float(table[len(context) - 1 + i, t]) for i, t in enumerate(ids))

    scores = {rest: score(" zqxjk_" + rest) for rest in ("alpha", "beta")}
    table = bundle.trunk.head(hidden)[0].log_softmax(-1)
    single = max(float(table[t]) for t in bundle.tokenizer.continuations(b" zqxjk_"))
    best = max(scores, key=scores.__getitem__)
    assert rest == (best if scores[best] > single else "")
    assert slot.tokens == context
    assert likely_rest(bundle, slot, hidden, b" (", "print (", "\n") == ""
