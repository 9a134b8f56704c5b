"""The life of each suggestion, from being offered to what became of it.

Responsible for ids and states, for carrying live suggestions along while the user types, for the
memory of what was rejected, and for not replacing a good suggestion by another without need. Knows
nothing of LSP messages, of the model, or of where outcomes are kept: listeners are told.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from diffing.edits import Edit, apply, interpolate, rebase, shrink
from model.protocol import Mode, Prediction

_KEPT = 128
_REJECTED_PER_DOCUMENT = 32
PREFERENCE_MARGIN = 0.1
"""A newer suggestion replaces one that is still good only when it is this much surer."""


class State(StrEnum):
    OFFERED = "offered"
    SHOWN = "shown"
    ACCEPTED = "accepted"
    PARTLY_ACCEPTED = "partly-accepted"
    TYPED = "typed"
    REJECTED = "rejected"
    IGNORED = "ignored"
    REPLACED = "replaced"
    CANCELLED = "cancelled"


OVERTYPED = "overtyped"

LIVE = frozenset({State.OFFERED, State.SHOWN, State.PARTLY_ACCEPTED})


@dataclass(slots=True)
class Suggestion:
    """Edits that were offered to the user.

    `edits` are what is left of them, in code points of version `version` of the document.
    `presented` says that the client got them, `followed` that every change since the offer was a
    step of the suggestion itself.
    """

    uri: str
    mode: Mode
    version: int
    edits: tuple[Edit, ...]
    prediction: Prediction
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: State = State.OFFERED
    was_shown: bool = False
    followed: bool = True
    accepted_length: int = 0
    presented: bool = False
    created: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one suggestion. `after_s` counts seconds since it was offered.

    `why` says of an ignored one what ended it: OVERTYPED when the user typed something else in its place.
    """

    suggestion: Suggestion
    state: State
    after_s: float
    why: str | None = None


