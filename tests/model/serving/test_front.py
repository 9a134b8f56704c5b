"""The door to several replicas, with replicas that are told what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from starlette.types import Message

from model.serving import front
from model.serving.front import Asked, Front, NoRoom, ReplicaLost, summed
from model.serving.sessions import session_key

JSON_HEAD = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json")],
}
STREAM_HEAD = JSON_HEAD | {"headers": [(b"content-type", b"text/event-stream; charset=utf-8")]}


def piece(text: str, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}


class Replicas:
    """Answers one try after the other as told; an exception ends a try, `...` waits forever."""

    def __init__(self, *tries: Iterable[Any], everywhere: Any = ()) -> None:
        self.tries, self.everywhere = list(tries), list(everywhere)
        self.asked: list[Asked] = []
        self.cancelled = False

    async def ask(self, asked: Asked) -> AsyncIterator[Message]:
        self.asked.append(asked)
        for step in self.tries.pop(0):
            if isinstance(step, Exception):
                raise step
            if step is ...:
                try:
                    await asyncio.Event().wait()
                finally:
                    self.cancelled = True
            yield step

    async def ask_all(self, asked: Asked) -> list[tuple[int, bytes]]:
        return self.everywhere


async def answer(
    replicas: Replicas,
    path: str = "/v1/completions",
    *,
    timeout: float = 30.0,
    leaves: bool = False,
) -> tuple[int, str]:
    """Status and body of one request; `leaves`: its client goes soon. Status 0 when nothing was sent."""
    sent: list[Message] = []
    given = False

    async def receive() -> Message:
        nonlocal given
        if given and not leaves:
            await asyncio.Event().wait()
        await asyncio.sleep(0.02 if given else 0)
        kind, given = "http.disconnect" if given else "http.request", True
        return {"type": kind, "body": b'{"prompt": "x = "}', "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "state": object()}
    await Front(replicas, timeout)(scope, receive, send)
    status = sent[0]["status"] if sent else 0
    assert [message["type"] for message in sent[1:]] == ["http.response.body"] * len(sent[1:])
    return status, b"".join(message["body"] for message in sent[1:]).decode()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "PAUSE_S", 0)
    monkeypatch.setattr(front, "GRACE_S", 0)


async def test_a_lost_request_is_asked_again_and_answered_once() -> None:
    replicas = Replicas([ReplicaLost()], [JSON_HEAD, ReplicaLost()], [JSON_HEAD, piece("yes")])
    assert await answer(replicas) == (200, "yes")
    assert len(replicas.asked) == 3
    assert {one.body for one in replicas.asked} == {b'{"prompt": "x = "}'}
    assert "state" not in replicas.asked[0].scope


async def test_after_its_first_piece_a_stream_says_that_it_broke() -> None:
    replicas = Replicas([STREAM_HEAD, piece("data: a\n\n", True), ReplicaLost()])
    status, body = await answer(replicas)
    assert status == 200
    first, error, done, rest = body.split("\n\n")
    assert (first, done, rest) == ("data: a", "data: [DONE]", "")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "replica_lost"


@pytest.mark.parametrize(
    ("tries", "status", "code"),
    [
        ([[NoRoom()]], 429, "rate_limit_reached"),
        ([[ReplicaLost()], [NoRoom()]], 429, "rate_limit_reached"),
        ([[ReplicaLost()]] * front.ATTEMPTS, 503, None),
        ([[...]], 503, "timeout"),
        ([[JSON_HEAD, ...]], 503, "timeout"),
    ],
)
async def test_without_an_answer_the_client_gets_an_error(
    tries: list[Any], status: int, code: str | None
) -> None:
    replicas = Replicas(*tries)
    got, body = await answer(replicas, timeout=0.05)
    assert (got, json.loads(body)["error"]["code"]) == (status, code)
    assert replicas.tries == []


async def test_a_client_that_leaves_ends_the_work() -> None:
    replicas = Replicas([...])
    assert await asyncio.wait_for(answer(replicas, leaves=True), 5) == (0, "")
    assert replicas.cancelled


async def test_feedback_is_heard_by_the_replica_that_knows_the_answer() -> None:
    heard = Replicas(everywhere=[(404, b"no"), (200, b"ok")])
    assert await answer(heard, "/feedback") == (200, "ok")
    assert await answer(Replicas(everywhere=[(404, b"no")] * 2), "/feedback") == (404, "no")
    status, _ = await answer(Replicas(everywhere=[]), "/feedback")
    assert status == 503


async def test_metrics_are_the_sum_over_the_replicas() -> None:
    first = b'# TYPE a counter\na_total{path="/x y"} 2.0\na_created{path="/x y"} 1.7e+09\n'
    second = b'# TYPE a counter\na_total{path="/x y"} 3.0\na_total{path="/z"} 1.0\n'
    page = '# TYPE a counter\na_total{path="/x y"} 5.0\na_total{path="/z"} 1.0\n'
    assert summed([first, second]).decode() == page
    replicas = Replicas(everywhere=[(200, first), (500, b"bad"), (200, second)])
    assert await answer(replicas, "/metrics") == (200, page)


def key(content: Any, **headers: str) -> str:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return session_key({name.replace("_", "-"): value for name, value in headers.items()}, body)


def edit(path: str, text: str) -> dict[str, Any]:
    asked = f"<|current_file_content|>\ncurrent_file_path: {path}\n{text}"
    return {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": asked}]}


def test_requests_of_one_session_have_one_key() -> None:
    named = key({"user": "me", "prompt": "a"})
    assert named == key({"user": "me", "prompt": "b"}) != key({"user": "you", "prompt": "a"})
    assert key({"prompt": "a"}, x_session_id="me") == key({"user": "other"}, x_session_id="me")
    assert key(edit("a.py", "x")) == key(edit("a.py", "y")) != key(edit("b.py", "x"))
    assert (
        key({"prompt": "a" * 300 + "b"}) == key({"prompt": "a" * 300 + "c"}) != key({"prompt": "a"})
    )
    chat = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    longer = [*chat, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "more"}]
    assert key({"messages": chat}) == key({"messages": longer}) != ""
    assert "secret" not in key({"prompt": "secret"})


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[" * 100_000, [], {}, {"prompt": 1, "user": 2}, {"messages": [1, {"role": "user"}]},
     {"messages": [{"role": "user", "content": [{"text": 3}, 4]}]}],
)  # fmt: skip
def test_what_has_no_session_has_no_key(content: Any) -> None:
    assert key(content) == ""


def test_half_a_character_has_a_key() -> None:
    assert key({"prompt": "\ud800"})
