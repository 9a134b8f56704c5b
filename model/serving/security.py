"""Who may ask, and how much he may send.

Responsible for what is looked at before any route: the Host and Origin of a request (DNS rebinding, foreign web pages),
the token, and the size of a body and the time it takes to come. Knows nothing of what is asked.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.serving.errors import ServiceError

OPEN_PATHS = frozenset({"/health"})
LEAST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Guard:
    """What is allowed. Without a `token` only the machine itself may be listening; `hosts` are names of this machine
    besides its addresses, `origins` web pages that may ask."""

    loopback: bool = True
    token: str | None = None
    hosts: Collection[str] = ()
    origins: Collection[str] = ()
    max_body: int = 16 * 2**20
    body_seconds: float = 30.0

    def refusal(self, headers: Headers, path: str) -> ServiceError | None:
        """Why a request is not answered; None when it may be."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return ServiceError(403, "this host name is not served here", "host_not_allowed")
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins and not _same(origin, host):
            return ServiceError(
                403, "requests from this origin are not allowed", "origin_not_allowed"
            )
        if self.token is not None and path not in OPEN_PATHS and not self._has_token(headers):
            return ServiceError(
                401,
                "a valid API key is needed",
                "invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether the Host header names this machine. A name that a stranger's DNS points here does not."""
        try:
            name = urlsplit("//" + host).hostname or ""
        except ValueError:
            return False
        if name == "localhost" or name in self.hosts:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback if self.loopback else not address.is_unspecified

    def _has_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        known = (self.token or "").encode()
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), known)


def _same(origin: str, host: str) -> bool:
    return origin in (f"http://{host}", f"https://{host}")


class Gatekeeper:
    """ASGI middleware: refuses what `Guard` does not allow, and hands the routes a body that is complete."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self.guard.refusal(Headers(scope=scope), scope["path"])
        try:
            if refusal is not None:
                raise refusal
            body = await self._body(Headers(scope=scope), receive)
        except ServiceError as error:
            error.headers.setdefault("Connection", "close")
            await error.response()(scope, receive, send)
            return
        if body is None:
            return
        await self.app(scope, _replayed(body, receive), send)

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body; None when the client left meanwhile."""
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > self.guard.max_body:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.guard.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.guard.max_body:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise ServiceError(408, "the body did not come in time", "body_timeout") from None

    def _too_large(self) -> ServiceError:
        return ServiceError(
            413, f"a body may have {self.guard.max_body} bytes at most", "body_too_large"
        )


def guarded(app: ASGIApp, guard: Guard) -> ASGIApp:
    """The application behind a gatekeeper, with the answers that browsers want for the origins that may ask."""
    behind: ASGIApp = Gatekeeper(app, guard)
    if not guard.origins:
        return behind
    return CORSMiddleware(
        behind,
        allow_origins=list(guard.origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"],
    )


def _replayed(body: bytes, receive: Receive) -> Receive:
    """`receive` that gives the body that was read, and then what comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
