"""A predictor behind a service on a free port, in a thread of the test's process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from model.serving.app import create_app
from model.serving.server import server_of
from model.serving.service import Service

RULES: list[dict[str, Any]] = [
    {"mode": "fim", "when": {"regex": "slow $"}, "delay_ms": 20_000, "insert": "late"},
    {"mode": "fim", "when": {"regex": "fail $"}, "raise": "the text `secret` was bad"},
    {"mode": "fim", "when": {"regex": "nothing $"}},
    {"mode": "fim", "insert": "a + b\nreturn c\n\nmore = 1\n"},
    {"mode": "next_edit", "when": {"text": "count"}, "replace": {"old": "count", "new": "total"}},
]


class Served:
    """A running service: `url`, the `service` itself, and a `client` for it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._server = server_of(create_app(service), port=0)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until = time.monotonic() + 20
        while not self._server.started and time.monotonic() < until:
            time.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=30)

    def fim(self, prompt: str = "x = ", **more: Any) -> httpx.Response:
        body = {"model": "mercury-edit-2", "prompt": prompt, **more}
        return self.client.post("/v1/fim/completions", json=body)

    def edit(self, prompt: str, **more: Any) -> httpx.Response:
        messages = [{"role": "user", "content": prompt}]
        body = {"model": "mercury-edit-2", "messages": messages, **more}
        return self.client.post("/v1/edit/completions", json=body)

    def stop(self) -> None:
        self.client.close()
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()


Serve = Callable[..., Served]
