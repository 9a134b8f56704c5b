"""A server process and one blocking call at a time.

Responsible for starting the server, for frames on its pipes and for the moment at which each answer came. Knows nothing
of what is asked.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ANSWER_S = 120.0


class ServerGone(Exception):
    """The server has ended, or does not answer."""


class ProcessClient:
    """To be closed. `begun` is when the process was started, on the clock of `time.perf_counter`."""

    def __init__(
        self,
        arguments: Sequence[str] = ("lsp",),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._next_id = 0
        self._arrived: queue.SimpleQueue[tuple[dict[str, Any] | None, float]] = queue.SimpleQueue()
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lsp_server", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin: IO[bytes] = self.process.stdin
        reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        reader.start()

    def close(self) -> None:
        """End the server, by force if it does not end by itself."""
        try:
            self.request("shutdown", seconds=5)
            self.notify("exit")
            self.process.wait(5)
        except (ServerGone, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()

    def initialize(self, folder: Path, settings: Mapping[str, Any]) -> float:
        """Begin a session; the moment at which `initialize` was answered."""
        _, answered = self.timed(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folder.as_uri(),
                "capabilities": {},
                "initializationOptions": dict(settings),
            },
        )
        self.notify("initialized", {})
        return answered

    def notify(self, method: str, params: Any = None) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any = None, *, seconds: float = ANSWER_S) -> Any:
        """The result of a request. Raises `ServerGone` when there is none in time, or an error."""
        return self.timed(method, params, seconds=seconds)[0]

    def timed(
        self, method: str, params: Any = None, *, seconds: float = ANSWER_S
    ) -> tuple[Any, float]:
        """The result of a request and the moment at which it had come."""
        self._next_id += 1
        wanted = self._next_id
        self._write({"jsonrpc": "2.0", "id": wanted, "method": method, "params": params})
        while True:
            message, arrived = self._next(seconds)
            if message.get("id") == wanted and "method" not in message:
                if "error" in message:
                    raise ServerGone(f"{method}: {message['error'].get('message')}")
                return message.get("result"), arrived
            self._other(message)

    def wait_for(self, method: str, seconds: float = ANSWER_S) -> dict[str, Any]:
        """The next notification of that kind; its parameters."""
        while True:
            message, _ = self._next(seconds)
            self._other(message)
            if message.get("method") == method:
                params: dict[str, Any] = message["params"]
                return params

    def _other(self, message: dict[str, Any]) -> None:
        """Answer what the server asks with nothing; drop a notification."""
        if "id" in message and "method" in message:
            self._write({"jsonrpc": "2.0", "id": message["id"], "result": None})

    def _next(self, seconds: float) -> tuple[dict[str, Any], float]:
        try:
            message, arrived = self._arrived.get(timeout=seconds)
        except queue.Empty:
            raise ServerGone(f"the server did not answer within {seconds:.0f} s") from None
        if message is None:
            raise ServerGone("the server has ended")
        return message, arrived

    def _write(self, message: Mapping[str, Any]) -> None:
        body = json.dumps(message).encode()
        try:
            self._stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self._stdin.flush()
        except OSError as error:
            raise ServerGone("the server has ended") from error

    def _read(self, stream: IO[bytes]) -> None:
        try:
            while (length := _length(stream)) is not None:
                body = stream.read(length)
                self._arrived.put((json.loads(body), time.perf_counter()))
        except ValueError:
            pass
        self._arrived.put((None, time.perf_counter()))


def _length(stream: IO[bytes]) -> int | None:
    """The length that a frame's header tells; None at the end of the stream."""
    length = None
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return length
