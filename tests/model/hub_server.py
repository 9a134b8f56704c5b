"""A server of this machine that imitates the hub's file endpoints, and its faults."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Faults:
    """What goes wrong: bytes after which a file breaks off (once for each number), a wrong checksum, and so on."""

    break_after: list[int] = field(default_factory=list)
    wrong_checksum: str = ""
    ignore_range: bool = False
    status: int = 0
    statuses: list[int] = field(default_factory=list)
    extra: list[dict[str, Any]] = field(default_factory=list)
    redirect: str = ""


class HubServer:
    """Serves one folder as a repository `owner/name`; `asked` are the requests it got."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.faults = folder, name, Faults()
        self.asked: list[tuple[str, str | None, str | None]] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                headers = (self.headers.get("Range"), self.headers.get("Authorization"))
                hub.asked.append((self.path, *headers))
                hub.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def description(self) -> dict[str, Any]:
        files = []
        for path in sorted(self.folder.iterdir()):
            data = path.read_bytes()
            row: dict[str, Any] = {"rfilename": path.name, "size": len(data)}
            wrong = path.name == self.faults.wrong_checksum
            row["blobId"] = hashlib.sha1(b"blob %d\0" % len(data) + data + b"x" * wrong).hexdigest()
            if path.suffix == ".safetensors":
                digest = hashlib.sha256(data + b"x" * wrong).hexdigest()
                row["lfs"] = {"size": len(data), "sha256": digest, "pointerSize": 130}
            files.append(row)
        card = {"license": "apache-2.0"}
        return {
            "id": self.name,
            "sha": COMMIT,
            "cardData": card,
            "siblings": files + self.faults.extra,
        }

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = urlsplit(request.path).path
        status = self.faults.statuses.pop(0) if self.faults.statuses else self.faults.status
        if status:
            request.send_error(status)
        elif path == f"/api/models/{self.name}/revision/main":
            self.send(request, json.dumps(self.description()).encode())
        elif path.startswith(f"/{self.name}/resolve/{COMMIT}/"):
            name = path.rpartition("/")[2]
            request.send_response(302)
            request.send_header("Location", (self.faults.redirect or self.url) + f"/cdn/{name}")
            request.end_headers()
        elif path.startswith("/cdn/") and (self.folder / path.removeprefix("/cdn/")).is_file():
            self.send(request, (self.folder / path.removeprefix("/cdn/")).read_bytes())
        else:
            request.send_error(404)

    def send(self, request: BaseHTTPRequestHandler, data: bytes) -> None:
        start = 0
        wanted = request.headers.get("Range")
        if wanted and not self.faults.ignore_range:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(data) - start))
        request.end_headers()
        body = data[start:]
        if request.path.endswith(".safetensors") and self.faults.break_after:
            body = body[: self.faults.break_after.pop(0)]
        request.wfile.write(body)
