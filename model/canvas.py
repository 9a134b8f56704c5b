"""Decoding by the open diffusion models: a canvas of masks, decided the surest places first.

Responsible for the loop over steps and blocks: which places to decide, when an answer has ended, and, in a family of
variable length, where a mask becomes two or none. Knows nothing of attention patterns (`model.windows`) or of text
beyond the bytes an answer must begin with.

The bound on joint entropy is Ben-Hamu et al. 2025 (arXiv 2505.24857); growing and shrinking canvases are DreamOn, Wu et
al. 2026 (arXiv 2602.01326).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from model.families import Order, Published
from model.grammar import Constraint
from model.protocol import Stop
from model.windows import Window

BOUND = 0.1
ONE_AT_A_TIME = -1.0
LENGTHS = (4, 8, 16, 32, 64)
FIRST_LENGTH = 8
MORE = 16
"""Masks put behind a canvas that is full before what its constraint asks for is complete."""


@dataclass(slots=True)
class Answer:
    """Decided tokens up to the end, with the log-probability each had when it was decided.

    `ended` tells that the model ended it, not a limit or the deadline.
    """

    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    forwards: int = 0
    steps: int = 0
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer has to be. It begins with `required` as far as the vocabulary can.

    Under a `constraint`, which goes without `required`, places are decided from left to right, each with the surest
    token that is allowed there. `also` are control tokens that may be part of the answer. `done` is asked of it after
    each block and may end it. `watch` sees each state: the tokens before the first mask, and those decided behind it.
    """

    max_tokens: int
    required: bytes = b""
    constraint: Constraint | None = None
    also: frozenset[int] = frozenset()
    done: Callable[[Answer], bool] = lambda _: False
    watch: Callable[[Sequence[int], Sequence[int]], None] = lambda decided, behind: None

    @property
    def closed(self) -> bool:
        return self.constraint is not None and self.constraint.closed


