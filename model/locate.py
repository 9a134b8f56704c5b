"""Where is the next edit: drafts are judged by the model, each against the text as it stands.

Responsible for writing the present and the drafted text of each place as branches of one context, and for remembering
verdicts while they stand. A draft's gain is the log-likelihood of its lines and the two lines after them, minus that of
the present lines and the same two, given the recent edits and the lines before. Knows nothing of how drafts are made or
what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from model.bundle import Bundle
from model.cache import KeyValueCache, Slot, common_prefix
from model.context import Context
from model.denoise import prefill
from model.draft import Draft
from model.excerpts import Excerpts, Window
from model.judge import Aside, Branch, log_probabilities
from model.prompt import PromptWriter, present_lines
from model.protocol import Request, Stop
from model.transformer import Transformer

LINES_BEFORE = 8
LINES_AFTER = 2
WINDOW_QUANTUM = 4
MAX_ROWS = 640
MAX_DRAFT_ROWS = 128
REMEMBERED = 64
DOUBT = 8.0


@dataclass(frozen=True, slots=True)
class Place:
    """The lines `first` to `last` (exclusive) that a draft touches, and what it makes of them."""

    first: int
    last: int
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A draft with its gain in nats; the feature `doubt` is what of it speaks against the draft, at most 8 nats.

    `drafted` and `present` are the log-likelihoods compared, `tokens`, `mean` and `worst` the number and the mean and
    least log-probability of the tokens of the drafted lines, `now` the mean of those of the present lines.
    """

    draft: Draft
    place: Place
    gain: float
    drafted: float
    present: float
    worst: float
    tokens: int
    mean: float
    now: float

    @classmethod
    def of(cls, draft: Draft, place: Place, verdict: Verdict) -> Judged:
        present, drafted = verdict.present, verdict.drafted
        return cls(
            draft,
            place,
            gain=drafted.total - present.total,
            drafted=drafted.total,
            present=present.total,
            worst=drafted.worst,
            tokens=drafted.tokens,
            mean=drafted.mean,
            now=present.mean,
        )

    def features(self) -> dict[str, float]:
        return {
            **self.draft.features(),
            "gain": self.gain,
            "doubt": max(-DOUBT, min(0.0, self.gain)),
            "worst": self.worst,
            "mean": self.mean,
            "now": self.now,
            "tokens": float(self.tokens),
            "drafted": self.drafted,
        }


@dataclass(frozen=True, slots=True)
class Alternative:
    """`tokens` that may stand somewhere; the first `own` of them are its own lines, the others the lines after it."""

    tokens: tuple[int, ...]
    own: int


@dataclass(frozen=True, slots=True)
class Pair:
    """The present and the drafted lines of one place, both behind the context's first `start` tokens."""

    start: int
    present: Alternative
    drafted: Alternative

    @property
    def rows(self) -> int:
        """The rows of a pass that judges it: what both begin with is run once."""
        one, other = self.present.tokens, self.drafted.tokens
        return len(one) + len(other) - common_prefix(one, other)


class Likelihood(NamedTuple):
    """Log-probability of an alternative, and the least and mean one of the `tokens` tokens of its own lines."""

    total: float
    worst: float
    mean: float
    tokens: int

    @classmethod
    def of(cls, log_probs: Tensor, side: Alternative) -> Likelihood:
        own = log_probs[: side.own] if side.own else torch.zeros(1)
        return cls(float(log_probs.sum()), float(own.min()), float(own.mean()), side.own)


NOTHING = Likelihood(0.0, 0.0, 0.0, 0)


class Verdict(NamedTuple):
    """The likelihoods of both."""

    present: Likelihood
    drafted: Likelihood


def place_of(text: str, draft: Draft) -> Place:
    """The whole lines that a draft changes."""
    edit = draft.edit
    start = text.rfind("\n", 0, edit.start) + 1
    end = text.find("\n", edit.end)
    end = len(text) if end < 0 else end
    new = text[start : edit.start] + edit.new_text + text[edit.end : end]
    old_lines, new_lines = text[start:end].split("\n"), new.split("\n")
    first = text.count("\n", 0, start)
    last = first + len(old_lines)
    while old_lines and new_lines and old_lines[0] == new_lines[0]:
        old_lines.pop(0)
        new_lines.pop(0)
        first += 1
    while old_lines and new_lines and old_lines[-1] == new_lines[-1]:
        old_lines.pop()
        new_lines.pop()
        last -= 1
    return Place(first, last, tuple(new_lines))


def lines_after(lines: Sequence[str], last: int) -> int:
    """End of the next two lines with text after line `last` (exclusive)."""
    seen = 0
    while last < len(lines) and seen < LINES_AFTER:
        seen += bool(lines[last].strip())
        last += 1
    return last


