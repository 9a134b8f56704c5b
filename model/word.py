"""The word at the cursor: which of the text's own words has been begun.

Responsible for one question before the continuation is written: is a word that the text already has likelier than any
single token? A word of several tokens loses against single tokens when tokens are chosen one by one, although names
that were used before are what people type most. Knows nothing of what follows the word.
"""

from __future__ import annotations

import regex
from torch import Tensor

from model.bundle import Bundle
from model.cache import Slot
from model.judge import Branch, log_probabilities

MAX_WORDS = 8
REACH = 20_000

_WORD = regex.compile(r"[\p{L}_][\p{L}\p{N}_]*")
_BEGUN = regex.compile(r"[\p{L}_][\p{L}\p{N}_]*$")


def words_begun(prefix: str, suffix: str) -> tuple[str, list[str]]:
    """The letters of the word before the cursor, and the text's words that begin so and go on, nearest first."""
    found = _BEGUN.search(prefix[-256:])
    if found is None:
        return "", []
    begun: str = found[0]
    words = [
        *reversed(_WORD.findall(prefix[-REACH : len(prefix) - len(begun)])),
        *_WORD.findall(suffix[:REACH]),
    ]
    longer = (word for word in words if word.startswith(begun) and len(word) > len(begun))
    return begun, list(dict.fromkeys(longer))[:MAX_WORDS]


def likely_rest(
    bundle: Bundle, slot: Slot, hidden: Tensor, required: bytes, prefix: str, suffix: str
) -> str:
    """What is missing of the likeliest word of the text, or "" if some single token is likelier.

    `slot` holds the context that `required` continues, `hidden [1, hidden]` is its last state. One forward pass where
    the text has such words, else none.
    """
    begun, words = words_begun(prefix, suffix)
    text = required.decode("utf-8", "replace")
    if not words or not text.endswith(begun[-1:]):
        return ""
    rests = [word[len(begun) :] for word in words]
    branches = [
        Branch(len(slot.tokens), tuple(bundle.tokenizer.encode(text + rest))) for rest in rests
    ]
    scores = [float(score.sum()) for score in log_probabilities(bundle.trunk, slot, branches)]
    best = max(range(len(rests)), key=scores.__getitem__)
    table = bundle.trunk.head(hidden)[0].log_softmax(-1)
    single = table[bundle.tokenizer.continuations(required)]
    return "" if len(single) and float(single.max()) >= scores[best] else rests[best]
