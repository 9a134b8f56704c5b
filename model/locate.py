"""Where is the next edit: drafts are judged by the model, each against the text as it stands.

Responsible for writing the present and the drafted text of each place as branches of one context. A draft's gain is the
log-likelihood of its lines and the two lines after them, minus that of the present lines and the same two, given the
recent edits and the lines before. Knows nothing of how drafts are made or what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from model.bundle import Bundle
from model.context import Context
from model.denoise import prefill
from model.draft import Draft
from model.judge import Aside, Branch, log_probabilities
from model.prompt import PromptWriter, present_lines
from model.protocol import Request, Stop

LINES_BEFORE = 8
LINES_AFTER = 2
WINDOW_QUANTUM = 4
MAX_ROWS = 640
MAX_DRAFT_ROWS = 128
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


class _Likelihood(NamedTuple):
    """Log-probability of a branch, and the least and mean one of the `tokens` tokens of its own lines."""

    total: float
    worst: float
    mean: float
    tokens: int


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


def judge_drafts(
    bundle: Bundle,
    writer: PromptWriter,
    request: Request,
    context: Context,
    drafts: Iterable[Draft],
    budget: int,
    stop: Stop,
    used: Callable[[int, int], None] = lambda prompt, cached: None,
) -> list[Judged]:
    """Judge as many of `drafts`, in order, as one prompt of `budget` tokens and one pass over the branches cover.

    `used` is told how many tokens the prompt has and how many of them were encoded already.
    """
    lines = request.text.split("\n")
    *older, newest = context.history or ("",)
    history = writer.preamble(replace(context, history=tuple(older)))
    head = [*history, *writer.file(request.path, "")[:-1]]
    aside = Aside(tuple(writer.diff(newest)) if newest else (), len(history))
    placed = [(draft, place_of(request.text, draft)) for draft in drafts]
    chosen, ids, starts = _excerpts(writer, lines, placed, head, budget - len(aside.tokens))
    if not chosen:
        return []
    used(len(ids) + len(aside.tokens), bundle.prefixes.shared(ids))
    slot = bundle.prefixes.acquire(ids)
    prefill(bundle.trunk, slot, ids, stop)
    branches: list[Branch] = []
    sizes: list[int] = []
    kept: list[tuple[Draft, Place]] = []
    rows = 0
    for draft, place in chosen:
        pair = [
            _branch(writer, lines, place, body, starts)
            for body in (lines[place.first : place.last], place.new)
        ]
        fresh = sum(len(branch.tokens) for branch, _ in pair if branch not in branches)
        if fresh > MAX_DRAFT_ROWS or rows + fresh > MAX_ROWS:
            continue
        rows += fresh
        kept.append((draft, place))
        branches += [branch for branch, _ in pair]
        sizes += [size for _, size in pair]
    stop.check()
    told = [branch for branch in branches if branch.tokens]
    scores = log_probabilities(bundle.trunk, slot, told, aside)
    found = iter(scores)
    totals = []
    for branch, size in zip(branches, sizes, strict=True):
        score = next(found) if branch.tokens else torch.zeros(1)
        own = score[:size] if size else torch.zeros(1)
        totals.append(_Likelihood(float(score.sum()), float(own.min()), float(own.mean()), size))
    return [
        Judged(
            draft,
            place,
            gain=new.total - old.total,
            drafted=new.total,
            present=old.total,
            worst=new.worst,
            tokens=new.tokens,
            mean=new.mean,
            now=old.mean,
        )
        for (draft, place), old, new in zip(kept, totals[::2], totals[1::2], strict=True)
    ]


def _branch(
    writer: PromptWriter,
    lines: Sequence[str],
    place: Place,
    body: Sequence[str],
    starts: dict[int, int],
) -> tuple[Branch, int]:
    """`body` in the place of its lines, with the lines after them; and how many tokens `body` has."""
    begin = _piece_start(lines, place.first)
    own = present_lines(lines, begin, place.first) + "".join("\n" + line for line in body)
    after = present_lines(lines, place.last, lines_after(lines, place.last))
    tokens = writer.encode(own + after) if own + after else []
    return Branch(starts[begin], tuple(tokens)), len(writer.encode(own)) if own else 0


def _piece_start(lines: Sequence[str], first: int) -> int:
    """The first of the blank lines right before line `first`, where its tokens begin."""
    while first > 0 and not lines[first - 1].strip():
        first -= 1
    return first


def _excerpts(
    writer: PromptWriter,
    lines: Sequence[str],
    placed: list[tuple[Draft, Place]],
    head: list[int],
    budget: int,
) -> tuple[list[tuple[Draft, Place]], list[int], dict[int, int]]:
    """The drafts that are judged, the tokens of `head` and of the lines before each, and where each line begins.

    Excerpts of the file follow each other in its order; a draft whose lines would not fit in `budget` is left out.
    """
    chosen: list[tuple[Draft, Place]] = []
    before: set[int] = set()
    begins: set[int] = set()
    left = budget - len(head)
    for draft, place in placed:
        begin = _piece_start(lines, place.first)
        low = max(0, (begin - LINES_BEFORE) // WINDOW_QUANTUM * WINDOW_QUANTUM)
        new = [line for line in range(low, begin) if line not in before]
        cost = sum(writer.count("\n" + lines[line]) for line in new)
        if cost <= left:
            left -= cost
            before.update(new)
            begins.add(begin)
            chosen.append((draft, place))
    ids, starts = list(head), {}
    run: list[int] = []
    for line in sorted(before | begins):
        if run and (line in begins or line != run[-1] + 1):
            ids += writer.encode(present_lines(lines, run[0], run[-1] + 1))
            run = []
        if line in begins:
            starts[line] = len(ids)
        if line in before:
            run.append(line)
    return chosen, ids, starts
