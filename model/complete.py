"""FIM: what goes at the cursor, and where it ends.

Responsible for continuing the text before the cursor and for choosing how much of the continuation to offer. The
choice is Bayes' rule over a causal model: for a middle m between prefix P and suffix S, p(m | P, S) is proportional
to p(m | P) p(S | P, m), so each place where the continuation might end is judged by how likely the text after the
cursor becomes. "Nothing" is one of the candidates. Knows nothing of drafts, next edits or thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diffing.edits import Edit
from model.branching import forks, write_branches
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
    `share` is its part of the posterior among all candidates. `mean` and `least` are log-probabilities of tokens,
    `entropy` is the mean of what the model was unsure of at them, in nats."""

    text: str
    log_odds: float
    share: float
    mean: float
    least: float
    tokens: int
    lines: int
    ended: bool
    entropy: float = 0.0

    def features(self) -> dict[str, float]:
        return {
            "log_odds": self.log_odds,
            "share": self.share,
            "mean": self.mean,
            "least": self.least,
            "tokens": float(self.tokens),
            "lines": float(self.lines),
            "ended": float(self.ended),
            "entropy": self.entropy,
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


def before_a_line(prefix: str, suffix: str) -> bool:
    """True when the cursor stands at the start of an indented line: what goes there are whole lines."""
    line = suffix.partition("\n")[0]
    return prefix[-1:] in ("", "\n") and line[:1] in (" ", "\t") and bool(line.strip())


def suffix_head(suffix: str) -> str:
    """The part of the suffix that judges a candidate: the rest of the line and the next lines with text."""
    end, seen = 0, 0
    for line in suffix.split("\n"):
        end += len(line) + 1
        seen += bool(line.strip())
        if seen == SUFFIX_LINES:
            break
    return suffix[: min(end, SUFFIX_CHARS)].rstrip("\n") if seen else ""


def write_on(
    bundle: Bundle,
    context: Sequence[int],
    required: bytes,
    request: Request,
    stop: Stop,
    reference: Sequence[int],
    done: Callable[[Slot, Generation], bool],
) -> tuple[Slot, Generation]:
    """One continuation of the cursor's prompt, `context` and then `required`, and the slot that holds it.

    It has no tokens when none that begin with `required` were found in time.
    """
    prefix, suffix = request.text[: request.cursor], request.text[request.cursor :]
    slot = bundle.prefixes.acquire(context)
    hidden, _ = prefill(bundle.trunk, slot, context, stop)
    word = likely_rest(bundle, slot, hidden, required, prefix, suffix)
    made = bundle.decoder.generate(
        slot,
        context,
        hidden,
        required=required + word.encode("utf-8", "replace"),
        max_tokens=request.max_tokens,
        done=lambda made: done(slot, made),
        reference=reference,
        stop=stop,
    )
    made.forwards += bool(word)
    if not made.bytes.startswith(required):
        made.tokens = []
    return slot, made


class Completer:
    """Completions by one loaded model; remembers what it judged last, for the next key often asks the same."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self._context: list[int] = []
        self._known: dict[tuple[int, ...], float] = {}

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
        line, for as long as one more line makes the text after the cursor likelier. Where the cursor's line is not
        begun yet, other ways to begin it are weighed too: there greedy decoding errs most, and nobody is typing on.
        """
        prefix, suffix = request.text[: request.cursor], request.text[request.cursor :]
        gap = "\n" if before_a_line(prefix, suffix) else ""
        ending = Ending(prefix, gap + suffix, request.max_lines)
        if self._context != list(context):
            self._context, self._known = list(context), {}
        passes = 0
        scores: dict[str, float] = {}

        def judge(slot: Slot, made: Generation, *texts: tuple[str, bool]) -> None:
            """Score the candidates of texts; each with whether it is complete."""
            nonlocal passes
            every = dict.fromkeys(
                candidate
                for text, whole in texts
                for candidate in candidate_texts(text, gap + suffix, complete=whole)
            )
            fresh = [candidate for candidate in every if candidate not in scores]
            if fresh:
                stop.check()
                found, taken = self._posterior(slot, required, fresh, (gap, suffix), made)
                scores.update(found)
                passes += taken

        def done(slot: Slot, made: Generation) -> bool:
            text = written(made, required)
            if ending.single_line or "\n" not in text:
                return ending.reached(text)
            if ending.reached(text):
                return True
            if text.rpartition("\n")[2].strip():
                return False
            judge(slot, made, (text, False))
            return max(scores, key=scores.__getitem__) != list(scores)[-1]

        slot, made = write_on(self.bundle, context, required, request, stop, reference, done)
        if not made.tokens:
            made.forwards += passes
            return [], made
        judge(slot, made, self._ending(made, required))
        owners = dict.fromkeys(scores, made)
        begun = bool(ending.line.strip())
        others = [] if begun else self._others(slot, context, required, made, ending, stop)
        judge(slot, made, *(self._ending(other, required) for other in others))
        for other in others:
            made.forwards += other.forwards
            for text in scores:
                if written(other, required).startswith(text):
                    owners.setdefault(text, other)
        made.forwards += passes
        whole = {text + gap if text else text: score for text, score in scores.items()}
        sources = {text + gap if text else text: made for text, made in owners.items()}
        return self._ranked(whole, required, sources), made

    @staticmethod
    def _ending(made: Generation, required: bytes) -> tuple[str, bool]:
        """The text of a continuation, and whether it is all of its line."""
        text = written(made, required)
        return text, made.ended and "\n" not in text

    def _others(
        self,
        slot: Slot,
        context: Sequence[int],
        required: bytes,
        made: Generation,
        ending: Ending,
        stop: Stop,
    ) -> list[Generation]:
        """Other ways that the first line might have gone."""
        if stop.expired:
            return []
        trunk, tokenizer = self.bundle.trunk, self.bundle.tokenizer

        def done(other: Generation) -> bool:
            text = written(other, required)
            return "\n" in text.lstrip("\n") or ending.reached(text)

        found = forks(made, tokenizer, required)
        slot.rewind(min(len(slot.tokens), len(context) + len(made.tokens)))
        return write_branches(trunk, tokenizer, slot, len(context), made, found, done, stop)

    def _posterior(
        self,
        slot: Slot,
        required: bytes,
        candidates: Sequence[str],
        after: tuple[str, str],
        made: Generation,
    ) -> tuple[dict[str, float], int]:
        """log p(candidate, head of the suffix | context) of each candidate, in order, and the passes taken (0 or 1).

        `after` is what must stand between a candidate and the suffix, and the suffix. What a candidate shares with the
        continuation as it was generated is not run again.
        """
        gap, suffix = after
        head = suffix_head(suffix)
        before = required.decode("utf-8", "replace")
        encode = self.bundle.tokenizer.encode
        sequences: dict[str, tuple[int, ...]] = {}
        certain: list[float] = []
        branches: list[Branch] = []
        for candidate in candidates:
            own = len(encode(before + candidate))
            joined = before + candidate + (gap if candidate else "") + head
            sequences[candidate] = tuple(encode(joined)[: own + SUFFIX_TOKENS])
        unknown = (ids for ids in sequences.values() if ids and ids not in self._known)
        missing = list(dict.fromkeys(unknown))
        for ids in missing:
            shared = 0
            while ids[shared:-1] and made.tokens[shared : shared + 1] == [ids[shared]]:
                shared += 1
            certain.append(sum(made.log_probs[:shared]))
            branches.append(Branch(len(self._context) + shared, ids[shared:]))
        judged = log_probabilities(self.bundle.trunk, slot, branches)
        for ids, known, rest in zip(missing, certain, judged, strict=True):
            self._known[ids] = known + float(rest.sum())
        return {c: self._known.get(ids, 0.0) for c, ids in sequences.items()}, int(bool(branches))

    def _ranked(
        self, scores: dict[str, float], required: bytes, sources: dict[str, Generation]
    ) -> list[Completion]:
        best = max(scores.values())
        total = sum(math.exp(score - best) for score in scores.values())
        return [
            self._completion(
                text, score - scores[""], math.exp(score - best) / total, required, sources[text]
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
        entropies = made.entropies[:covered] or [0.0]
        return Completion(
            text=text,
            log_odds=log_odds,
            share=share,
            mean=sum(log_probs) / len(log_probs),
            least=min(log_probs),
            tokens=covered,
            lines=text.count("\n") + 1,
            ended=made.ended,
            entropy=sum(entropies) / len(entropies),
        )


def written(made: Generation, required: bytes) -> str:
    """What has been generated behind the required bytes."""
    return made.bytes[len(required) :].decode("utf-8", "ignore")
