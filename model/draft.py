"""Drafts of the next edit, made from the recent changes without any model.

Responsible for running the rules, for turning their proposals into edits of the present text, and
for a short, ordered, duplicate-free list of them. A draft is a guess to be judged: most are wrong.
Knows nothing of tokens or tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from diffing.edits import Edit
from diffing.hunks import before_newest
from model.draft_imports import missing_imports, unused_imports
from model.draft_items import pass_through
from model.draft_parallel import annotated_alike, awaits, deleted_alike, same_modifiers
from model.draft_rank import family, log_odds, proposal_features
from model.draft_rewrites import Rewrite, rewrites_of
from model.draft_rules import (
    finished_lines,
    half_done,
    identical_lines,
    repeat_rewrites,
    repeated_insertions,
    similar_blocks,
    similar_insertions,
)
from model.draft_signatures import parameters_asked_for, signature_uses
from model.draft_structure import (
    before_definitions,
    moved_lines,
    uses_of_removed,
)
from model.draft_uses import import_rewrites
from model.draft_view import Proposal, View
from model.protocol import Request

_MAX_REWRITES = 48
# Drafts with lower log-odds are not worth a judge's time.
LEAST = -6.5
# Rules that finish what is half written, which may be open.
_GROWING = frozenset({"half-done", "finish-line", "finish-word"})


@dataclass(frozen=True, slots=True)
class Draft:
    """One contiguous replacement in `Request.text`.

    `link` is the substitution of the user's that led to it, `siblings` the number of places where
    the same rule applies, `distance` the signed number of lines from the cursor (positive below),
    `recency` the age of the change that it repeats in change groups (0 = newest). `score` is the
    log-odds of being right that the rule, the place and the like give it before any model looks.
    """

    edit: Edit
    rule: str
    link: tuple[str, str] | None
    siblings: int
    distance: int
    recency: int
    score: float = 0.0
    known: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)

    def features(self) -> dict[str, float]:
        """Numbers for a judge, by name; `rule:<name>` is 1 for the draft's rule."""
        return {"prior": self.score, **self.known}


def _rewrites(view: View) -> list[Rewrite]:
    """Rewrites of all recent changes; none that a newer change took back."""
    found: list[Rewrite] = []
    undone: set[tuple[str, str]] = set()
    for change in view.changes:
        mine = [
            rewrite
            for rewrite in (*import_rewrites(change), *rewrites_of(change))
            if rewrite.link not in undone
        ]
        undone.update((rewrite.link[1], rewrite.link[0]) for rewrite in mine)
        found.extend(mine)
    return found[:_MAX_REWRITES]


def _proposals(view: View) -> Iterator[Proposal]:
    rewrites = _rewrites(view)
    yield from half_done(view, rewrites)
    yield from identical_lines(view)
    yield from repeat_rewrites(view, rewrites)
    yield from repeated_insertions(view)
    yield from similar_blocks(view)
    yield from similar_insertions(view)
    yield from finished_lines(view)
    yield from signature_uses(view)
    yield from parameters_asked_for(view)
    yield from pass_through(view)
    yield from unused_imports(view)
    yield from missing_imports(view)
    yield from moved_lines(view)
    yield from uses_of_removed(view)
    yield from before_definitions(view)
    yield from same_modifiers(view)
    yield from deleted_alike(view)
    yield from awaits(view)
    yield from annotated_alike(view)


def _without_trimming(view: View, proposal: Proposal) -> Proposal:
    """The proposal with the white space at line ends as it stands: the user may be about to type there."""
    old = view.lines[proposal.first : proposal.last]
    if len(old) != len(proposal.new):
        return proposal
    kept = tuple(
        a if a.rstrip() == b.rstrip() else b for a, b in zip(old, proposal.new, strict=True)
    )
    return replace(proposal, new=kept)


def _balance(lines: Iterable[str]) -> list[int]:
    """Brackets that stay open, by sort, quotes not looked at."""
    text = "".join(lines)
    return [text.count(left) - text.count(right) for left, right in ("()", "[]", "{}")]


def _open(lines: Iterable[str]) -> int:
    return sum(abs(count) for count in _balance(lines))


def _breaks(view: View, proposal: Proposal) -> bool:
    """True when the repeated edit would leave more brackets open, which none of the user's own edits did."""
    old = view.lines[proposal.first : proposal.last]
    if proposal.rule in _GROWING or _open(proposal.new) <= _open(old):
        return False
    return all(_balance(change.old) == _balance(change.new) for change in view.changes)


