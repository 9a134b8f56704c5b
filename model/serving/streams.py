"""Answers in pieces: server-sent events, and work whose client may leave.

Responsible for the form of a stream and for ending work when nobody reads its answer any more. Knows nothing of what is
in the pieces.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from model.serving.engine import Job
from model.serving.errors import ServiceError, dumps

T = TypeVar("T")

DONE = "data: [DONE]\n\n"


class ClientGone(Exception):
    """Nobody reads the answer."""


def event(content: Any) -> str:
    return f"data: {dumps(content)}\n\n"


def event_stream(
    events: AsyncIterator[str], headers: Mapping[str, str] | None = None
) -> StreamingResponse:
    more = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **(headers or {})}
    return StreamingResponse(events, media_type="text/event-stream", headers=more)


async def break_off(head: Message | None, error: ServiceError, scope: Scope, send: Send) -> None:
    """End an answer that will not be finished: with the error as long as nothing was sent, in a stream as its last
    event. `head` is what was sent to begin with."""
    if head is None:
        await error.response()(scope, _nothing, send)
        return
    said = b""
    if Headers(raw=head["headers"]).get("content-type", "").startswith("text/event-stream"):
        fault = {"message": str(error), "type": "server_error", "code": error.code}
        said = (event({"error": fault}) + DONE).encode()
    await send({"type": "http.response.body", "body": said, "more_body": False})


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def gone(receive: Receive) -> None:
    """Return when the client has closed its connection; the body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


@contextlib.asynccontextmanager
async def watched(request: Request, job: Job[T]) -> AsyncIterator[Job[T]]:
    """The job, abandoned as soon as the client leaves or the block is left before the job is done."""

    async def watch() -> None:
        await gone(request.receive)
        job.abandon()

    watcher = asyncio.create_task(watch())
    try:
        yield job
    finally:
        watcher.cancel()
        if not job.future.done():
            job.abandon()


def in_lines(text: str) -> list[str]:
    """The pieces of a text that is known already: its lines."""
    return text.splitlines(keepends=True) or [""]
