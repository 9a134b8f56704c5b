"""Loading the model, with the client told about it.

Responsible for doing it in the worker after `initialized`, for work-done progress where the client
shows it, and for one clear message when it fails. Knows nothing of what a predictor is made of.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from lsp_server.engine import ModelChoice, load_predictor
from lsp_server.mood import Mood
from model.protocol import Predictor

if TYPE_CHECKING:
    from lsp_server.server import RedraftServer

logger = logging.getLogger(__name__)


async def load_model(server: RedraftServer) -> None:
    """Load what the settings choose; the server is usable, and silent, whatever happens."""
    session = server.session
    choice = ModelChoice.of(session.settings)
    _close(session.predictor)
    session.predictor = None
    session.status.change("loading", "loading the model")
    token = await _begin(server)
    try:
        predictor = await asyncio.wrap_future(server.scheduler.submit(load_predictor, choice))
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # a native library may raise anything
        message = f"the model could not be loaded: {error or type(error).__name__}"
        logger.error("%s", message)
        session.status.change("error", message)
        server.tell_user(f"Redraft: {message}", lsp.MessageType.Error)
        _end(server, token, "failed")
        return
    if choice != ModelChoice.of(session.settings):
        _close(predictor)
        return  # another choice is being loaded already
    if choice.remote is not None:
        from lsp_server.remote import notice

        if words := notice(predictor, session.workspace.roots):
            server.tell_user(words, lsp.MessageType.Info)
    session.predictor = predictor
    session.mood = Mood()
    device = str(getattr(predictor, "device", "") or choice.device)
    session.status.change("ready", "", model=predictor.name, device=device)
    _end(server, token, predictor.name)


def _close(predictor: Predictor | None) -> None:
    """Hang up, where a predictor has connections."""
    if callable(close := getattr(predictor, "close", None)):
        close()


async def _begin(server: RedraftServer) -> str | None:
    window = server.client_capabilities.window
    if window is None or not window.work_done_progress:
        return None
    token = uuid.uuid4().hex
    try:
        await asyncio.wait_for(server.work_done_progress.create_async(token), 5)
    except Exception as error:  # a client that says it can and can't must not stop the loading
        logger.warning("the client refused a progress token: %r", error)
        return None
    begin = lsp.WorkDoneProgressBegin(
        title="Redraft", message="loading the model", cancellable=False
    )
    server.work_done_progress.begin(token, begin)
    return token


def _end(server: RedraftServer, token: str | None, message: str) -> None:
    if token is not None:
        server.work_done_progress.end(token, lsp.WorkDoneProgressEnd(message=message))
        server.work_done_progress.tokens.pop(token, None)
