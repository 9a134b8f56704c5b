"""Feedback: every suggestion's life goes to the local store, off the keystroke path.

Responsible for turning outcomes into records, for telling how much of an accepted suggestion is still there after
`QUIET_S` of quiet, and for the one thread that writes. Nothing here waits for a disk: what does not fit into the queue
is dropped and counted. Knows nothing of messages, of the schema, or of what is learned from it.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diffing.edits import apply
from lsp_server.documents import Change
from lsp_server.suggestions import Outcome, State, Suggestion
from model.feedback import (
    FILE,
    MISSED,
    SPARED,
    Event,
    FeedbackError,
    Record,
    Store,
    Suggested,
    data_folder,
)

logger = logging.getLogger(__name__)

SETTLED = "settled"
QUIET_S = 10.0
WATCHED_S = 600.0
MAX_QUEUED = 4096
MAX_WATCHED = 64
MAX_BATCH = 256
PRUNE_EVERY = 1000
TEXT_LINES = 20

Task = Callable[[], Record]


class Writer:
    """One thread that writes records to the store, in order and several at once.

    The store is opened there, and a failure ends the writing, never the server.
    """

    def __init__(self, path: Path, most: int = MAX_QUEUED) -> None:
        self.path = path
        self.dropped = 0
        self.problem = ""
        self._queue: queue.Queue[Record | Task | threading.Event | None] = queue.Queue(most)
        self._thread = threading.Thread(target=self._run, name="feedback", daemon=True)
        self._thread.start()

    def put(self, record: Record | Task) -> None:
        """Hand over a record, or what makes one; returns at once."""
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1

    def flush(self, timeout: float = 2.0) -> bool:
        """Whether all that was handed over before is on disk within `timeout` seconds."""
        written = threading.Event()
        try:
            self._queue.put(written, timeout=timeout)
        except queue.Full:
            return False
        return written.wait(timeout)

    def close(self, timeout: float = 1.0) -> None:
        """Write what waits and end; gives up after `timeout` seconds."""
        try:
            self._queue.put(None, timeout=timeout)
        except queue.Full:
            return
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            with Store(self.path) as store:
                store.prune()
                self._serve(store)
        except FeedbackError as error:
            self.problem = str(error)
            logger.warning("%s", error)
            self._discard()

    def _serve(self, store: Store) -> None:
        written = 0
        while True:
            batch: list[Record] = []
            waiting: list[threading.Event] = []
            ended = self._collect(batch, waiting)
            if batch:
                store.write(batch)
                written += len(batch)
            for event in waiting:
                event.set()
            if ended:
                return
            if written >= PRUNE_EVERY:
                written = 0
                store.prune()

    def _collect(self, batch: list[Record], waiting: list[threading.Event]) -> bool:
        """Wait for something, then take all there is; True at the end."""
        item = self._queue.get()
        while True:
            if item is None:
                return True
            if isinstance(item, threading.Event):
                waiting.append(item)
            else:
                batch.append(item() if callable(item) else item)
            if len(batch) >= MAX_BATCH:
                return False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return False

    def _discard(self) -> None:
        """Take what comes, so that nobody waits."""
        while (item := self._queue.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()


@dataclass(slots=True)
class Watched:
    """An accepted suggestion until it is settled. Times are those of the clock."""

    suggestion: Suggestion
    before: str
    after: str
    text: str
    accepted: float
    touched: float


class Feedback:
    """Hears of suggestions on the event loop and hands records to the writer.

    `later` calls a function after some seconds. Without a path nothing is kept.
    """

    def __init__(
        self,
        later: Callable[[float, Callable[[], None]], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._later = later or call_later
        self._clock = clock
        self._writer: Writer | None = None
        self._path: Path | None = None
        self._watched: dict[str, Watched] = {}
        self._ticking = False
        self.keep_text = False

    def use(self, *, enable: bool, keep_text: bool, path: Path | None = None) -> None:
        """Begin or end keeping feedback, as the settings say. The file is made when there is something to keep."""
        self.keep_text = keep_text
        self._path = (path or data_folder() / FILE) if enable else None
        if not enable:
            self.close()

    @property
    def state(self) -> str:
        """`on`, `off`, or what is wrong."""
        if self._path is None:
            return "off"
        if self._writer is not None and (self._writer.problem or self._writer.dropped):
            return self._writer.problem or f"{self._writer.dropped} records dropped"
        return "on"

    def offered(
        self,
        suggestion: Suggestion,
        language: str,
        path: str,
        text: str,
        history: Sequence[str] = (),
    ) -> None:
        """A new suggestion is about to be sent; `text` is the document's, `history` the newest edits as diffs."""
        if self._path is None:
            return
        kept = excerpt(path, text, suggestion, history) if self.keep_text else None
        self._put(suggested(suggestion, language, kept))

    def held_back(self, suggestion: Suggestion, typed: bool, after_s: float) -> None:
        """A suggestion that was not shown was typed as it stood, or something else in its place; never with text."""
        self._put(suggested(suggestion))
        self._put(Event(suggestion.id, MISSED if typed else SPARED, after_s))

    def shown(self, suggestion: Suggestion, after_s: float) -> None:
        self._put(Event(suggestion.id, State.SHOWN.value, after_s))

    def ended(self, outcome: Outcome) -> None:
        one = outcome.suggestion
        length = float(one.accepted_length) if one.accepted_length else None
        self._put(Event(one.id, outcome.state.value, outcome.after_s, length, outcome.why))

    def applied(self, suggestion: Suggestion, before: str) -> None:
        """An accepted suggestion now stands in its document, which was `before`."""
        if self._path is None or len(self._watched) >= MAX_WATCHED:
            return
        after, now = apply(before, suggestion.edits), self._clock()
        self._watched[suggestion.id] = Watched(suggestion, before, after, after, now, now)
        self._tick()

    def changed(self, change: Change, text: Callable[[], str]) -> None:
        """A document has changed into `text()`."""
        mine = [one for one in self._watched.values() if one.suggestion.uri == change.uri]
        if not mine or not change.edits:
            return
        now, latest = self._clock(), text()
        for one in mine:
            if latest != one.text:
                one.text, one.touched = latest, now

    def closed(self, uri: str) -> None:
        """A document was closed: what was accepted in it stays as it is."""
        for one in [one for one in self._watched.values() if one.suggestion.uri == uri]:
            self._settle(one)

    def settle(self) -> None:
        """Settle what has been quiet for long enough."""
        now = self._clock()
        for one in list(self._watched.values()):
            if now - one.touched >= QUIET_S or now - one.accepted >= WATCHED_S:
                self._settle(one)

    def flush(self, timeout: float = 2.0) -> bool:
        return self._writer is None or self._writer.flush(timeout)

    def close(self) -> None:
        """Settle everything and write what waits, for at most a second."""
        for one in list(self._watched.values()):
            self._settle(one)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _settle(self, one: Watched) -> None:
        del self._watched[one.suggestion.id]
        after = self._clock() - one.accepted

        def record() -> Record:
            kept = share_kept(one.before, one.after, one.text)
            return Event(one.suggestion.id, SETTLED, after, round(kept, 4))

        self._put(record)

    def _tick(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._later(QUIET_S / 4, self._tock)

    def _tock(self) -> None:
        self._ticking = False
        self.settle()
        if self._watched:
            self._tick()

    def _put(self, record: Record | Task) -> None:
        if self._path is not None and self._writer is None:
            self._writer = Writer(self._path)
        if self._writer is not None:
            self._writer.put(record)


def suggested(
    suggestion: Suggestion, language: str = "", text: dict[str, Any] | None = None
) -> Suggested:
    """The record of a suggestion that was made now."""
    made, now = suggestion.prediction, time.time()
    known = (made.source, made.confidence, dict(made.features), language, made.model, text)
    return Suggested(suggestion.id, now, suggestion.mode, *known)


def share_kept(before: str, accepted: str, now: str) -> float:
    """How much of the change from `before` to `accepted` the text still has `now`, 0 to 1."""
    if now == accepted:
        return 1.0
    from model.evaluation.metrics import kept_rate

    return kept_rate(before, accepted, now).kept


def call_later(seconds: float, call: Callable[[], None]) -> None:
    """On the running event loop; nowhere without one."""
    try:
        asyncio.get_running_loop().call_later(seconds, call)
    except RuntimeError:
        logger.debug("no event loop: accepted suggestions settle when their document is closed")


def excerpt(
    path: str, text: str, suggestion: Suggestion, history: Sequence[str] = ()
) -> dict[str, Any]:
    """The suggestion as text with the lines around it and the edits before it, for users who keep text.

    `start` of an edit counts code points from the beginning of `around`.
    """
    first = text.count("\n", 0, suggestion.edits[0].start)
    lines = text.split("\n")
    low = max(0, first - TEXT_LINES)
    begin = sum(len(line) + 1 for line in lines[:low])
    return {
        "path": path,
        "first_line": low,
        "around": "\n".join(lines[low : first + TEXT_LINES]),
        "history": list(history),
        "edits": [
            {"start": edit.start - begin, "old": text[edit.start : edit.end], "new": edit.new_text}
            for edit in suggestion.edits
        ],
    }