class SuggestionBook:
    """All suggestions of a session; at most one is live per document and mode."""

    def __init__(
        self,
        on_outcome: Callable[[Outcome], None] = lambda outcome: None,
        on_applied: Callable[[Suggestion, str], None] = lambda suggestion, before: None,
        on_shown: Callable[[Suggestion, float], None] = lambda suggestion, after_s: None,
    ) -> None:
        """`on_applied` hears of an accepted suggestion and the text that it was applied to."""
        self._on_outcome, self._on_applied, self._on_shown = on_outcome, on_applied, on_shown
        self._by_id: OrderedDict[str, Suggestion] = OrderedDict()
        self._live: dict[tuple[str, Mode], Suggestion] = {}
        self._rejected: dict[str, list[tuple[Edit, ...]]] = {}
        self._accepting: dict[str, Suggestion] = {}

    def live(self, uri: str, mode: Mode) -> Suggestion | None:
        return self._live.get((uri, mode))

    def get(self, suggestion_id: str) -> Suggestion | None:
        return self._by_id.get(suggestion_id)

    def offer(
        self, uri: str, mode: Mode, version: int, edits: tuple[Edit, ...], prediction: Prediction
    ) -> Suggestion:
        """The suggestion to present: a new one, or the live one where that is to stay."""
        current = self.live(uri, mode)
        if current is not None and current.version == version:
            if current.edits == edits or not _better(current, edits, prediction):
                return current
            self._end(current, State.REPLACED)
        elif current is not None:
            self._end(current, State.IGNORED)
        suggestion = Suggestion(uri, mode, version, edits, prediction)
        self._live[(uri, mode)] = suggestion
        self._by_id[suggestion.id] = suggestion
        while len(self._by_id) > _KEPT:
            self._by_id.popitem(last=False)
        return suggestion

    def present(self, suggestion: Suggestion) -> bool:
        """It goes to the client; True the first time, from when on its seconds are counted."""
        first = not suggestion.presented
        if first:
            suggestion.presented, suggestion.created = True, time.monotonic()
        return first

    def document_changed(
        self, uri: str, before: str, edits: Sequence[Edit], steps: Sequence[Edit], version: int
    ) -> bool:
        """Carry everything over one change; True when it was an accepted suggestion, exactly."""
        accepted = self._accepted_by(uri, before, edits)
        for suggestion in [s for s in self._live.values() if s.uri == uri]:
            if suggestion is accepted:
                continue
            self._carry(suggestion, before, steps, version)
        self._accepting.pop(uri, None)
        if accepted is not None and accepted.state in LIVE:
            self._end(accepted, State.ACCEPTED)
        if accepted is not None:
            self._on_applied(accepted, before)
        self._rejected[uri] = [
            moved for moved in (rebase(old, edits) for old in self._rejected.get(uri, ())) if moved
        ]
        return accepted is not None

    def document_closed(self, uri: str) -> None:
        for suggestion in [s for s in self._live.values() if s.uri == uri]:
            self._end(suggestion, State.IGNORED)
        self._rejected.pop(uri, None)
        self._accepting.pop(uri, None)

    def shown(self, suggestion_id: str) -> None:
        if suggestion := self._by_id.get(suggestion_id):
            if not suggestion.was_shown:
                self._on_shown(suggestion, time.monotonic() - suggestion.created)
            suggestion.was_shown = True
            if suggestion.state is State.OFFERED:
                suggestion.state = State.SHOWN

    def accept(self, suggestion_id: str) -> None:
        """The client says that it has applied the suggestion, or is about to."""
        suggestion = self._by_id.get(suggestion_id)
        if suggestion is None or suggestion.state in (State.ACCEPTED, State.REJECTED):
            return
        if suggestion.state in LIVE:
            self._accepting[suggestion.uri] = suggestion
        self._end(suggestion, State.ACCEPTED)

    def accept_partly(self, suggestion_id: str, accepted_length: int | None = None) -> None:
        """`accepted_length` counts UTF-16 units from the start of the text that was offered."""
        suggestion = self._by_id.get(suggestion_id)
        if suggestion is None:
            return
        suggestion.was_shown = True
        suggestion.accepted_length = max(suggestion.accepted_length, accepted_length or 0)
        if suggestion.state in LIVE:
            suggestion.state = State.PARTLY_ACCEPTED

    def reject(self, suggestion_id: str) -> None:
        suggestion = self._by_id.get(suggestion_id)
        if suggestion is None or suggestion.state not in LIVE:
            return
        memory = self._rejected.setdefault(suggestion.uri, [])
        memory.append(suggestion.edits)
        del memory[:-_REJECTED_PER_DOCUMENT]
        self._end(suggestion, State.REJECTED)

    def ignore(self, suggestion_id: str) -> None:
        suggestion = self._by_id.get(suggestion_id)
        if suggestion is not None and suggestion.state in LIVE:
            self._end(suggestion, State.IGNORED)

    def was_rejected(self, uri: str, edits: tuple[Edit, ...]) -> bool:
        return edits in self._rejected.get(uri, ())

    def _accepted_by(self, uri: str, before: str, edits: Sequence[Edit]) -> Suggestion | None:
        """The suggestion that this change applies, all of it at once."""
        candidates = [s for s in self._live.values() if s.uri == uri]
        if uri in self._accepting:
            candidates.append(self._accepting[uri])
        after: str | None = None
        for suggestion in candidates:
            claimed = suggestion.state is State.ACCEPTED
            if (not claimed and _is_one_key(suggestion.edits)) or _growth(edits) != _growth(
                suggestion.edits
            ):
                continue
            if after is None:
                after = apply(before, edits)
            if apply(before, suggestion.edits) == after:
                return suggestion
        return None

    def _carry(
        self, suggestion: Suggestion, before: str, steps: Sequence[Edit], version: int
    ) -> None:
        left: tuple[Edit, ...] | None = suggestion.edits
        text = before
        wanted = _size(suggestion.edits)
        real = False
        for step in steps:
            small = shrink(text, step)
            if small is not None and left is not None:
                real = True
                left = interpolate(left, small)
            text = apply(text, (step,)) if len(steps) > 1 else text
        if left is None:
            self._end(suggestion, State.IGNORED, OVERTYPED)
        elif not left:
            self._end(suggestion, State.TYPED)
        else:
            suggestion.followed &= not real or _size(left) < wanted
            suggestion.edits, suggestion.version = left, version

    def _end(self, suggestion: Suggestion, state: State, why: str | None = None) -> None:
        key = (suggestion.uri, suggestion.mode)
        if self._live.get(key) is suggestion:
            del self._live[key]
        if state in (State.ACCEPTED, State.REJECTED):
            suggestion.was_shown = True
        suggestion.state = state
        self._on_outcome(Outcome(suggestion, state, time.monotonic() - suggestion.created, why))


def _better(current: Suggestion, edits: tuple[Edit, ...], prediction: Prediction) -> bool:
    """Whether a newer prediction may take the place of one that is still good (anti-flicker)."""
    if len(current.edits) == 1 and len(edits) == 1:
        old, new = current.edits[0], edits[0]
        if (old.start, old.end) == (new.start, new.end) and new.new_text.startswith(old.new_text):
            return True
    return prediction.confidence >= current.prediction.confidence + PREFERENCE_MARGIN


def _growth(edits: Sequence[Edit]) -> int:
    return sum(len(e.new_text) - (e.end - e.start) for e in edits)


def _size(edits: Sequence[Edit]) -> int:
    return sum(len(e.new_text) + e.end - e.start for e in edits)


def _is_one_key(edits: Sequence[Edit]) -> bool:
    """Whether a single keystroke would have done the same."""
    return len(edits) == 1 and _size(edits) <= 1
