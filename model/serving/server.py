"""The web server: uvicorn, with what its defaults leave out.

Responsible for its settings, for closing connections on which no request comes, and for what clients get whose
requests run when it stops. Knows nothing of what is served.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from model.serving.errors import ServiceError
from model.serving.streams import break_off

HEAD_S = 15.0
"""Seconds for the head of a request, from the opening of a connection or from its first byte on."""

MAX_HEAD = 64 * 1024
SHUTDOWN_S = 5
"""Seconds that requests have to end when the server stops; then they are broken off."""


def server_of(app: ASGIApp, **more: Any) -> uvicorn.Server:
    """A server that is not running yet."""
    config = uvicorn.Config(
        Stoppable(app),
        http=PatientProtocol,
        ws="none",
        loop="asyncio",
        log_level="error",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEAD,
        timeout_graceful_shutdown=SHUTDOWN_S,
        **more,
    )
    return uvicorn.Server(config)


class Stoppable:
    """ASGI middleware: a request that is cancelled because the server stops still has an answer, or its stream an end
    that says so."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head: Message | None = None

        async def noting(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            stopping = ServiceError(
                503,
                "the service is stopping",
                "shutting_down",
                headers={"Retry-After": "5", "Connection": "close"},
            )
            await break_off(head, stopping, scope, send)


class PatientProtocol(H11Protocol):
    """HTTP/1.1 whose patience with a head that does not come is limited."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _give_up(self) -> None:
        self._head = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()
