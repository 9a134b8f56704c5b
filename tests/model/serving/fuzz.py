"""Requests at random, for `test_fuzz.py` and by hand: `PYTHONPATH=. python tests/model/serving/fuzz.py 100000`.

Half are right requests with something in them changed, half bytes that need not be HTTP at all. Requests that follow
the service's own description are schemathesis's part.
"""

from __future__ import annotations

import json
import random
import re
import socket
import sys
import time
from collections import Counter
from typing import Any

import psutil
from edit_prompt_shapes import SHAPES, Situation
from served import Served

from model.scripted import ScriptedPredictor
from model.serving.security import Guard
from model.serving.service import Options, Service

DECLARED = {*range(200, 300), 400, 401, 403, 404, 405, 408, 413, 415, 429, 431, 503}
RULES: list[dict[str, Any]] = [
    {"mode": "fim", "insert": "a + b\nreturn c\n\nmore"},
    {"mode": "next_edit", "when": {"text": "count"}, "replace": {"old": "count", "new": "total"}},
]
SITUATION = Situation("a.py", ("total = 1", "print(count)", "", "x = 2"), 0, 1, 1, 6)
PROMPTS = [shape(SITUATION) for shape in SHAPES.values()]
PATHS = (
    *("/v1/fim/completions", "/v1/edit/completions", "/v1/completions", "/v1/chat/completions"),
    *("/feedback", "/v1/models", "/health", "/metrics", "/openapi.json", "/v1/models/x"),
)
ODD: list[Any] = [
    *(None, True, -1, 0, 1, 2**63, 1e308, -0.5, "", "x", "\ud800", "\0", "🙂", "\r\n", "NaN", "1"),
    *(
        [],
        {},
        [[]],
        [None],
        {"type": "text"},
        [{"type": "text", "text": "x"}],
        "x" * 5000,
        "<|cursor|>",
    ),
    *(["\n"], [""], {"include_usage": True}, {"role": "user"}, "```", "======="),
]


def right_request(rng: random.Random) -> tuple[str, Any]:
    """A path and a body that is right for it."""
    path = rng.choice(PATHS[:5])
    body: dict[str, Any] = {"model": rng.choice(("redraft", "mercury-edit-2", "scripted"))}
    if path.endswith(("edit/completions", "chat/completions")):
        body["messages"] = [{"role": "user", "content": rng.choice(PROMPTS)}]
    elif path == "/feedback":
        body |= {"request_id": "cmpl-1", "user_action": "accept"}
    else:
        body |= {"prompt": "x = ", "suffix": "\n"}
    if rng.random() < 0.3:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if rng.random() < 0.3:
        body |= {"max_tokens": rng.choice((1, 5, 9999)), "stop": ["\n"]}
    return path, body


def changed(rng: random.Random, value: Any, depth: int = 0) -> Any:
    """A JSON value with something in it replaced, left out, added or doubled."""
    if depth < 4 and isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        new = dict(value)
        if rng.random() < 0.15:
            del new[key]
        else:
            new[key] = changed(rng, value[key], depth + 1)
        return new
    if depth < 4 and isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], changed(rng, value[at], depth + 1), *value[at : at + rng.randrange(3)]]
    if isinstance(value, str) and len(value) > 3 and rng.random() < 0.7:
        a, b = sorted(rng.choices(range(len(value)), k=2))
        return value[:a] + rng.choice(("", value[a:b] * 2, str(rng.choice(ODD)))) + value[b:]
    return rng.choice(ODD)


def http(path: str, body: bytes, method: str = "POST") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def raw_request(rng: random.Random) -> bytes:
    """Bytes: a right request with bytes of it changed, cut or repeated, or nothing like one."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(1, 200))
    path, body = right_request(rng)
    path = rng.choice(
        (path, path, rng.choice(PATHS), "/" + rng.randbytes(5).hex(), path + "/%ff?a=%00")
    )
    method = rng.choice(("POST", "POST", "POST", "GET", "PUT", "OPTIONS", "DELETE", "X"))
    data = bytearray(http(path, json.dumps(body).encode(), method))
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data))
        what = rng.randrange(3)
        if what == 0:
            data[at] = rng.randrange(256)
        elif what == 1:
            del data[at : at + rng.randrange(1, 9)]
        else:
            data[at:at] = data[at : at + rng.randrange(1, 40)]
    return bytes(data)


def send(port: int, data: bytes, seconds: float = 10.0) -> bytes:
    """The first answer that comes back, or nothing. TimeoutError when it takes longer."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        answer = b""
        try:
            connection.sendall(data)
            if b"\r\n\r\n" not in data:  # or the server waits for the rest of the head
                connection.shutdown(socket.SHUT_WR)
            while not complete(answer) and (part := connection.recv(65536)):
                answer += part
        except (ConnectionResetError, BrokenPipeError):
            pass
        return answer


def complete(answer: bytes) -> bool:
    """Whether a whole answer is there, so that nobody need wait for the connection to be closed."""
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    if length := re.search(rb"(?i)content-length: (\d+)", head):
        return len(body) >= int(length[1])
    return body.endswith(b"0\r\n\r\n")


def fuzz(port: int, requests: int, seed: int, told: int = 0) -> Counter[int]:
    """Send them one by one; how often which status came back (0: no answer). AssertionError on what is not declared."""
    rng = random.Random(seed)
    seen: Counter[int] = Counter()
    process = psutil.Process()
    for number in range(requests):
        if number % 2:
            data = raw_request(rng)
        else:
            path, body = right_request(rng)
            data = http(path, json.dumps(changed(rng, body)).encode())
        answer = send(port, data)
        status = int(answer[9:12]) if answer[:7] == b"HTTP/1." else 0
        seen[status] += 1
        assert not answer or status in DECLARED, (status, data, answer)
        if told and number % told == 0:
            rss = process.memory_info().rss / 2**20
            print(f"{number:8} {time.strftime('%H:%M:%S')} {rss:7.1f} MiB {dict(seen)}", flush=True)
    return seen


if __name__ == "__main__":
    import logging

    logging.disable(logging.WARNING)
    count = int(sys.argv[1])
    service = Served(Service(ScriptedPredictor(RULES), Options(Guard(body_seconds=0.05))))
    print(
        dict(
            fuzz(
                service.port, count, seed=int((sys.argv[2:] or ["1"])[0]), told=max(1, count // 10)
            )
        )
    )
    print("pending", service.service.engine.pending)
    service.stop()
