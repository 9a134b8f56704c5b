"""The language server: which message is handled by what.

Responsible for wiring handlers to the session, the pipeline and the book of suggestions. Handlers
only delegate; knows nothing of transport, positions or predictions.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, cast

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from diffing.positions import Encoding
from lsp_server import __version__, engine, next_edit, outcomes, status, wire
from lsp_server.engine import ModelChoice
from lsp_server.inline_completion import inline_completion
from lsp_server.pipeline import Pipeline
from lsp_server.progress import load_model
from lsp_server.protocol import RedraftProtocol, make_converter
from lsp_server.scheduler import Scheduler, aside
from lsp_server.session import Session
from lsp_server.settings import SECTION, problems_message
from lsp_server.watching import Watching

logger = logging.getLogger(__name__)


class RedraftServer(LanguageServer):
    """One server, one client, one session."""

    def __init__(self, name: str = "redraft") -> None:
        super().__init__(
            name, __version__, protocol_cls=RedraftProtocol, converter_factory=make_converter
        )
        self.session = Session(self.protocol.notify)
        self.scheduler = Scheduler()
        self.pipeline = Pipeline(self.session, self.scheduler, self.tell_user)
        self.watching = Watching(self)
        self.option_problems: list[str] = []
        self.exit_code = 0
        self.left = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        _register(self)

    def tell_user(self, message: str, kind: lsp.MessageType = lsp.MessageType.Warning) -> None:
        self.window_show_message(lsp.ShowMessageParams(type=kind, message=message))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log, and answer what was not JSON.

        pygls would send a message to the user, which fails again when the client is gone.
        """
        logger.error("%s: %s", getattr(source, "__name__", source), error)
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            cast(RedraftProtocol, self.protocol).unreadable()

    def leave(self, code: int = 0) -> None:
        """End the session; the first call decides the exit code."""
        if not self.left.is_set():
            self.exit_code = code
            self.left.set()

    def background(self, work: Any) -> None:
        """Run a coroutine that nobody waits for; failures are logged."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background work failed: %r", error)

    async def close(self) -> None:
        """Withdraw everything; returns soon even when the worker does not notice."""
        protocol = cast(RedraftProtocol, self.protocol)
        for task in [*self._tasks, *protocol.requests_in_flight()]:
            task.cancel()
        self.watching.stop()
        self.session.feedback.close()
        await self.scheduler.close()


def create_server(name: str = "redraft") -> RedraftServer:
    return RedraftServer(name)


def _register(server: RedraftServer) -> None:
    _register_lifecycle(server)
    _register_documents(server)
    _register_predictions(server)
    _register_outcomes(server)


def _register_lifecycle(server: RedraftServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(ls: RedraftServer, params: lsp.InitializeParams) -> None:
        ls.session.documents.encoding = _encoding(ls.workspace.position_encoding or "utf-16")
        ls.option_problems = ls.session.initialize(params)

    @server.feature(lsp.INITIALIZED)
    def initialized(ls: RedraftServer, params: lsp.InitializedParams) -> None:
        ls.background(_begin(ls))

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(
        ls: RedraftServer, params: lsp.DidChangeConfigurationParams
    ) -> None:
        if params.settings is None and _can_pull(ls):
            ls.background(_pull_settings(ls))
        else:
            _configure(ls, params.settings)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(ls: RedraftServer, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        ls.session.workspace.change_folders(params.event)
        ls.session.policy_changed()
        ls.background(ls.watching.start())

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(
        ls: RedraftServer, params: lsp.DidChangeWatchedFilesParams
    ) -> None:
        ls.watching.events(params.changes)


def _register_documents(server: RedraftServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(ls: RedraftServer, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.session.opened(params.text_document)
        ls.watching.remember(params.text_document.uri, params.text_document.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(ls: RedraftServer, params: lsp.DidChangeTextDocumentParams) -> None:
        ls.session.changed(params)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def did_save(ls: RedraftServer, params: lsp.DidSaveTextDocumentParams) -> None:
        if (document := ls.session.documents.get(params.text_document.uri)) is not None:
            ls.watching.remember(document.uri, document.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(ls: RedraftServer, params: lsp.DidCloseTextDocumentParams) -> None:
        ls.scheduler.supersede(params.text_document.uri)
        ls.session.closed(params.text_document.uri)

    @server.feature(outcomes.DID_FOCUS)
    def did_focus(ls: RedraftServer, params: Any) -> None:
        uri = ((params or {}).get("textDocument") or {}).get("uri")
        if isinstance(uri, str):
            ls.session.focused(uri)

    @server.feature(outcomes.DID_MOVE_CURSOR)
    def did_move_cursor(ls: RedraftServer, params: Any) -> None:
        ls.pipeline.ahead.moved(*wire.parse_place(params))


def _register_predictions(server: RedraftServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, lsp.InlineCompletionOptions())
    async def on_inline_completion(ls: RedraftServer, params: Any) -> lsp.InlineCompletionList:
        return await inline_completion(ls.pipeline, params)

    @server.feature(next_edit.METHOD)
    async def on_next_edit(ls: RedraftServer, params: Any) -> dict[str, Any]:
        return await next_edit.next_edit(ls.pipeline, params)

    @server.feature(next_edit.ALIAS)
    async def on_inline_edit(ls: RedraftServer, params: Any) -> dict[str, Any]:
        return await next_edit.next_edit(ls.pipeline, params)

    @server.feature(status.REQUEST)
    def on_status(ls: RedraftServer, params: Any) -> dict[str, Any]:
        return ls.session.status.report(
            pending=ls.scheduler.pending,
            superseded=ls.scheduler.superseded,
            feedback=ls.session.feedback.state,
            backend=_backend(ls.session),
        )


def _register_outcomes(server: RedraftServer) -> None:
    book = server.session.suggestions

    @server.feature(outcomes.DID_SHOW_COMPLETION)
    def did_show_completion(ls: RedraftServer, params: Any) -> None:
        book.shown(wire.suggestion_id(params))

    @server.feature(outcomes.DID_SHOW_INLINE_EDIT)
    def did_show_inline_edit(ls: RedraftServer, params: Any) -> None:
        book.shown(wire.suggestion_id(params))

    @server.feature(outcomes.DID_PARTIALLY_ACCEPT)
    def did_partially_accept(ls: RedraftServer, params: Any) -> None:
        book.accept_partly(wire.suggestion_id(params), wire.accepted_length(params))

    for name, command in outcomes.commands(book).items():
        server.command(name)(command)


async def _begin(server: RedraftServer) -> None:
    """After `initialized`: settings the client keeps, complaints, model, git and watching."""
    if _can_pull(server):
        await _pull_settings(server)
    elif server.option_problems:
        server.tell_user(problems_message(server.option_problems))
    if server.session.settings.enable:
        server.background(load_model(server))
    else:
        server.session.status.change("disabled", "switched off by the setting `enable`")
    server.background(_read_git(server))
    await server.watching.start()


def _can_pull(server: RedraftServer) -> bool:
    workspace = server.client_capabilities.workspace
    return bool(workspace and workspace.configuration)


async def _pull_settings(server: RedraftServer) -> None:
    params = lsp.ConfigurationParams(items=[lsp.ConfigurationItem(section=SECTION)])
    raw: Any = None
    try:
        answer = await asyncio.wait_for(server.workspace_configuration_async(params), 5)
        raw = answer[0] if answer else None
    except Exception as error:  # a client without an answer is one without settings
        logger.warning("no settings from the client: %r", error)
    _configure(server, raw)


def _configure(server: RedraftServer, raw: object) -> None:
    """Take over settings; load another model or switch off or on where they say so."""
    before = server.session.settings
    problems = server.option_problems + server.session.configure(raw)
    server.option_problems = []
    if problems:
        server.tell_user(problems_message(problems))
    after = server.session.settings
    state = server.session.status.state
    if not after.enable:
        server.session.status.change("disabled", "switched off by the setting `enable`")
    elif ModelChoice.of(before) != ModelChoice.of(after) or state == "disabled":
        server.background(load_model(server))
    if (before.watch_files, before.enable) != (after.watch_files, after.enable):
        server.background(server.watching.start())


async def _read_git(server: RedraftServer) -> None:
    """Uncommitted changes of the workspace, as history for the time before the session."""
    session = server.session
    if not session.settings.git_history or not session.settings.enable:
        return
    from diffing.git_changes import uncommitted_changes

    diffs: list[tuple[str, str]] = []
    for root in session.workspace.roots[:4]:
        diffs += await aside(uncommitted_changes, root, session.workspace.policy)
    session.set_git_diffs(diffs)


def _backend(session: Session) -> dict[str, Any]:
    """Who answers, or who would and why he does not."""
    if session.predictor is not None:
        return engine.describe_backend(session.predictor)
    choice, status = ModelChoice.of(session.settings), session.status
    return engine.chosen_backend(choice, status.state, status.message)


def _encoding(chosen: lsp.PositionEncodingKind | str) -> Encoding:
    return cast(Encoding, str(getattr(chosen, "value", chosen)))
