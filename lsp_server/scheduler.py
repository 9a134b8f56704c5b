"""When the model is asked: one live request per document, debounce, deadline, back-off.

Responsible for letting a newer request of a document supersede the older one, for the worker that
all predictions share, and for leaving a failing predictor alone for a while. Knows nothing of what
is asked or answered.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from model.protocol import Cancelled, Stop

T = TypeVar("T")

MAX_PENDING = 16
"""Documents that may wait for the worker at the same time."""
_GRACE_S = 2.0


class DeadlineExceededError(Exception):
    """The predictor did not come back, although its deadline is long gone."""


class TooBusyError(Exception):
    """Too many documents wait for the worker already."""


@dataclass(slots=True, eq=False)
class _Live:
    task: asyncio.Task[object]
    stop: Stop = field(default_factory=Stop)


class Scheduler:
    """Runs work in one worker thread, one request per document at a time.

    Everything but the work itself happens on the event loop's thread.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._live: dict[str, _Live] = {}
        self._futures: set[Future[Any]] = set()
        self.superseded = 0

    @property
    def pending(self) -> int:
        """Requests that wait or are worked on."""
        return len(self._live)

    @property
    def busy(self) -> bool:
        """Whether the worker thread is at work at this moment, wanted or not."""
        return any(future.running() for future in list(self._futures))

    def supersede(self, key: str) -> None:
        """Withdraw the live request of a document: its task is cancelled, its work told to stop."""
        if (live := self._live.pop(key, None)) is not None:
            self.superseded += 1
            live.stop.cancel()
            live.task.cancel()

    async def run(
        self,
        key: str,
        prepare: Callable[[], Callable[[Stop], T] | None],
        *,
        debounce_s: float,
        deadline_s: float,
    ) -> T | None:
        """After a pause call `prepare`, and do what it returns in the worker, unless superseded.

        None when `prepare` finds that nothing is left to do. Raises `asyncio.CancelledError` when
        superseded or cancelled by the client, `DeadlineExceededError`, `TooBusyError`, and what
        the work raises.
        """
        self.supersede(key)
        if len(self._live) >= MAX_PENDING:
            raise TooBusyError
        with self._living(key) as live:
            try:
                if debounce_s > 0:
                    await asyncio.sleep(debounce_s)
                if (work := prepare()) is None:
                    return None
                live.stop = Stop(deadline_s)
                future = self.submit(work, live.stop)
                limit_s = 2 * deadline_s + _GRACE_S
                return await asyncio.wait_for(asyncio.wrap_future(future), limit_s)
            except TimeoutError:
                live.stop.cancel()
                raise DeadlineExceededError from None
            except asyncio.CancelledError:
                live.stop.cancel()
                raise
            except Cancelled:
                if live.stop.cancelled:  # the work noticed before this task did
                    raise asyncio.CancelledError from None
                raise

    async def wait(self, key: str, event: asyncio.Event) -> None:
        """Until something has happened that the request of this document needs, unless superseded."""
        with self._living(key):
            await event.wait()

    @contextmanager
    def _living(self, key: str) -> Iterator[_Live]:
        """The current task is the live request of a document meanwhile."""
        task = asyncio.current_task()
        assert task is not None
        live = self._live[key] = _Live(task)
        try:
            yield live
        finally:
            if self._live.get(key) is live:
                del self._live[key]

    def submit(self, work: Callable[..., T], *args: object) -> Future[T]:
        """Queue work for the worker thread, after all that waits already."""
        future = self._executor.submit(work, *args)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    async def close(self, timeout: float = 0.5) -> None:
        """Withdraw everything and give the worker a moment to notice."""
        for key in list(self._live):
            self.supersede(key)
        self._executor.shutdown(wait=False, cancel_futures=True)
        ends = time.monotonic() + timeout
        while self.busy and time.monotonic() < ends:
            await asyncio.sleep(0.01)


async def aside(call: Callable[..., T], *args: object) -> T:
    """The result of a call made in a thread that never keeps the process alive."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call(*args))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=getattr(call, "__name__", "aside"), daemon=True).start()
    return await asyncio.wrap_future(future)


class BackOff:
    """After failures: how long to leave the predictor alone. Doubles each time, ends on success."""

    def __init__(
        self,
        first_s: float = 1.0,
        longest_s: float = 60.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._clock = clock or time.monotonic
        self.failures = 0
        self._until = float("-inf")

    @property
    def active(self) -> bool:
        return self._clock() < self._until

    def failed(self) -> bool:
        """Note a failure; True for the first of an episode, the one to tell the user about."""
        pause = min(self._first_s * 2**self.failures, self._longest_s)
        self.failures = min(self.failures + 1, 32)
        self._until = self._clock() + pause
        return self.failures == 1

    def succeeded(self) -> None:
        self.failures = 0
        self._until = float("-inf")
