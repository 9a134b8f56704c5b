"""One editing session: everything that is known, and what happens to it when something changes.

Responsible for keeping documents, history, policy, suggestions and settings consistent with each
other. Knows nothing of JSON-RPC, of threads, or of how a suggestion comes about.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from lsprotocol import types as lsp

from diffing.edits import Edit, minimal_edits
from diffing.history import EditHistory
from lsp_server.documents import Change, Document, DocumentStore
from lsp_server.feedback import Feedback
from lsp_server.held_back import HeldBack
from lsp_server.mood import Mood
from lsp_server.related import Candidates, FileCache
from lsp_server.settings import Settings, parse_settings
from lsp_server.status import Status
from lsp_server.suggestions import Outcome, State, Suggestion, SuggestionBook
from lsp_server.workspace import Workspace, file_path
from model.protocol import Predictor

logger = logging.getLogger(__name__)

_GIT_DIFFS = 8
_LOOKED_AT = 8
_KEPT_DIFFS = 3


class Session:
    """The state that all handlers share."""

    def __init__(self, notify: Callable[[str, Any], None]) -> None:
        self.settings = Settings()
        self.workspace = Workspace()
        self.documents = DocumentStore(self.workspace.path_name)
        self.history = EditHistory()
        self.feedback = Feedback()
        self.mood = Mood()
        self.suggestions = SuggestionBook(
            self._on_outcome, self.feedback.applied, self.feedback.shown
        )
        self.held_back = HeldBack(self.feedback.held_back)
        self.status = Status(notify)
        self.files = FileCache()
        self.predictor: Predictor | None = None
        self.change_listeners: list[Callable[[Change], None]] = []
        self._initial_settings = Settings()
        self._git_diffs: list[tuple[str, str]] = []
        self._looked_at: list[str] = []
        self._verdicts: dict[str, str | None] = {}

    def initialize(self, params: lsp.InitializeParams) -> list[str]:
        """Take over folders and options; returns what is wrong with the options."""
        self.workspace.initialize(params)
        self._initial_settings, problems = parse_settings(params.initialization_options)
        self._use(self._initial_settings)
        return problems

    def configure(self, raw: object) -> list[str]:
        """Lay settings over those of initializationOptions; returns what is wrong with them."""
        settings, problems = parse_settings(raw, self._initial_settings)
        self._use(settings)
        return problems

    def _use(self, settings: Settings) -> None:
        self.settings = settings
        logging.getLogger("lsp_server").setLevel(settings.log_level.upper())
        self.workspace.apply_settings(settings)
        self.feedback.use(
            enable=settings.enable and settings.feedback_enable, keep_text=settings.feedback_text
        )
        self.policy_changed()

    def policy_changed(self) -> None:
        """Forget what may no longer be known."""
        self.workspace.policy.refresh()
        self._verdicts.clear()
        for name in self.history.recent_paths():
            if self.workspace.excludes(name):
                self.history.forget(name)
        kept = [(name, diff) for name, diff in self._git_diffs if not self.workspace.excludes(name)]
        self._git_diffs = kept

    def verdict(self, document: Document) -> str | None:
        """Why a document may not be read, or None."""
        if document.uri not in self._verdicts:
            verdict = self.workspace.policy.verdict(document.uri, opened=True)
            self._verdicts[document.uri] = verdict
        return self._verdicts[document.uri]

    def opened(self, item: lsp.TextDocumentItem) -> None:
        document = self.documents.open(item)
        self.focused(item.uri)
        self._record_unsaved(document)

    def _record_unsaved(self, document: Document) -> None:
        """What was changed before the server heard of the document, and is not saved: typed while it started, say."""
        path = file_path(document.uri)
        if (
            path is None
            or self.verdict(document) is not None
            or document.content_reason is not None
        ):
            return
        saved, _ = self.workspace.policy.read(path)
        if saved is None:
            return
        before = _as_opened(saved, document.text)
        if before != document.text:
            edits = minimal_edits(before, document.text)
            self.history.record(document.path, before, edits, document.version)

    def changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        change = self.documents.change(params)
        if change is None:
            return
        accepted = self.suggestions.document_changed(
            change.uri, change.before, change.edits, change.steps, change.version
        )
        self.held_back.changed(change)
        if change.edits and not accepted:
            self.mood.typed()
        document = self.documents.get(change.uri)
        if change.edits and document is not None and self.verdict(document) is None:
            self._record(change, accepted)
            self.feedback.changed(change, lambda: document.text)
        for listener in self.change_listeners:
            listener(change)

    def _record(self, change: Change, accepted: bool) -> None:
        edits = change.edits
        if len(edits) == 1 and edits[0].end - edits[0].start == len(change.before):
            # The client sent the whole text: find out what really changed.
            edits = minimal_edits(change.before, edits[0].new_text)
        source = "prediction" if accepted else "user"
        self.history.record(
            change.path,
            change.before,
            edits,
            change.version,
            source,  # type: ignore[arg-type]
        )

    def closed(self, uri: str) -> None:
        self.documents.close(uri)
        self.feedback.closed(uri)
        self.suggestions.document_closed(uri)
        self.held_back.forget(uri)
        self._verdicts.pop(uri, None)
        if uri in self._looked_at:
            self._looked_at.remove(uri)

    def presented(self, suggestion: Suggestion, document: Document) -> None:
        """A suggestion goes to the client."""
        self.held_back.forget(suggestion.uri)
        if self.suggestions.present(suggestion):
            history = self.diffs()[-_KEPT_DIFFS:] if self.feedback.keep_text else ()
            self.feedback.offered(
                suggestion, document.language, document.path, document.text, history
            )

    def focused(self, uri: str) -> None:
        """The user looks at this document now."""
        if uri in self._looked_at:
            self._looked_at.remove(uri)
        self._looked_at.insert(0, uri)
        del self._looked_at[_LOOKED_AT:]

    def changed_on_disk(self, name: str, before: str, after: str) -> None:
        """A file that is not open in the editor was changed by another program."""
        if self.documents.by_path(name) is None:
            self.history.record(name, before, minimal_edits(before, after), 0, "disk")

    def set_git_diffs(self, diffs: list[tuple[str, str]]) -> None:
        """Uncommitted changes, as history for the time before the session; oldest first."""
        self._git_diffs = diffs[-_GIT_DIFFS:]

    @property
    def edited(self) -> bool:
        """Whether any recent edit is known."""
        return bool(self._git_diffs) or bool(self.history.recent_paths())

    def diffs(self) -> tuple[str, ...]:
        """The edit history as unified diffs, oldest first."""
        touched = set(self.history.recent_paths())
        before = [diff for name, diff in self._git_diffs if name not in touched]
        return (*before, *self.history.diffs())

    def diffs_after(self, document: Document, edits: tuple[Edit, ...]) -> tuple[str, ...]:
        """The edit history as it will be when these edits are accepted."""
        future = self.history.fork()
        future.record(document.path, document.text, edits, document.version + 1, "prediction")
        before = [diff for name, diff in self._git_diffs if name not in future.recent_paths()]
        return (*before, *future.diffs())

    def candidates(self) -> Candidates:
        """What may be related to a request, frozen for the worker thread."""
        readable = [d for d in self.documents if self._is_readable(d)]
        names = self.history.recent_paths()
        looked_at = (self.documents.get(uri) for uri in self._looked_at)
        names += [d.path for d in looked_at if d is not None and d.path not in names]
        return Candidates(
            roots=tuple(self.workspace.roots),
            policy=self.workspace.policy,
            open_texts={d.path: d.text for d in readable},
            names=tuple(names),
        )

    def _is_readable(self, document: Document) -> bool:
        return (
            file_path(document.uri) is not None
            and self.verdict(document) is None
            and document.content_reason is None
        )

    def _on_outcome(self, outcome: Outcome) -> None:
        self.status.outcomes[outcome.state.value] += 1
        self.feedback.ended(outcome)
        if outcome.state is State.REJECTED:
            self.mood.rejected()
        elif outcome.state in (State.ACCEPTED, State.TYPED):
            self.mood.accepted()
        logger.info(
            "suggestion %s: %s after %.1f s",
            outcome.suggestion.id,
            outcome.state.value,
            outcome.after_s,
        )


def _as_opened(saved: str, text: str) -> str:
    """A saved text as an editor gives it that strips the byte order mark, or has line ends of its own."""
    saved = saved.removeprefix("\ufeff") if not text.startswith("\ufeff") else saved
    return saved if "\r\n" in text else saved.replace("\r\n", "\n")
