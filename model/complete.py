"""FIM: what goes at the cursor, and where it ends.

Responsible for continuing the text before the cursor and for choosing how much of the continuation to offer. The
choice is Bayes' rule over a causal model: for a middle m between prefix P and suffix S, p(m | P, S) is proportional
to p(m | P) p(S | P, m), so each place where the continuation might end is judged by how likely the text after the
cursor becomes. "Nothing" is one of the candidates. Knows nothing of drafts, next edits or thresholds.
"""

from __future__ import annotations

import math
from collections import OrderedDict
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
SUFFIX_TOKENS = 16
SUFFIX_CHARS = SUFFIX_TOKENS * CHARS_PER_TOKEN
MAX_CANDIDATES = 10
REJOIN_CHARS = 12
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
        self.rest = head.strip()[:REJOIN_CHARS]
        self.single_line = bool(self.rest) or max_lines <= 1
        self.max_lines = max_lines
        self.next_line = next((line.strip() for line in suffix.split("\n")[1:] if line.strip()), "")

    def _rejoined(self, text: str) -> bool:
        """True when the text has come to what follows on the cursor's line."""
        return len(self.rest) > 1 and text.find(self.rest, 1) > 0

    def reached(self, text: str) -> bool:
        """`text` follows the cursor."""
        if self.single_line and self._rejoined(text):
            return True
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


class Completer:
    """Completions by one loaded model; remembers what it has judged, for the next key often asks the same."""

    def __init__(self, bundle: Bundle, memory: int = 512) -> None:
        self.bundle = bundle
        self._memory = memory
        self._known: OrderedDict[tuple[tuple[int, ...], tuple[int, ...]], float] = OrderedDict()

    def complete(
        self,
        context: Sequence[int],
        required: bytes,
        request: Request,
        stop: Stop,
        reference: Sequence[int] = (),
    ) -> tuple[list[Completion], Generation]:
        """Candidates for the cursor, the likeliest first, and what the generation took.

        `context` ends where `required` begins: together they are the prompt up to the cursor. The candidate "" stands
        for inserting nothing and is always there; all others are beginnings of one continuation. It is written line by
        line, for as long as one more line makes the text after the cursor likelier.
        """
        prefix, suffix = request.text[: request.cursor], request.text[request.cursor :]
        ending = Ending(prefix, suffix, request.max_lines)
        slot = self.bundle.prefixes.acquire(context)
        hidden, _ = prefill(self.bundle.trunk, slot, context, stop)
        word = likely_rest(self.bundle, slot, hidden, required, prefix, suffix)
        passes = int(bool(word))
        scores: dict[str, float] = {}

        def judge(made: Generation, text: str, *, complete: bool) -> None:
            nonlocal passes
            fresh = candidate_texts(text, suffix, complete=complete)
            fresh = [candidate for candidate in fresh if candidate not in scores]
            if fresh:
                stop.check()
                found, taken = self._posterior(slot, context, required, fresh, suffix, made)
                scores.update(zip(fresh, found, strict=True))
                passes += taken

        def done(made: Generation) -> bool:
            text = _written(made, required)
            if ending.single_line or "\n" not in text:
                return ending.reached(text)
            if ending.reached(text):
                return True
            if text.rpartition("\n")[2].strip():
                return False
            judge(made, text, complete=False)
            return max(scores, key=scores.__getitem__) != list(scores)[-1] and len(scores) > 1

        made = self.bundle.decoder.generate(
            slot,
            context,
            hidden,
            required=required + word.encode("utf-8", "replace"),
            max_tokens=request.max_tokens,
            done=done,
            reference=reference,
            stop=stop,
        )
        if not made.tokens or not made.bytes.startswith(required):
            made.forwards += passes
            return [], made
        text = _written(made, required)
        judge(made, text, complete=made.ended and "\n" not in text)
        made.forwards += passes
        return self._ranked(scores, required, made), made

    def _posterior(
        self,
        slot: Slot,
        context: Sequence[int],
        required: bytes,
        candidates: Sequence[str],
        suffix: str,
        made: Generation,
    ) -> tuple[list[float], int]:
        """log p(candidate, head of the suffix | context), one figure a candidate, and the passes taken (0 or 1).

        What a candidate shares with the continuation as it was generated is not run again.
        """
        head = suffix_head(suffix)
        before = required.decode("utf-8", "replace")
        encode = self.bundle.tokenizer.encode
        scores, missing, branches = {}, [], []
        for candidate in candidates:
            own = len(encode(before + candidate))
            ids = tuple(encode(before + candidate + head)[: own + SUFFIX_TOKENS])
            known = self._known.get((tuple(context), ids)) if ids else 0.0
            if known is not None:
                scores[candidate] = known
                continue
            shared = 0
            while (
                shared < min(len(ids) - 1, len(made.tokens)) and ids[shared] == made.tokens[shared]
            ):
                shared += 1
            missing.append((candidate, ids, sum(made.log_probs[:shared])))
            branches.append(Branch(len(context) + shared, ids[shared:]))
        for (candidate, ids, certain), fresh in zip(
            missing, log_probabilities(self.bundle.trunk, slot, branches), strict=True
        ):
            scores[candidate] = certain + float(fresh.sum())
            self._known[tuple(context), ids] = scores[candidate]
            if len(self._known) > self._memory:
                self._known.popitem(last=False)
        return [scores[candidate] for candidate in candidates], int(bool(branches))

    def _ranked(
        self, scores: dict[str, float], required: bytes, made: Generation
    ) -> list[Completion]:
        best = max(scores.values())
        total = sum(math.exp(score - best) for score in scores.values())
        return [
            self._completion(
                text, score - scores[""], math.exp(score - best) / total, required, made
            )
            for text, score in sorted(scores.items(), key=lambda item: -item[1])
        ]

    def _completion(
        self, text: str, log_odds: float, share: float, required: bytes, made: Generation
    ) -> Completion:
        size = len(required) + len(text.encode("utf-8"))
        covered, length = 0, 0
        while covered < len(made.tokens) and length < size:
            length += len(self.bundle.tokenizer.token_bytes(made.tokens[covered]))
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


def _written(made: Generation, required: bytes) -> str:
    """What has been generated behind the required bytes."""
    return made.bytes[len(required) :].decode("utf-8", "ignore")