class Canvas:
    """Places of an answer that are decided or still a mask; `offset` is where in its block it begins."""

    def __init__(self, length: int, mask: int, offset: int = 0) -> None:
        self.mask, self.offset = mask, offset
        self.tokens = [mask] * length
        self.log_probs = [0.0] * length

    def __len__(self) -> int:
        return len(self.tokens)

    def masked(self, part: int | None = None) -> list[int]:
        """The places still masked; if `part` is given only those in the first unfinished part of the block."""
        found = [i for i, token in enumerate(self.tokens) if token == self.mask]
        if not part or not found:
            return found
        first = (found[0] + self.offset) // part
        return [i for i in found if (i + self.offset) // part == first]

    def decide(self, place: int, token: int, log_prob: float) -> None:
        self.tokens[place], self.log_probs[place] = token, log_prob

    def expand(self, place: int) -> None:
        """Two masks in one's place."""
        self.tokens[place : place + 1] = [self.mask, self.mask]
        self.log_probs[place : place + 1] = [0.0, 0.0]

    def cut(self, place: int) -> None:
        """Drop a place and all masks behind it."""
        kept = [i for i, t in enumerate(self.tokens) if i < place or (i > place and t != self.mask)]
        self.tokens = [self.tokens[i] for i in kept]
        self.log_probs = [self.log_probs[i] for i in kept]

    def grow(self, places: int) -> None:
        self.tokens += [self.mask] * places
        self.log_probs += [0.0] * places

    def end(self, ends: frozenset[int]) -> int | None:
        """The place of an end with no mask before it."""
        for place, token in enumerate(self.tokens):
            if token == self.mask:
                return None
            if token in ends:
                return place
        return None


def surest(log_probs: Tensor, order: Order, bound: float) -> Tensor:
    """Indices of the rows of `[n, vocab]` to decide: the surest whose joint entropy bound holds, at least one.

    The bound is on the sum of their entropies minus the largest, in nats. Order is by the best token's probability or
    by entropy.
    """
    entropies = -(log_probs.exp() * log_probs).nan_to_num(0.0).sum(-1)
    doubt = entropies if order == "entropy" else -log_probs.amax(-1)
    index = doubt.argsort(stable=True)
    ordered = entropies[index]
    excess = ordered.cumsum(0) - ordered.cummax(0).values
    return index[: max(1, int((excess <= bound).sum()))]


class CanvasDecoder:
    """The decoding loop for one model. A `bound` in nats decides several places a step, `ONE_AT_A_TIME` one.

    By default several, but one where the length is variable: those models were tried so.
    """

    def __init__(self, published: Published, *, bound: float | None = None) -> None:
        usual = ONE_AT_A_TIME if published.expand is not None else BOUND
        self.published, self.bound = published, usual if bound is None else bound
        self._forbidden = torch.tensor(published.forbidden, dtype=torch.long)

    def write(
        self,
        window: Window,
        stop: Stop,
        *,
        required: bytes = b"",
        max_tokens: int = 64,
        length: int | None = None,
    ) -> Answer:
        """An answer of at most `max_tokens` that begins with `required`; see `answer`."""
        return self.answer(window, stop, Asked(max_tokens, required), length)

    def answer(self, window: Window, stop: Stop, asked: Asked, length: int | None = None) -> Answer:
        """An answer in blocks, or in one canvas of `length` masks.

        What is decided at the deadline, up to the first mask, is the answer. Raises `Cancelled`.
        """
        answer = Answer()
        if window.room() is None:
            self._one(window, answer, stop, asked, length)
        else:
            self._blocks(window, answer, stop, asked)
        answer.forwards = window.forwards
        return answer

    def _one(
        self, window: Window, answer: Answer, stop: Stop, asked: Asked, length: int | None
    ) -> None:
        size = length or self._length(window, asked.max_tokens, stop)
        canvas = Canvas(min(size, asked.max_tokens), self.published.mask)
        self._settle(window, canvas, answer, stop, asked, asked.required)
        while asked.constraint is not None and self._unfinished(canvas, asked):
            canvas.grow(min(MORE, asked.max_tokens - len(canvas)))
            self._settle(window, canvas, answer, stop, asked)
        self._take(answer, canvas, asked)
        answer.ended |= asked.constraint is None and not canvas.masked()

    def _unfinished(self, canvas: Canvas, asked: Asked) -> bool:
        """Whether a constrained canvas is full without being the whole answer, and may grow."""
        full = not canvas.masked() and canvas.end(self.published.ends) is None
        return full and not asked.closed and len(canvas) < asked.max_tokens

    def _blocks(self, window: Window, answer: Answer, stop: Stop, asked: Asked) -> None:
        given = 0
        while len(answer.tokens) < asked.max_tokens and not answer.ended:
            room = window.room() or 0
            canvas = Canvas(room, self.published.mask, self.published.block - room)
            pending = asked.required[given:]
            first = window.begin()
            if first is not None:
                self._decide(canvas, [0], first[None], 1.0, asked, pending)
            self._settle(window, canvas, answer, stop, asked, pending)
            before = len(answer.tokens)
            self._take(answer, canvas, asked)
            given += sum(len(self._bytes(token)) for token in answer.tokens[before:])
            answer.ended |= asked.done(answer)
            if canvas.masked() or stop.expired:
                break
            if not answer.ended and len(answer.tokens) < asked.max_tokens:
                window.commit(canvas.tokens)

    def _settle(
        self,
        window: Window,
        canvas: Canvas,
        answer: Answer,
        stop: Stop,
        asked: Asked,
        required: bytes = b"",
    ) -> None:
        """Decide places until none is masked, the canvas has ended, or the deadline has passed."""
        variable, grown = self._variable(asked), 0
        most = asked.max_tokens if variable else 0
        while masked := canvas.masked(self.published.family.part):
            ended = not variable and canvas.end(self.published.ends) is not None
            if ended or asked.closed:
                return
            stop.check()
            if stop.expired:
                return
            answer.steps += 1
            logits = window.logits(canvas.tokens)
            pending = self._pending(canvas, masked[0], required)
            places = masked[:1] if pending or asked.constraint is not None else masked
            grow = grown < most and len(canvas) < most
            self._decide(canvas, places, logits[places], self.bound, asked, pending, grow=grow)
            if variable:
                grown += self._resize(canvas, most)
            asked.watch(*self._state(canvas, answer, asked.max_tokens))

    def _variable(self, asked: Asked) -> bool:
        """Whether places may become two or none: not under a constraint, whose tokens stay as they are."""
        return self.published.expand is not None and asked.constraint is None

    def _state(self, canvas: Canvas, answer: Answer, most: int) -> tuple[list[int], list[int]]:
        """The tokens before the first mask or end, and those decided behind the mask; at most `most`."""
        end, masked = canvas.end(self.published.ends), canvas.masked()
        first = end if end is not None else masked[0] if masked else len(canvas)
        behind = canvas.tokens[first:] if end is None else []
        decided = [*answer.tokens, *canvas.tokens[:first]][:most]
        return decided, [t for t in behind if t != self.published.mask][: most - len(decided)]

    def _pending(self, canvas: Canvas, first: int, required: bytes) -> bytes:
        """What is still required of the first masked place."""
        given = b"".join(self._bytes(token) for token in canvas.tokens[:first])
        return required[len(given) :] if required.startswith(given) else b""

    def _decide(
        self,
        canvas: Canvas,
        places: Sequence[int],
        logits: Tensor,
        bound: float,
        asked: Asked,
        pending: bytes,
        *,
        grow: bool = False,
    ) -> None:
        """Put the best tokens into the surest of `places`; `logits [len(places), vocab]`."""
        seen, also = logits, list(asked.also)
        logits = seen.index_fill(1, self._forbidden.to(seen.device), float("-inf"))
        logits[:, also] = seen[:, also]
        expand = self.published.expand
        if expand is not None and not grow:
            logits[:, expand] = float("-inf")
        if pending and (allowed := self.published.tokenizer.continuations(pending)):
            only = torch.full_like(logits, float("-inf"))
            only[:, allowed] = logits[:, allowed]
            logits = only
        if asked.constraint is not None:
            logits = asked.constraint.only(logits, self.published.ends)
        log_probs = logits.log_softmax(-1)
        for row in surest(log_probs, self.published.family.order, bound).tolist():
            best, token = log_probs[row].max(-1)
            canvas.decide(places[row], int(token), float(best))
            if asked.constraint is not None and int(token) not in self.published.ends:
                asked.constraint.take(int(token))

    def _resize(self, canvas: Canvas, most: int) -> int:
        """Carry out what the model said of the length, two masks for an expand, none for a delete; how many grew."""
        before = canvas.tokens.count(self.published.expand or -1)
        for place in reversed(range(len(canvas))):
            if canvas.tokens[place] == self.published.expand:
                if len(canvas) < most:
                    canvas.expand(place)
                else:
                    canvas.decide(place, canvas.mask, 0.0)
        if self.published.delete in canvas.tokens:
            canvas.cut(canvas.tokens.index(self.published.delete))
        return before

    def _length(self, window: Window, max_tokens: int, stop: Stop) -> int:
        """How many masks to begin with: where the length is fixed, what the model is surest of at first sight."""
        if self.published.expand is not None:
            return min(FIRST_LENGTH, max_tokens)
        sure: dict[int, float] = {}
        for length in [n for n in LENGTHS if n <= max_tokens] or [max_tokens]:
            stop.check()
            if stop.expired and sure:
                break
            logits = window.logits([self.published.mask] * length)
            sure[length] = float(logits.log_softmax(-1).amax(-1).mean())
        return max(sure, key=sure.__getitem__)

    def _take(self, answer: Answer, canvas: Canvas, asked: Asked) -> None:
        """Move what is decided, up to the first mask or end, from the canvas to the answer."""
        end = canvas.end(self.published.ends)
        masked = canvas.masked()
        stop = end if end is not None else masked[0] if masked else len(canvas)
        kept = min(stop, asked.max_tokens - len(answer.tokens))
        answer.tokens += canvas.tokens[:kept]
        answer.log_probs += canvas.log_probs[:kept]
        answer.ended |= kept == end or (asked.closed and kept == stop)

    def _bytes(self, token: int) -> bytes:
        return self.published.tokenizer.token_bytes(token)
