"""What is done while nobody asks: the suggestion after the one that is shown, and reading the place of the cursor.

Responsible for guessing the next question, for having it answered in an idle moment, and for giving way to real
questions. Knows nothing of how predictions are made; a predictor that brings `prepare` is one that may work ahead, for
it costs no more than time on this machine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from diffing.edits import Edit, apply
from diffing.positions import Position
from lsp_server.documents import Document, Snapshot
from lsp_server.moment import Moment
from lsp_server.scheduler import Scheduler
from lsp_server.session import Session
from lsp_server.suggestions import Suggestion
from model.answer import Newlines
from model.protocol import Cancelled, Prediction, Predictor, Preparing, Request, Stop

logger = logging.getLogger(__name__)

READING_S = 0.25
"""Nobody accepts a suggestion sooner; and until then the next key finds the worker free."""
RESTING_S = 0.15
"""A cursor that stays so long has come to its place."""


class Foresight:
    """Stands before a predictor and remembers the last answer that was found ahead; used in the worker.

    A question is the same when the predictor would see the same. Of a next edit that is the cursor's line, not its
    column: editors put the cursor on the last character or behind it. Signals of the user are as they were then.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self.name = predictor.name
        self._asked: Request | None = None
        self._found = Prediction()

    def foresee(self, request: Request, stop: Stop) -> None:
        """Answer a request that may come. Raises what the predictor raises."""
        self._asked = None
        plain = Newlines(request.text).normalised(request)
        self._found = self._predictor.predict(plain, stop)
        self._asked = _same_for_all(plain)

    def predict(self, request: Request, stop: Stop) -> Prediction:
        if self._asked is not None and self._asked == _same_for_all(request):
            return self._found
        return self._predictor.predict(request, stop)


def _same_for_all(request: Request) -> Request:
    cursor = request.cursor
    if request.mode == "next_edit":
        cursor = request.text.rfind("\n", 0, cursor) + 1
    return replace(request, cursor=cursor, signals={})


class _Job(NamedTuple):
    """What the worker does ahead. `text` is the text of the question that it answers, None where it answers none."""

    future: Future[None]
    stop: Stop
    text: str | None


class Ahead:
    """At most one thing is done ahead, the last that was thought of. On the event loop's thread."""

    def __init__(self, session: Session, scheduler: Scheduler) -> None:
        self._session = session
        self._scheduler = scheduler
        self._foresight: tuple[Predictor, Foresight] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reading = False
        self._then: Callable[[], None] | None = None
        self._job: _Job | None = None

    def before(self, predictor: Predictor) -> Predictor:
        """The predictor, with what was found ahead before it."""
        if not isinstance(predictor, Preparing):
            return predictor
        return self._foresight_of(predictor)

    def _foresight_of(self, predictor: Predictor) -> Foresight:
        if self._foresight is None or self._foresight[0] is not predictor:
            self._foresight = (predictor, Foresight(predictor))
        return self._foresight[1]

    def shown(self, suggestion: Suggestion, document: Document, moment: Moment) -> None:
        """The user reads a suggestion: think of what comes when he has accepted it."""
        if (predictor := self._willing()) is None:
            return
        foresight = self._foresight_of(predictor)
        version = document.version

        def accepted() -> None:
            if (
                document.version != version
                or self._session.documents.get(document.uri) is not document
            ):
                return
            text = apply(document.text, suggestion.edits)
            cursor = _landing(document.text, moment.cursor, suggestion.edits)
            snapshot = Snapshot(document.uri, document.path, version + 1, text, document.language)
            diffs = self._session.diffs_after(document, suggestion.edits)
            after = Moment(snapshot, text, cursor)
            make = after.request(suggestion.mode, self._session, diffs)
            self._start(partial(_foresee, foresight, make), text)

        self._later(READING_S, accepted)
        self._reading = True

    def moved(self, uri: str, position: Position) -> None:
        """The cursor has come to another place: read what is around it, for a completion there."""
        document = self._session.documents.get(uri)
        if (
            document is None
            or (predictor := self._willing()) is None
            or not self._may_complete(document)
        ):
            return
        if self._scheduler.pending:
            return

        def rests() -> None:
            if self._session.documents.get(uri) is not document:
                return
            snapshot = document.snapshot()
            here = Moment(snapshot, snapshot.text, document.buffer.offset_at(position))
            make = here.request("fim", self._session, self._session.diffs())
            self._start(partial(_prepare, predictor, make), None)

        if self._reading or self._job is not None:
            self._then = rests  # something better is being done, or about to be
        else:
            self._later(RESTING_S, rests)

    def give_way(self, document: Document | None = None) -> None:
        """A question comes, or a text has changed: stop, but for the answer about the text of this document."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._reading, self._then = None, False, None
        if self._job is not None and (document is None or self._job.text != document.text):
            self._job.stop.cancel()
            self._job = None

    def _willing(self) -> Preparing | None:
        session = self._session
        if not session.settings.work_ahead or session.status.state != "ready":
            return None
        return session.predictor if isinstance(session.predictor, Preparing) else None

    def _may_complete(self, document: Document) -> bool:
        session, settings = self._session, self._session.settings
        return (
            settings.enable
            and settings.inline_enable
            and document.language not in settings.disabled_languages
            and session.verdict(document) is None
            and document.content_reason is None
        )

    def _later(self, seconds: float, start: Callable[[], None]) -> None:
        self.give_way()
        self._timer = asyncio.get_running_loop().call_later(seconds, start)

    def _start(self, work: Callable[[Stop], None], text: str | None) -> None:
        self._timer, self._reading = None, False
        if self._scheduler.pending or self._scheduler.busy:
            return
        stop = Stop()
        self._job = job = _Job(self._scheduler.submit(work, stop), stop, text)
        loop = asyncio.get_running_loop()
        job.future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._finished, job))

    def _finished(self, job: _Job) -> None:
        if self._job is job:
            self._job = None
            if self._then is not None:
                self._later(0, self._then)


def _foresee(foresight: Foresight, make_request: Callable[[], Request], stop: Stop) -> None:
    _quietly(lambda: foresight.foresee(make_request(), stop))


def _prepare(predictor: Preparing, make_request: Callable[[], Request], stop: Stop) -> None:
    _quietly(lambda: predictor.prepare(make_request(), stop))


def _quietly(work: Callable[[], Any]) -> None:
    """Nobody has asked, so nobody need hear of a failure; it comes again when somebody asks."""
    try:
        work()
    except Cancelled:
        pass
    except Exception as error:
        logger.info("working ahead failed: %s: %s", type(error).__name__, error)


def _landing(text: str, cursor: int, edits: tuple[Edit, ...]) -> int:
    """Where the cursor comes to stand when the edits are accepted: behind the one nearest to it."""
    line = text.count("\n", 0, cursor)
    nearest = min(edits, key=lambda edit: abs(text.count("\n", 0, edit.start) - line))
    before = sum(
        len(edit.new_text) - (edit.end - edit.start) for edit in edits if edit.start < nearest.start
    )
    return nearest.start + before + len(nearest.new_text)
