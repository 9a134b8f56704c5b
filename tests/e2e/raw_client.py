"""A client that reads frames strictly: anything on stdout that is not one fails the test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
_HEADER = re.compile(rb"Content-Length: (\d+)\r\n(?:Content-Type: [^\r\n]+\r\n)?\r\n\Z")


def write_frame(stream: IO[bytes], message: Mapping[str, Any]) -> None:
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    stream.flush()


def read_frame(stream: IO[bytes]) -> dict[str, Any]:
    """The next message. AssertionError when the bytes are no frame, EOFError at the end."""
    header = b""
    while not header.endswith(b"\r\n\r\n"):
        byte = stream.read(1)
        if not byte:
            raise EOFError(header)
        header += byte
        assert len(header) < 200, f"no frame: {header!r}"
    match = _HEADER.match(header)
    assert match, f"no frame: {header!r}"
    body = stream.read(int(match[1]))
    return json.loads(body)


class RawClient:
    """Starts a server with a scripted predictor and talks to it, one blocking call at a time."""

    def __init__(
        self,
        folder: Path,
        rules: Sequence[Mapping[str, Any]] = (),
        *,
        command: Sequence[str] = ("lsp",),
        script: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        path = folder / "script.json"
        path.write_text(json.dumps({**(script or {}), "rules": list(rules)}))
        env = {**os.environ, "REDRAFT_SCRIPT": str(path), "PYTHONPATH": str(ROOT)}
        self.folder = folder
        self.stderr = (folder / "stderr.txt").open("w+b")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lsp_server", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env={**env, **(environment or {})},
            cwd=folder,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin: IO[bytes] = self.process.stdin
        self.stdout: IO[bytes] = self.process.stdout
        self.notifications: list[dict[str, Any]] = []
        self._next_id = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                continue

    def start(self, **options: Any) -> dict[str, Any]:
        """initialize and initialized; wait until the model is loaded."""
        base = {"debounceMs": 0, "gitHistory": False, "watchFiles": "off"}
        result = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": self.folder.as_uri(),
                "capabilities": {},
                "initializationOptions": {**base, **options},
            },
        )
        self.notify("initialized", {})
        while self.request("redraft/status")["state"] == "loading":
            time.sleep(0.02)
        return result

    def send_request(self, method: str, params: Any = None) -> int:
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        write_frame(self.stdin, message)
        return self._next_id

    def notify(self, method: str, params: Any = None) -> None:
        write_frame(self.stdin, {"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, request_id: int) -> dict[str, Any]:
        """The whole response to one request; notifications on the way are kept."""
        while True:
            message = read_frame(self.stdout)
            if message.get("id") == request_id and "method" not in message:
                return message
            self.notifications.append(message)

    def request(self, method: str, params: Any = None) -> Any:
        response = self.answer(self.send_request(method, params))
        assert "error" not in response, response
        return response["result"]

    def open(self, name: str, text: str) -> str:
        uri = (self.folder / name).as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def change(self, uri: str, version: int, changes: list[dict[str, Any]]) -> None:
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def inline_params(self, uri: str, line: int, character: int, kind: int = 2) -> dict[str, Any]:
        return {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": character},
            "context": {"triggerKind": kind},
        }

    def inline(self, uri: str, line: int, character: int, kind: int = 2) -> Any:
        params = self.inline_params(uri, line, character, kind)
        return self.request("textDocument/inlineCompletion", params)

    def exit_code(self, timeout: float = 5) -> int:
        return self.process.wait(timeout)

    def errors(self) -> str:
        self.stderr.flush()
        return Path(self.stderr.name).read_text(errors="replace")
