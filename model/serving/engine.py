"""One model, one request at a time, and a queue with a bound.

Responsible for running work in the one worker thread, for turning away what the queue has no room for, and for ending
work whose client is gone or whose time is up. Knows nothing of HTTP, of requests or of answers.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from model.protocol import Cancelled, Stop

T = TypeVar("T")

GRACE_S = 5.0
"""How long work may go on behind its deadline before its client gets an error: a forward pass is not interrupted."""


class Busy(Exception):
    """The queue is full; `retry_after` seconds from now there may be room."""

    def __init__(self, waiting: int, retry_after: int) -> None:
        super().__init__(f"{waiting} requests are waiting already")
        self.retry_after = retry_after


class Overdue(Exception):
    """The time for a request passed before there was an answer."""


class Job(Generic[T]):
    """Work that was handed over. `abandon` ends it: at once while it waits, at its next look at `stop` afterwards."""

    def __init__(self, stop: Stop, future: Future[T], timeout: float) -> None:
        self.stop, self.future, self.timeout = stop, future, timeout

    def abandon(self) -> None:
        self.stop.cancel()
        self.future.cancel()

    async def result(self) -> T:
        """The result. Raises what the work raised, `Cancelled` when it was abandoned, `Overdue` when its time passed
        by far."""
        waiting = asyncio.wrap_future(self.future)
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        done, _ = await asyncio.wait({waiting}, timeout=self.timeout + GRACE_S)
        if not done:
            self.abandon()
            raise Overdue("the model did not answer in time")
        if waiting.cancelled():
            raise Cancelled
        return waiting.result()


class Engine:
    """Runs jobs in order. `waiting` is the most that may be in the queue, the one that runs counted."""

    def __init__(self, *, waiting: int = 16, timeout: float = 30.0) -> None:
        self.limit, self.timeout = waiting, timeout
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._lock = threading.Lock()
        self._jobs: set[Job[object]] = set()
        self._typical = 0.5

    @property
    def pending(self) -> int:
        """Jobs that wait or run."""
        return len(self._jobs)

    def submit(self, work: Callable[[Stop], T], patience: float | None = None) -> Job[T]:
        """Hand over work; raises `Busy` when there is no room. `patience` in seconds may shorten its time."""
        timeout = self.timeout if patience is None else min(self.timeout, patience)
        with self._lock:
            if len(self._jobs) >= self.limit:
                seconds = math.ceil(len(self._jobs) * self._typical)
                raise Busy(len(self._jobs), min(max(1, seconds), 60))
            stop = Stop(timeout)
            future = self._executor.submit(self._run, work, stop)
            job: Job[T] = Job(stop, future, timeout)
            self._jobs.add(job)  # type: ignore[arg-type]
        future.add_done_callback(lambda _: self._ended(job))  # type: ignore[arg-type]
        return job

    def close(self) -> None:
        """Abandon everything; does not wait for what runs."""
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.abandon()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, work: Callable[[Stop], T], stop: Stop) -> T:
        stop.check()
        if stop.expired:
            raise Overdue("the request waited for longer than it may take")
        started = time.monotonic()
        try:
            return work(stop)
        finally:
            self._typical += 0.2 * (time.monotonic() - started - self._typical)

    def _ended(self, job: Job[object]) -> None:
        with self._lock:
            self._jobs.discard(job)
