"""One door for several replicas of the service.

Responsible for handing a request to the replicas, for asking again when one is lost before its answer began, and for
what a client gets when there is none left. Knows nothing of what is asked and of how replicas are reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from model.serving.engine import GRACE_S
from model.serving.errors import ServiceError
from model.serving.metrics import CONTENT_TYPE
from model.serving.sessions import session_key
from model.serving.streams import break_off, gone

logger = logging.getLogger(__name__)

ATTEMPTS = 4
PAUSE_S = 0.1
_CARRIED = ("type", "http_version", "method", "scheme", "path", "raw_path", "query_string")
_SAMPLE = re.compile(r"(\S+(?:\{[^}]*\})?) (\S+)")


class ReplicaLost(Exception):
    """The replica ended before its answer did."""


class NoRoom(Exception):
    """All replicas have as much to do as they may have."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be sent anywhere, and more than once: `scope` is ASGI's, with plain values only."""

    scope: dict[str, Any]
    body: bytes

    @property
    def key(self) -> str:
        return session_key(Headers(raw=self.scope["headers"]), self.body)


class Replicas(Protocol):
    """How replicas are reached."""

    def ask(self, asked: Asked) -> AsyncIterator[Message]:
        """One replica's answer as ASGI messages. Raises `ReplicaLost` and `NoRoom`."""
        ...

    async def ask_all(self, asked: Asked) -> list[tuple[int, bytes]]:
        """Status and body from every replica that answers."""
        ...


class Front:
    """The ASGI application in front of the replicas; `timeout` is what a request may take, in seconds."""

    def __init__(self, replicas: Replicas, timeout: float) -> None:
        self.replicas, self.timeout = replicas, timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            carried = {name: scope[name] for name in _CARRIED if name in scope}
            carried["headers"] = [tuple(pair) for pair in scope["headers"]]
            asked = Asked(carried, (await receive()).get("body", b""))
            answering = asyncio.create_task(self._answer(asked, scope, receive, send))
            leaving = asyncio.create_task(gone(receive))
            try:
                await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                leaving.cancel()
                if not answering.done():
                    answering.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await answering

    async def _answer(self, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["path"] == "/feedback":
                response = await self._feedback(asked)
            elif scope["path"] == "/metrics":
                response = await self._metrics(asked)
            else:
                await self._relay(asked, send)
                return
        except ServiceError as error:
            response = error.response()
        await response(scope, receive, send)

    async def _relay(self, asked: Asked, send: Send) -> None:
        """Pass an answer on. Its head waits for the first piece: until that is here another replica can be asked.

        An answer that lives until its time is over may go on, for its stream is its client's to leave."""
        sent = None
        try:
            async with asyncio.timeout(self.timeout + 2 * GRACE_S) as patience:
                for attempt in range(ATTEMPTS):
                    try:
                        head: Message | None = None
                        async for message in self.replicas.ask(asked):
                            if message["type"] == "http.response.start":
                                head = message
                                continue
                            if head is not None:
                                patience.reschedule(None)
                                sent, head = head, None
                                await send(sent)
                            await send(message)
                        return
                    except ReplicaLost:
                        if sent is not None:
                            lost = ServiceError(503, "the replica ended", "replica_lost")
                            await break_off(sent, lost, asked.scope, send)
                            return
                        logger.warning("a replica was lost; its request goes to another")
                        await asyncio.sleep(PAUSE_S * attempt)
        except TimeoutError:
            raise ServiceError(
                503, "no replica answered in time", "timeout", headers={"Retry-After": "1"}
            ) from None
        except NoRoom:
            raise ServiceError(
                429,
                "all replicas have as many requests as they may have",
                "rate_limit_reached",
                headers={"Retry-After": "1"},
            ) from None
        raise ServiceError(
            503, "the replicas ended before they answered", headers={"Retry-After": "1"}
        )

    async def _feedback(self, asked: Asked) -> Response:
        """Only the replica that made an answer knows its id, so all of them hear what became of it."""
        answers = await self._everywhere(asked)
        status, body = min(answers)
        return Response(body, status, media_type="application/json")

    async def _metrics(self, asked: Asked) -> Response:
        pages = [body for status, body in await self._everywhere(asked) if status == 200]
        return Response(summed(pages), media_type=CONTENT_TYPE)

    async def _everywhere(self, asked: Asked) -> list[tuple[int, bytes]]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.timeout):
                if answers := await self.replicas.ask_all(asked):
                    return answers
        raise ServiceError(503, "no replica answered", headers={"Retry-After": "1"})


def summed(pages: Sequence[bytes]) -> bytes:
    """One page of metrics from those of the replicas: every sample is their sum."""
    lines: list[str] = []
    sums: defaultdict[str, float] = defaultdict(float)
    for page in pages:
        for line in page.decode().splitlines():
            sample = _SAMPLE.fullmatch(line)
            name = sample[1] if sample else line
            if sample and "_created" not in name:
                sums[name] += float(sample[2])
            if name not in lines and "_created" not in name:
                lines.append(name)
    shown = [f"{name} {_number(sums[name])}" if name in sums else name for name in lines]
    return "".join(f"{line}\n" for line in shown).encode()


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else str(value)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
