"""Files of a public model hub over plain HTTPS.

Responsible for what a repository holds and for fetching single files: resumed where they broke off, checked against the
hub's own checksums, put in place only when whole. Opens a connection when it is told to and never else. Knows nothing
of models.

The addresses are those of the Hugging Face hub; `$HF_ENDPOINT` names another, `$HF_TOKEN` is sent to it alone, and
`$HF_HUB_OFFLINE` forbids every connection, as in its own tools.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

ENDPOINT = "https://huggingface.co"
CHUNK = 1 << 20
TIMEOUT = 30.0
RETRIES = 4
PAUSE = 1.0
LARGEST_DESCRIPTION = 16 << 20
LONGEST_LICENCE = 80

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
REVISION = re.compile(r"[\w./-]+")
COMMIT = re.compile(r"[0-9a-f]{40}")
FILE = re.compile(r"[A-Za-z0-9_][\w.-]*")
SWITCHED_ON = ("1", "true", "yes", "on")
AGENT = "redraft"


class HubError(Exception):
    """What kept a file or a description from coming, in words for the user."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository; `checksum` is its SHA-256, or its git object id where it has none."""

    name: str
    size: int
    checksum: str
    is_git: bool


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at one revision; files in folders are left out."""

    name: str
    revision: str
    licence: str
    files: tuple[RemoteFile, ...]


def offline() -> bool:
    """True when the user has forbidden connections."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in SWITCHED_ON


def is_loopback(host: str | None) -> bool:
    return host in ("localhost", "::1") or bool(host and host.startswith("127."))


class Redirects(HTTPRedirectHandler):
    """Follows to other hosts without the token, and never from HTTPS to plain HTTP."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if new.scheme != "https" and not (new.scheme == "http" and is_loopback(new.hostname)):
            raise URLError(f"a redirect to {new.scheme}://{new.hostname} is not followed")
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and old.netloc != new.netloc:
            following.remove_header("Authorization")
        return following


class Hub:
    """One hub. Raises `HubError` from everything that opens a connection."""

    def __init__(
        self, endpoint: str | None = None, token: str | None = None, pause: float = PAUSE
    ) -> None:
        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
        self._token = token or os.environ.get("HF_TOKEN")
        self._pause = pause
        self._opener = build_opener(Redirects())
        address = urlsplit(self.endpoint)
        if address.scheme != "https" and not is_loopback(address.hostname):
            raise HubError(f"{self.endpoint} is no https address")

    def describe(self, name: str, revision: str = "main") -> Repository:
        """What a repository holds at a revision."""
        if not REPOSITORY.fullmatch(name) or not REVISION.fullmatch(revision):
            raise HubError(f"{name!r} at {revision!r} is no repository: OWNER/NAME is needed")
        path = f"api/models/{name}/revision/{quote(revision, safe='')}?blobs=true"
        with self._open(path, name) as answer:
            text = answer.read(LARGEST_DESCRIPTION)
        try:
            raw = json.loads(text)
            files = tuple(
                remote_file(one) for one in raw["siblings"] if FILE.fullmatch(one["rfilename"])
            )
            if not COMMIT.fullmatch(raw["sha"]):
                raise ValueError("its revision is no commit")
            licence = str((raw.get("cardData") or {}).get("license") or "not stated")
            plain = "".join(char for char in licence if char.isprintable())
            return Repository(name, raw["sha"], plain[:LONGEST_LICENCE], files)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HubError(
                f"{self.endpoint} describes {name} in an unknown way: {error!r}"
            ) from error

    def fetch(self, repository: Repository, file: RemoteFile, target: Path) -> Iterator[int]:
        """Put a file at `target`; yields the bytes that came with each piece.

        What came before a break is kept in `target.part`, and is gone on with, now or another time.
        """
        part = target.with_name(target.name + ".part")
        path = f"{repository.name}/resolve/{repository.revision}/{quote(file.name)}"
        failures = 0
        while (have := part.stat().st_size if part.exists() else 0) < file.size:
            try:
                for piece in self._pieces(path, repository.name, part, have):
                    failures = 0
                    yield piece
                    if part.stat().st_size > file.size:
                        break
            except (OSError, HTTPException) as error:
                failures += 1
                if failures > RETRIES:
                    raise HubError(
                        f"{file.name} breaks off: {error}; run the same again to go on"
                    ) from error
                time.sleep(self._pause * failures)
            else:
                if part.stat().st_size < file.size:
                    failures += 1
                    if failures > RETRIES:
                        raise HubError(f"{file.name} ends too early; run the same again to go on")
        part.touch()
        if part.stat().st_size != file.size or checksum(part, file) != file.checksum:
            part.unlink()
            raise HubError(
                f"{file.name} is not what the hub says it is (checksum); it was thrown away"
            )
        os.replace(part, target)

    def _pieces(self, path: str, name: str, part: Path, have: int) -> Iterator[int]:
        """Append to `part` from byte `have` on, or begin anew if the hub sends the whole."""
        with self._open(path, name, have) as answer, part.open("r+b" if have else "wb") as out:
            resumed = answer.status == 206 and have > 0
            out.seek(have if resumed else 0)
            out.truncate()
            while piece := answer.read(CHUNK):
                out.write(piece)
                out.flush()
                yield len(piece)

    def _open(self, path: str, name: str, start: int = 0) -> HTTPResponse:
        if offline():
            raise HubError("connections are forbidden (HF_HUB_OFFLINE)")
        request = Request(f"{self.endpoint}/{path}", headers={"User-Agent": AGENT})
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            answer: HTTPResponse = self._opener.open(request, timeout=TIMEOUT)
        except HTTPError as error:
            if error.code >= 500 or error.code == 429:
                raise OSError(f"the hub answers {error.code}") from error
            raise HubError(refusal(name, error.code)) from error
        except URLError as error:
            if start:
                raise
            raise HubError(f"{self.endpoint} cannot be reached: {error.reason}") from error
        return answer


def refusal(name: str, code: int) -> str:
    """What an HTTP status means for the user."""
    if code in (401, 403):
        return (
            f"{name} is private, does not exist, or its terms must be accepted first: "
            "accept them on its page and set HF_TOKEN"
        )
    if code == 404:
        return f"the hub has no {name}, or not that revision or file"
    return f"the hub answers {code} for {name}"


def remote_file(raw: Mapping[str, Any]) -> RemoteFile:
    """A file from the hub's description; raises `KeyError` where that lacks a checksum."""
    lfs = raw.get("lfs")
    if lfs:
        return RemoteFile(raw["rfilename"], int(lfs["size"]), str(lfs["sha256"]), False)
    return RemoteFile(raw["rfilename"], int(raw["size"]), str(raw["blobId"]), True)


def checksum(path: Path, file: RemoteFile) -> str:
    """The SHA-256 of a file, or its git object id, as `file` has it."""
    digest = hashlib.sha1(usedforsecurity=False) if file.is_git else hashlib.sha256()
    if file.is_git:
        digest.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as stream:
        while piece := stream.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()