def window_of(lines: Sequence[str], place: Place) -> Window:
    """The lines that are read before a place; they begin at few lines, so that neighbours share them."""
    begin = place.first
    while begin > 0 and not lines[begin - 1].strip():
        begin -= 1
    return Window(max(0, (begin - LINES_BEFORE) // WINDOW_QUANTUM * WINDOW_QUANTUM), begin)


def changed(before: Sequence[int], after: Sequence[int]) -> int:
    """How many tokens lie between the common beginning and the common end of the two, in the longer one."""
    first = common_prefix(before, after)
    last = common_prefix(before[first:][::-1], after[first:][::-1])
    return max(len(before), len(after)) - first - last


class DraftJudge:
    """Judges drafts by one model; used by one request at a time.

    It remembers what it found and under which newest edit, because the next key mostly asks the same: a verdict stands
    for as long as the text before the draft and the newest edit do, but for what the caller lets change of it.
    """

    def __init__(self, bundle: Bundle, writer: PromptWriter) -> None:
        self.bundle, self.writer = bundle, writer
        self._excerpts = Excerpts(writer)
        self._read: list[int] = []
        self._aside = Aside(bundle.trunk)
        self._verdicts: dict[Pair, tuple[Verdict, tuple[int, ...]]] = {}

    def judge(
        self,
        request: Request,
        context: Context,
        drafts: Iterable[Draft],
        budget: int,
        stop: Stop,
        slack: int = 0,
        used: Callable[[int, int, int], None] = lambda prompt, cached, passes: None,
    ) -> list[Judged]:
        """As many of `drafts`, in order, as fit a context of `budget` tokens and one pass.

        Verdicts stand while no more than `slack` tokens of the newest edit have changed. `used` is told how many tokens
        the prompt has, how many of them were encoded already, and the passes over drafts: 0 or 1.
        """
        lines = request.text.split("\n")
        *older, newest = context.history or ("",)
        history = self.writer.preamble(replace(context, history=tuple(older)))
        head = [*history, *self.writer.file(request.path, "")[:-1]]
        edit = tuple(self.writer.diff(newest)) if newest else ()
        placed = [(draft, place_of(request.text, draft)) for draft in drafts]
        windows = [window_of(lines, place) for _, place in placed]
        ids, ends = self._excerpts.arrange(
            head, lines, list(dict.fromkeys(windows)), budget - len(edit)
        )
        self._forget_what_was_read_otherwise(ids)
        pairs = [
            (draft, place, self._pair(lines, place, window.begin, ends[window]))
            for (draft, place), window in zip(placed, windows, strict=True)
            if window in ends
        ]
        fresh: list[Pair] = []
        rows = MAX_ROWS
        for pair in dict.fromkeys(pair for _, _, pair in pairs):
            if not self._stands(pair, edit, slack) and pair.rows <= min(rows, MAX_DRAFT_ROWS):
                fresh.append(pair)
                rows -= pair.rows
        used(len(ids) + len(edit), self.bundle.prefixes.shared(ids), int(bool(fresh)))
        if fresh:
            slot = self.bundle.prefixes.acquire(ids)
            prefill(self.bundle.trunk, slot, ids, stop)
            aside = self._aside.read(edit, len(history), stop)
            stop.check()
            found = verdicts(self.bundle.trunk, slot, fresh, aside)
            self._verdicts |= {pair: (verdict, edit) for pair, verdict in found.items()}
        return [
            Judged.of(draft, place, self._verdicts[pair][0])
            for draft, place, pair in pairs
            if self._stands(pair, edit, slack)
        ]

    def _stands(self, pair: Pair, edit: Sequence[int], slack: int) -> bool:
        known = self._verdicts.get(pair)
        return known is not None and changed(known[1], edit) <= slack

    def _forget_what_was_read_otherwise(self, ids: list[int]) -> None:
        known = list(self._verdicts.items())[-REMEMBERED:]
        same = common_prefix(self._read, ids)
        self._verdicts = {pair: verdict for pair, verdict in known if pair.start <= same}
        self._read = ids

    def _pair(self, lines: Sequence[str], place: Place, begin: int, start: int) -> Pair:
        """The lines of a place as they are and as they are drafted, with the lines after them."""
        before = present_lines(lines, begin, place.first)
        after = present_lines(lines, place.last, lines_after(lines, place.last))

        def alternative(body: Sequence[str]) -> Alternative:
            own = before + "".join("\n" + line for line in body)
            tokens = self.writer.encode(own + after) if own + after else []
            return Alternative(tuple(tokens), len(self.writer.encode(own)) if own else 0)

        return Pair(start, alternative(lines[place.first : place.last]), alternative(place.new))


def verdicts(
    trunk: Transformer, slot: Slot, pairs: Sequence[Pair], aside: KeyValueCache
) -> dict[Pair, Verdict]:
    """What the model says of each pair, in one forward pass."""
    sides = [side for pair in pairs for side in (pair.present, pair.drafted)]
    starts = [pair.start for pair in pairs for _ in range(2)]
    branches = [Branch(start, side.tokens) for start, side in zip(starts, sides, strict=True)]
    scores = iter(
        log_probabilities(trunk, slot, [branch for branch in branches if branch.tokens], aside)
    )
    found = iter([Likelihood.of(next(scores), side) if side.tokens else NOTHING for side in sides])
    return {pair: Verdict(next(found), next(found)) for pair in pairs}
