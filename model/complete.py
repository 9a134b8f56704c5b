"""FIM: what goes at the cursor, and where it ends.

Responsible for continuing the text before the cursor and for choosing how much of the continuation to offer. The
choice is Bayes' rule over a causal model: for a middle m between prefix P and suffix S, p(m | P, S) is proportional
to p(m | P) p(S | P, m), so each place where the continuation might end is judged by how likely the text after the
cursor becomes. "Nothing" is one of the candidates. Knows nothing of drafts, next edits or thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from diffing.edits import Edit
from model.bundle import Bundle
from model.cache import Slot
from model.denoise import Generation, prefill
from model.judge import Branch, log_probabilities
from model.protocol import Request, Stop
from model.window import CHARS_PER_TOKEN
from model.word import likely_rest

SUFFIX_LINES = 2
SUFFIX_TOKENS = 24
SUFFIX_CHARS = SUFFIX_TOKENS * CHARS_PER_TOKEN
MAX_CANDIDATES = 10
CLOSERS = ")]}"


@dataclass(frozen=True, slots=True)
class Completion:
    """A text for the cursor. `log_odds` compares it with inserting nothing, in nats, given the text after the cursor;
    `share` is its part of the posterior among all candidates. `mean` and `least` are log-probabilities of tokens."""

    text: str
    log_odds: float
    share: float
    mean: float
    least: float
    tokens: int
    lines: int
    ended: bool

    def features(self) -> dict[str, float]:
        return {
            "log_odds": self.log_odds,
            "share": self.share,
            "mean": self.mean,
            "least": self.least,
            "tokens": float(self.tokens),
            "lines": float(self.lines),
            "ended": float(self.ended),
        }

    def edit(self, cursor: int) -> Edit:
        return Edit(cursor, cursor, self.text)


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


class Ending:
    """When a continuation has gone far enough: past the line if text follows on it, past the block otherwise."""

    def __init__(self, prefix: str, suffix: str, max_lines: int) -> None:
        self.line = prefix.rpartition("\n")[2]
        head = suffix.partition("\n")[0]
        self.single_line = bool(head.strip()) or max_lines <= 1
        self.max_lines = max_lines
        self.next_line = next((line.strip() for line in suffix.split("\n")[1:] if line.strip()), "")

    def reached(self, text: str) -> bool:
        """`text` follows the cursor."""
        if "\n" not in text:
            return False
        if self.single_line:
            return bool(self.line.strip()) or "\n" in text.lstrip("\n")
        first, *later = (self.line + text).split("\n")
        *whole, growing = later
        if len(later) > self.max_lines or text.endswith("\n\n\n"):
            return True
        if whole and len(whole[-1].strip()) > 2 and whole[-1].strip() == self.next_line:
            return True
        begun = [line for line in (*whole, growing) if line.strip()]
        base = first if first.strip() else next(iter(begun), "")
        return any(
            indentation(line) < indentation(base) and line.strip()[0] not in CLOSERS
            for line in begun
        )


def candidate_texts(text: str, suffix: str, *, complete: bool) -> list[str]:
    """Beginnings of `text` that might be all that is missing; the empty one first.

    Where text follows on the cursor's line the candidates end before an occurrence of its first character, else at
    line ends. `complete` tells that `text` was not cut by a limit.
    """
    head = suffix.partition("\n")[0]
    found = [""]
    if head.strip():
        line = text.partition("\n")[0]
        first = head.lstrip()[0]
        found += [line[:i] for i, ch in enumerate(line) if ch == first and i]
        found.append(line)
    else:
        lines = text.split("\n")
        for count in range(1, len(lines) + 1):
            if count < len(lines) or complete:
                found.append("\n".join(lines[:count]))
    unique = list(
        dict.fromkeys(
            candidate.rstrip(" \t") if not head.strip() else candidate for candidate in found
        )
    )
    return unique[:1] + [c for c in unique[1:] if c.strip()][:MAX_CANDIDATES]


def suffix_head(suffix: str) -> str:
    """The part of the suffix that judges a candidate: the rest of the line and the next lines with text."""
    end, seen = 0, 0
    for line in suffix.split("\n"):
        end += len(line) + 1
        seen += bool(line.strip())
        if seen == SUFFIX_LINES:
            break
    return suffix[: min(end, SUFFIX_CHARS)].rstrip("\n") if seen else ""


def complete(
    bundle: Bundle,
    context: Sequence[int],
    required: bytes,
    request: Request,
    stop: Stop,
    reference: Sequence[int] = (),
) -> tuple[list[Completion], Generation]:
    """Candidates for the cursor, the likeliest first, and what the generation took.

    `context` ends where `required` begins: together they are the prompt up to the cursor. The candidate "" stands for
    inserting nothing and is always there; all others are beginnings of one continuation.
    """
    prefix, suffix = request.text[: request.cursor], request.text[request.cursor :]
    ending = Ending(prefix, suffix, request.max_lines)

    def done(data: bytes) -> bool:
        return (
            data[-1:] != b""
            and b"\n" in data[len(required) :]
            and ending.reached(data[len(required) :].decode("utf-8", "replace"))
        )

    slot = bundle.prefixes.acquire(context)
    hidden, passes = prefill(bundle.trunk, slot, context, stop)
    word = likely_rest(bundle, slot, hidden, required, prefix, suffix)
    made = bundle.decoder.generate(
        slot,
        context,
        hidden,
        required=required + word.encode("utf-8", "replace"),
        max_tokens=request.max_tokens,
        done=done,
        reference=reference,
        stop=stop,
    )
    made.forwards += passes + bool(word)
    if not made.tokens or not made.bytes.startswith(required):
        return [], made
    text = made.bytes[len(required) :].decode("utf-8", "ignore")
    candidates = candidate_texts(text, suffix, complete=made.ended and not ending.reached(text))
    stop.check()
    scores = _posterior(bundle, slot, len(context), required, candidates, suffix)
    made.forwards += 1
    best = max(scores)
    weights = [math.exp(score - best) for score in scores]
    total = sum(weights)
    ranked = sorted(range(len(candidates)), key=lambda i: -scores[i])
    return [
        _completion(
            candidates[i], scores[i] - scores[0], weights[i] / total, bundle, required, made
        )
        for i in ranked
    ], made


def _posterior(
    bundle: Bundle, slot: Slot, start: int, required: bytes, candidates: list[str], suffix: str
) -> list[float]:
    """log p(candidate, head of the suffix | context), one figure a candidate."""
    slot.rewind(start)
    head = suffix_head(suffix)
    before = required.decode("utf-8", "replace")
    sequences = []
    for candidate in candidates:
        own = len(bundle.tokenizer.encode(before + candidate))
        sequences.append(bundle.tokenizer.encode(before + candidate + head)[: own + SUFFIX_TOKENS])
    branches = [Branch(start, tuple(ids)) for ids in sequences if ids]
    scored = iter(log_probabilities(bundle.trunk, slot, branches))
    return [float(next(scored).sum()) if ids else 0.0 for ids in sequences]


def _completion(
    text: str, log_odds: float, share: float, bundle: Bundle, required: bytes, made: Generation
) -> Completion:
    size = len(required) + len(text.encode("utf-8"))
    covered, length = 0, 0
    while covered < len(made.tokens) and length < size:
        length += len(bundle.tokenizer.token_bytes(made.tokens[covered]))
        covered += 1
    log_probs = made.log_probs[:covered] or [0.0]
    return Completion(
        text=text,
        log_odds=log_odds,
        share=share,
        mean=sum(log_probs) / len(log_probs),
        least=min(log_probs),
        tokens=covered,
        lines=text.count("\n") + 1,
        ended=made.ended,
    )