def _undoes(view: View, proposal: Proposal) -> bool:
    """True when the proposal takes back one of the user's recent changes in this file."""
    for change in view.changes:
        span = change.span
        if change.line is None or proposal.first >= span.stop + 1 or proposal.last < span.start:
            continue
        first, last = min(proposal.first, span.start), max(proposal.last, span.stop)
        after = (
            *view.lines[first : proposal.first],
            *proposal.new,
            *view.lines[proposal.last : last],
        )
        before = (*view.lines[first : span.start], *change.old, *view.lines[span.stop : last])
        if [line.strip() for line in after] == [line.strip() for line in before]:
            return True
    return False


def _common_prefix(left: str, right: str) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def gives(text: str, edit: Edit, wanted: str) -> bool:
    """Whether `edit` makes `wanted` of `text`, told without making it."""
    tail = len(text) - edit.end
    return (
        len(wanted) == edit.start + len(edit.new_text) + tail
        and wanted.startswith(edit.new_text, edit.start)
        and wanted.startswith(text[: edit.start])
        and wanted.endswith(text[edit.end :])
    )


def _edit(view: View, starts: list[int], proposal: Proposal) -> Edit | None:
    """The proposal as offsets, common head and tail trimmed; None when nothing changes."""
    count = len(view.lines)
    if not 0 <= proposal.first <= proposal.last <= count:
        return None
    old = view.lines[proposal.first : proposal.last]
    if tuple(old) == proposal.new:
        return None
    text = view.request.text
    if proposal.first == count:
        start = end = len(text)
        new_text = "".join("\n" + line for line in proposal.new)
    elif proposal.last == count:
        start, end = starts[proposal.first], len(text)
        new_text = "\n".join(proposal.new)
        if not proposal.new and start > 0:
            start -= 1
    else:
        start, end = starts[proposal.first], starts[proposal.last]
        new_text = "".join(line + "\n" for line in proposal.new)
    old_text = text[start:end]
    head = _common_prefix(old_text, new_text)
    room = min(len(old_text), len(new_text)) - head
    tail = _common_prefix(old_text[::-1][:room], new_text[::-1][:room])
    if head == len(old_text) == len(new_text):
        return None
    return Edit(start + head, end - tail, new_text[head : len(new_text) - tail])


def _ranked(view: View) -> list[tuple[float, Proposal, dict[str, float]]]:
    """All proposals by falling log-odds; of the same proposal by several rules the first counts."""
    votes: dict[tuple[int, int, tuple[str, ...]], set[str]] = {}
    groups: dict[tuple[str, tuple[str, str] | None, int], list[Proposal]] = {}
    for proposal in _proposals(view):
        rules = votes.setdefault((proposal.first, proposal.last, proposal.new), set())
        if not rules:
            link = (proposal.rule, proposal.link, proposal.recency)
            groups.setdefault(link, []).append(proposal)
        rules.add(family(proposal.rule))
    ranked = []
    for group in groups.values():
        firsts = sorted({proposal.first for proposal in group}, key=view.reach)
        place = {first: number for number, first in enumerate(firsts)}
        for proposal in group:
            supporters = len(votes[proposal.first, proposal.last, proposal.new])
            known = proposal_features(view, proposal, place[proposal.first], supporters)
            ranked.append((log_odds(known), proposal, known))
    ranked.sort(key=lambda entry: -entry[0])
    return ranked


def drafts(request: Request, limit: int = 24, *, least: float = LEAST) -> list[Draft]:
    """At most `limit` drafts for the request, most promising first; deterministic, no two alike,
    none a no-op, none with log-odds below `least`.
    """
    if not request.history:
        return []
    view = View(request)
    if not view.changes:
        return []
    starts = [0]
    for line in view.lines:
        starts.append(starts[-1] + len(line) + 1)
    before = cache(
        lambda: before_newest(request.text, request.history)
    )  # most requests have no draft
    found: dict[tuple[int, int, str], Draft] = {}
    for score, proposal, known in _ranked(view):
        if score < least or len(found) == limit:
            break
        edit = _edit(view, starts, _without_trimming(view, proposal))
        if edit is None or _breaks(view, proposal) or _undoes(view, proposal):
            continue
        if (earlier := before()) is not None and gives(request.text, edit, earlier):
            continue
        draft = Draft(
            edit=edit,
            rule=proposal.rule,
            link=proposal.link,
            siblings=proposal.siblings,
            distance=view.distance(proposal.first),
            recency=proposal.recency,
            score=score,
            known=known,
        )
        found.setdefault((edit.start, edit.end, edit.new_text), draft)
    return list(found.values())
