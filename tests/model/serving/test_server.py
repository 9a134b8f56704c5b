"""What a client gets whose request runs when the server stops."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.types import Message, Receive, Scope, Send

from model.serving.server import Stoppable


@pytest.mark.parametrize("kind", [b"text/event-stream", b"application/json"])
async def test_an_answer_that_has_begun_is_ended(kind: bytes) -> None:
    begun = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        begun.set()
        await asyncio.Event().wait()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError

    running = asyncio.create_task(Stoppable(app)({"type": "http"}, receive, send))
    await begun.wait()
    running.cancel()
    await running
    last = sent[-1]
    assert last["more_body"] is False
    if kind == b"application/json":
        assert last["body"] == b""
        return
    error, done, rest = last["body"].decode().split("\n\n")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "shutting_down"
    assert (done, rest) == ("data: [DONE]", "")
