"""What the gate kept from the user, and whether he would have wanted it.

Responsible for following one such suggestion now and then until he has typed just that, or something else in its place.
Without both, a gate learns only from what it shows and cannot notice that it is too quiet. Knows nothing of where this
is kept or what is learned from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from diffing.edits import Edit
from lsp_server.documents import Change
from lsp_server.suggestions import OVERTYPED, Outcome, State, Suggestion, SuggestionBook
from model.protocol import Mode, Prediction

EVERY_S = 60.0
"""One in so many seconds is followed, whatever becomes of it, or what is shown would drown among them."""


class HeldBack:
    """`ended` hears of a suggestion whether it was typed as it stood, and the seconds until then."""

    def __init__(
        self,
        ended: Callable[[Suggestion, bool, float], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ended, self._clock = ended, clock
        self._book = SuggestionBook(self._on_outcome)
        self._next = 0.0

    def take(
        self, uri: str, mode: Mode, version: int, edits: tuple[Edit, ...], prediction: Prediction
    ) -> None:
        """Follow a suggestion that was not sure enough, if it is time for one."""
        now = self._clock()
        if edits and now >= self._next:
            self._next = now + EVERY_S
            self._book.offer(uri, mode, version, edits, prediction)

    def changed(self, change: Change) -> None:
        """A document has changed."""
        self._book.document_changed(
            change.uri, change.before, change.edits, change.steps, change.version
        )

    def forget(self, uri: str) -> None:
        """The document was closed, or the user sees a suggestion there and follows that."""
        self._book.document_closed(uri)

    def _on_outcome(self, outcome: Outcome) -> None:
        typed = outcome.state in (State.TYPED, State.ACCEPTED)
        if typed or outcome.why == OVERTYPED:
            self._ended(outcome.suggestion, typed, outcome.after_s)
