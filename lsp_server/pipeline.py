"""From a question to a suggestion, or to the one reason for silence.

Responsible for the order of the stages: supersede, trigger rules, live suggestion, debounce,
context, model, staleness, rejection memory, lifecycle. Knows nothing of the messages that carry
questions and answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from diffing.edits import Edit, apply, interpolate, shrink
from lsp_server import engine
from lsp_server.ahead import Ahead
from lsp_server.documents import Change, Document
from lsp_server.ghost import ghost_text
from lsp_server.moment import Moment
from lsp_server.scheduler import BackOff, DeadlineExceededError, Scheduler, TooBusyError
from lsp_server.session import Session
from lsp_server.suggestions import Suggestion
from lsp_server.triggers import refusal
from lsp_server.wire import Question
from model.answer import UNSURE
from model.protocol import Cancelled, Prediction, Predictor, Stop, Unavailable

logger = logging.getLogger(__name__)

_BUSY_AFTER_S = 0.2


@dataclass(frozen=True, slots=True)
class Answer:
    """A suggestion in a document, or the reason why there is none.

    `ghost` is the suggestion as text at the cursor; only set for inline completion.
    """

    suggestion: Suggestion | None = None
    document: Document | None = None
    ghost: Edit | None = None
    reason: str | None = None


class Pipeline:
    """Answers questions. All of it runs on the event loop, but for the model."""

    def __init__(
        self,
        session: Session,
        scheduler: Scheduler,
        tell_user: Callable[[str], None],
        backoff: BackOff | None = None,
    ) -> None:
        self._session = session
        self._scheduler = scheduler
        self._tell_user = tell_user
        self._backoff = backoff or BackOff()
        self._since: dict[str, list[Change]] = {}
        self.ahead = Ahead(session, scheduler)
        session.change_listeners.append(self._note_change)

    async def answer(self, question: Question) -> Answer:
        """The suggestion for one question. Raises `asyncio.CancelledError` when superseded."""
        session = self._session
        session.status.requests += 1
        self._scheduler.supersede(question.uri)
        document = session.documents.get(question.uri)
        self.ahead.give_way(document)
        reason = refusal(
            question,
            document,
            settings=session.settings,
            verdict=None if document is None else session.verdict(document),
            edited=session.edited,
        )
        if reason is not None or document is None:
            return self._silent(reason or "not-open")
        moment = Moment.of(question, document)
        if (alive := self._live(question, document, moment)) is not None:
            return alive
        if session.status.state == "loading" and not await self._loaded(question, document):
            return self._silent("loading")
        predictor = session.predictor
        if predictor is None or session.status.state != "ready":
            return self._silent("model-error")
        if self._backoff.active:
            return self._silent("backing-off")
        if session.mood.resting and not question.invoked:
            return self._silent("resting")
        return await self._ask(question, document, moment, predictor)

    async def _loaded(self, question: Question, document: Document) -> bool:
        """Wait for the model, as long as nobody asks anew. False when the document has moved on meanwhile."""
        version = document.version
        try:
            await self._scheduler.wait(question.uri, self._session.status.loaded)
        except asyncio.CancelledError:
            self._session.status.silent("cancelled")
            raise
        same = self._session.documents.get(question.uri) is document
        return same and document.version == version

    def _live(self, question: Question, document: Document, moment: Moment) -> Answer | None:
        """The suggestion that the user is typing through, or that nothing has changed for."""
        suggestion = self._session.suggestions.live(question.uri, question.mode)
        if suggestion is None or suggestion.version != document.version or not suggestion.followed:
            return None
        ghost = None
        if question.mode == "fim":
            ghost = _ghost(moment, suggestion.edits, document)
            if ghost is None:
                return None
        self._present(suggestion, document, moment, "live")
        return Answer(suggestion, document, ghost)

    async def _ask(
        self, question: Question, document: Document, moment: Moment, predictor: Predictor
    ) -> Answer:
        settings = self._session.settings
        debounce_s = 0.0 if question.invoked else settings.debounce_ms / 1000
        prepare = partial(self._prepare, question, document, moment, predictor)
        since = self._since[question.uri] = []
        busy = asyncio.get_running_loop().call_later(
            debounce_s + _BUSY_AFTER_S, self._session.status.set_busy, True
        )
        try:
            prediction = await self._scheduler.run(
                question.uri,
                prepare,
                debounce_s=debounce_s,
                deadline_s=settings.deadline_ms / 1000,
            )
        except asyncio.CancelledError:
            self._session.status.silent("cancelled")
            raise
        except Cancelled:
            return self._silent("cancelled")
        except (DeadlineExceededError, TooBusyError) as error:
            return self._silent("deadline" if isinstance(error, DeadlineExceededError) else "busy")
        except Unavailable as error:
            self._tell_user(f"Redraft: {error}. It will be tried again, with growing pauses.")
            return self._silent("unavailable")
        except Exception as error:
            return self._failed(error)
        finally:
            busy.cancel()
            self._session.status.set_busy(False)
            self._session.status.set_trouble(engine.trouble(predictor))
            if self._since.get(question.uri) is since:
                del self._since[question.uri]
        self._backoff.succeeded()
        if prediction is None:
            return self._silent("stale")
        return self._conclude(question, document, moment, prediction, since)

    def _prepare(
        self, question: Question, document: Document, moment: Moment, predictor: Predictor
    ) -> Callable[[Stop], Prediction] | None:
        """After the pause: freeze what the worker needs. None when the document has moved on."""
        session = self._session
        if document.version != moment.snapshot.version:
            return None
        session.status.predictions += 1
        settings = session.settings
        least = engine.threshold(predictor, question.mode, settings.gate, invoked=question.invoked)
        make_request = moment.request(question.mode, session, session.diffs(), question.diagnostics)
        return partial(engine.ask, self.ahead.before(predictor), make_request, least=least)

    def _conclude(
        self,
        question: Question,
        document: Document,
        moment: Moment,
        prediction: Prediction,
        since: list[Change],
    ) -> Answer:
        """From a prediction to what the user gets to see of it."""
        session = self._session
        session.status.predicted(prediction, question.mode)
        if session.documents.get(question.uri) is not document:
            return self._silent("closed")
        if prediction.suppressed is not None:
            if (old := session.suggestions.live(question.uri, question.mode)) is not None:
                session.suggestions.ignore(old.id)
            if prediction.suppressed == UNSURE and not since:
                edits = moment.real_edits(prediction.edits)
                uri, version = question.uri, document.version
                session.held_back.take(uri, question.mode, version, edits, prediction)
            return self._silent(prediction.suppressed)
        edits = moment.real_edits(prediction.edits)
        stale = bool(since)
        if stale:
            edits = _carried(moment.snapshot.text, edits, since)
        if not edits:
            return self._silent("stale" if stale else "no-op")
        ghost = None
        if question.mode == "fim" and not stale:
            ghost = _ghost(moment, edits, document)
            if ghost is None:
                return self._silent("not-at-cursor")
            self._drop_elsewhere(question.uri, document, moment)
        if session.suggestions.was_rejected(question.uri, edits):
            return self._silent("already-rejected")
        suggestion = session.suggestions.offer(
            question.uri, question.mode, document.version, edits, prediction
        )
        if stale:  # kept for the next request, but the place that was asked about is gone
            return self._silent("stale")
        if suggestion.edits != edits:
            if question.mode == "fim":
                ghost = _ghost(moment, suggestion.edits, document)
            if question.mode == "fim" and ghost is None:
                return self._silent("current-preferred")
        self._present(suggestion, document, moment, "model")
        return Answer(suggestion, document, ghost)

    def _present(
        self, suggestion: Suggestion, document: Document, moment: Moment, source: str
    ) -> None:
        self._session.presented(suggestion, document)
        self._session.status.spoke(source)
        self.ahead.shown(suggestion, document, moment)

    def _drop_elsewhere(self, uri: str, document: Document, moment: Moment) -> None:
        """Ghost text that the cursor has left is over, however good it was."""
        live = self._session.suggestions.live(uri, "fim")
        if live is not None and _ghost(moment, live.edits, document) is None:
            self._session.suggestions.ignore(live.id)

    def _note_change(self, change: Change) -> None:
        self.ahead.give_way(self._session.documents.get(change.uri))
        if change.uri in self._since:
            self._since[change.uri].append(change)

    def _silent(self, reason: str) -> Answer:
        self._session.status.silent(reason)
        logger.info("no suggestion: %s", reason)
        return Answer(reason=reason)

    def _failed(self, error: Exception) -> Answer:
        """Leave the predictor alone for a while; tell the user once."""
        logger.error("prediction failed: %s: %s", type(error).__name__, error)
        if self._backoff.failed():
            self._tell_user(
                f"Redraft: the model failed ({type(error).__name__}: {error}). "
                "It will be tried again, with growing pauses."
            )
        return self._silent("model-failed")


def _carried(text: str, edits: tuple[Edit, ...], since: list[Change]) -> tuple[Edit, ...]:
    """What is left of the edits after what the user did meanwhile; empty when he went elsewhere."""
    for step in (step for change in since for step in change.steps):
        small = shrink(text, step)
        left = edits if small is None else interpolate(edits, small)
        if not left:
            return ()
        text, edits = apply(text, (step,)), left
    return edits


def _ghost(moment: Moment, edits: tuple[Edit, ...], document: Document) -> Edit | None:
    if moment.selection is not None:
        return ghost_text(moment.snapshot.text, moment.cursor, edits, moment.selection)
    return ghost_text(document.text, moment.cursor, edits)
