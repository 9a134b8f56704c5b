"""A small HTTP service for tests: answers as told, keeps what it was asked, and notices who hangs up."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """`body` is sent as JSON unless it is bytes. `hang`: nothing is answered, until the client hangs up."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    drop: bool = False


def completion(text: str, finish: str = "stop", tokens: int = 7) -> Reply:
    """As the fill-in-the-middle endpoints answer."""
    choice = {"index": 0, "text": text, "finish_reason": finish}
    usage = {"completion_tokens": tokens}
    return Reply({"id": "cmpl-1", "choices": [choice], "usage": usage})


def edit(content: str, finish: str = "stop") -> Reply:
    """As the edit endpoint answers."""
    message = {"role": "assistant", "content": content}
    return Reply(
        {"id": "cmpl-1", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    )


def refusal(status: int, message: str = "no", headers: Mapping[str, str] | None = None) -> Reply:
    return Reply({"error": {"message": message, "type": "t"}}, status, headers or {})


@dataclass(frozen=True)
class Heard:
    """One request that reached the service."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class FakeService:
    """Listens on a port of its own. `replies` are used up in order, then `default` answers for ever."""

    def __init__(self, default: Reply | Callable[[Heard], Reply] | None = None) -> None:
        self.default = default or Reply({})
        self.replies: list[Reply] = []
        self.heard: list[Heard] = []
        self.hung_up = threading.Event()
        self.connections = self.open = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FakeService:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def encrypt(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )

    def everything(self) -> str:
        """All that came in, as one text."""
        return "\n".join(
            f"{one.path}\n{dict(one.headers)}\n{one.body.decode()}" for one in self.heard
        )

    def wait_for(self, count: int, timeout: float = 10) -> None:
        ends = time.monotonic() + timeout
        while len(self.heard) < count:
            assert time.monotonic() < ends, f"{len(self.heard)} of {count} requests came"
            time.sleep(0.005)

    def reply_to(self, heard: Heard) -> Reply:
        self.heard.append(heard)
        if self.replies:
            return self.replies.pop(0)
        return self.default(heard) if callable(self.default) else self.default

    def wait_for_hang_up(self, connection: socket.socket) -> None:
        while not self._closing.is_set():
            readable, _, _ = select.select([connection], [], [], 0.01)
            try:
                if readable and not self._peek(connection):
                    break
            except ConnectionError:
                break
        else:
            return
        self.hung_up.set()

    def _peek(self, connection: socket.socket) -> bytes:
        """The next byte, empty at the end; on TLS it is taken, for nothing but the end is expected."""
        flags = 0 if isinstance(connection, ssl.SSLSocket) else socket.MSG_PEEK
        return connection.recv(1, flags)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                with service._lock:
                    service.connections += 1
                    service.open += 1

            def finish(self) -> None:
                with service._lock:
                    service.open -= 1
                super().finish()

            def handle(self) -> None:
                with contextlib.suppress(OSError):  # a client that does not like the certificate
                    super().handle()

            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                heard = Heard(self.path, dict(self.headers), self.rfile.read(size))
                reply = service.reply_to(heard)
                if reply.hang:
                    service.wait_for_hang_up(self.connection)
                if reply.hang or reply.drop:
                    self.close_connection = True
                    return
                body = (
                    reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                )
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        return Handler
