"""One HTTP connection pool to one service: posts JSON, and hangs up the moment that nobody waits any more.

Responsible for connections, time limits, cancellation, the size of an answer, and for saying what went wrong in words
for a user (`RemoteError`). Redirects are not followed, and certificates are verified. Knows nothing of what is asked,
of retries or of settings.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from typing import Any

from model.protocol import Cancelled, Stop

EXTRA = "remote"
CONNECT_S = 5.0
MOST_ANSWER_BYTES = 1_000_000
PATIENCE_S = 30.0
"""How long an answer may take where the request has no deadline."""
DEADLINE_HEADER = "X-Stainless-Read-Timeout"
"""How the official SDKs tell a service for how many seconds they wait."""
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504})
_LASTING = {
    401: "refuses the API key",
    402: "wants to be paid first",
    403: "refuses the API key",
    404: "does not know the address or the model",
}


class RemoteError(Exception):
    """No usable answer; the message is for the user and holds neither the key nor any text of a file.

    `retryable`: another attempt may help. `lasting`: none will before the user has done something. `wait_s`: how long
    the service asked to be left alone, in seconds.
    """

    def __init__(
        self, message: str, *, retryable: bool = False, lasting: bool = False, wait_s: float = 0.0
    ) -> None:
        super().__init__(message)
        self.retryable, self.lasting, self.wait_s = retryable, lasting, wait_s


class MissingPackageError(Exception):
    """The optional HTTP client is not installed."""


class Link:
    """Posts to addresses below `url`. Runs an event loop in a thread of its own; connections are kept between calls."""

    def __init__(self, url: str, key: str = "", agent: str = "redraft") -> None:
        try:
            import httpx2
        except ImportError as error:
            raise MissingPackageError(
                f"the remote backend needs one more package: pip install 'redraft[{EXTRA}]'"
            ) from error
        self._http = httpx2
        self.url, self._key = url.rstrip("/"), key
        headers = {"User-Agent": agent, "Accept": "application/json", "Accept-Encoding": "identity"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx2.AsyncClient(
            headers=headers,
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
        )
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._run, name="remote", daemon=True).start()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def post(self, path: str, body: Mapping[str, Any], stop: Stop) -> object:
        """The JSON of the answer. Raises `RemoteError`, and `Cancelled` at once when `stop` is cancelled.

        The connection of a call that is cancelled or late is closed, so the service can notice.
        """
        stop.check()
        patience = min(stop.remaining, PATIENCE_S)
        with self._lock:
            if self._closed:
                raise Cancelled
            future = asyncio.run_coroutine_threadsafe(self._post(path, body, patience), self._loop)
        stop.on_cancel(future.cancel)
        try:
            return future.result()
        except CancelledError:
            raise Cancelled from None

    def close(self) -> None:
        """Hang up everywhere: calls that wait end as cancelled, and so do later ones. Returns at once."""
        with self._lock:
            if not self._closed:
                self._closed = True
                asyncio.run_coroutine_threadsafe(self._leave(), self._loop)

    async def _leave(self) -> None:
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await self._client.aclose()
        self._loop.stop()

    async def _post(self, path: str, body: Mapping[str, Any], patience_s: float) -> object:
        errors = self._http
        try:
            async with asyncio.timeout(max(0.0, patience_s)):
                return await self._exchange(path, body, patience_s)
        except (TimeoutError, errors.TimeoutException):
            raise RemoteError(f"{self.url} did not answer in time ({patience_s:.1f} s)") from None
        except errors.TransportError as error:
            raise self._unreachable(error) from None
        except (errors.InvalidURL, errors.DecodingError) as error:
            raise RemoteError(f"{self.url}: {error}", lasting=True) from None

    async def _exchange(self, path: str, body: Mapping[str, Any], patience_s: float) -> object:
        headers = {DEADLINE_HEADER: f"{patience_s:.3f}", "Content-Type": "application/json"}
        data = json.dumps(body).encode("ascii")
        async with self._client.stream(
            "POST", self.url + path, content=data, headers=headers
        ) as answer:
            came = bytearray()
            async for chunk in answer.aiter_bytes():
                came += chunk
                if len(came) > MOST_ANSWER_BYTES:
                    raise RemoteError(
                        f"{self.url} answered with more than {MOST_ANSWER_BYTES} bytes"
                    )
            if answer.status_code == 200:
                return self._json(bytes(came))
            raise self._refused(answer.status_code, answer.headers, bytes(came))

    def _json(self, data: bytes) -> object:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise RemoteError(f"{self.url} did not answer with JSON") from None

    def _refused(self, status: int, headers: Mapping[str, str], data: bytes) -> RemoteError:
        if 300 <= status < 400:
            return RemoteError(
                f"{self.url} sends elsewhere (status {status}), which is not followed: "
                "check the setting `remote.url`",
                lasting=True,
            )
        what = _LASTING.get(status, "failed")
        said = self._said(data)
        return RemoteError(
            f"{self.url} {what} (status {status}{': ' + said if said else ''})",
            retryable=status in _RETRYABLE,
            lasting=status in _LASTING,
            wait_s=_seconds(headers.get("retry-after")),
        )

    def _said(self, data: bytes) -> str:
        """The service's own words, on one line, short and without the key."""
        try:
            error = json.loads(data).get("error")
            words = error.get("message") if isinstance(error, dict) else error
        except (ValueError, AttributeError, RecursionError):
            return ""
        if not isinstance(words, str):
            return ""
        line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
        if self._key:
            line = line.replace(self._key, "...")
        return line if len(line) <= 160 else line[:157] + "..."

    def _unreachable(self, error: Exception) -> RemoteError:
        words = f"{error}" or type(error).__name__
        trusted = "CERTIFICATE" not in words.upper()
        what = "cannot be reached" if trusted else "has no certificate that can be trusted"
        return RemoteError(
            f"{self.url} {what} ({words[:120]})", retryable=trusted, lasting=not trusted
        )


def _seconds(text: str | None) -> float:
    """The value of `Retry-After` in seconds; 0 where it is absent or a date."""
    try:
        return max(0.0, float(text or 0))
    except ValueError:
        return 0.0
