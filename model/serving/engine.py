"""Requests for one model: a queue with a bound, and desks at which they are worked on side by side.

Responsible for running work in the one worker thread, for which desk it is done at, for turning away what the queue has
no room for, and for ending work whose client is gone or whose time is up. Knows nothing of HTTP, of requests or of
answers.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

from model.protocol import Cancelled, Stop
from model.together import Together

WAIT_S = 1.0
"""How long a request waits for the desk that knows its session while others are free: what is there is read again for
about as much."""

T = TypeVar("T")
D = TypeVar("D")

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

    def __init__(self, stop: Stop, timeout: float, session: str) -> None:
        self.stop, self.timeout, self.session = stop, timeout, session
        self.future: Future[T] = Future()

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


class Desk(Generic[D]):
    """Where one request at a time is worked on, with `tools` whose caches know the session that was there last."""

    def __init__(self, tools: D) -> None:
        self.tools = tools
        self.session = ""
        self.busy = False
        self.since = 0.0


class Engine(Generic[D]):
    """Runs jobs in the order in which they came, as many at once as there are desks.

    `waiting` is the most that may be in the queue, those that run counted.
    """

    def __init__(
        self,
        tools: Sequence[D],
        together: Together | None = None,
        *,
        waiting: int = 16,
        timeout: float = 30.0,
    ) -> None:
        self.limit, self.timeout = waiting, timeout
        self.together = together or Together()
        self._desks = [Desk(one) for one in tools]
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._lock = threading.Lock()
        self._queue: list[tuple[Job[object], Callable[[D], object]]] = []
        self._jobs: set[Job[object]] = set()
        self._running = False
        self._typical = 0.5

    @property
    def pending(self) -> int:
        """Jobs that wait or run."""
        return len(self._jobs)

    def submit(
        self, work: Callable[[D, Stop], T], patience: float | None = None, session: str = ""
    ) -> Job[T]:
        """Hand over work; raises `Busy` when there is no room. `patience` in seconds may shorten its time.

        Work of one session is done at one desk, one after another, unless that takes long and another is free.
        """
        timeout = self.timeout if patience is None else min(self.timeout, patience)
        job: Job[T] = Job(Stop(timeout), timeout, session)
        with self._lock:
            if len(self._jobs) >= self.limit:
                seconds = math.ceil(len(self._jobs) * self._typical / len(self._desks))
                raise Busy(len(self._jobs), min(max(1, seconds), 60))
            self._jobs.add(job)  # type: ignore[arg-type]
            self._queue.append((job, lambda tools: work(tools, job.stop)))  # type: ignore[arg-type]
            if not self._running:
                self._running = True
                self._executor.submit(self.together.run, self._arrivals)
        job.future.add_done_callback(lambda _: self._ended(job))  # type: ignore[arg-type]
        return job

    def close(self) -> None:
        """Abandon everything; does not wait for what runs."""
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.abandon()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _arrivals(self) -> list[Callable[[], None]]:
        """What can begin now. Where nothing can and nothing runs, the worker thread ends."""
        with self._lock:
            begin: list[Callable[[], None]] = []
            wait = []
            for job, work in self._queue:
                if job.future.cancelled():
                    continue
                desk = self._desk_for(job.session)
                if desk is None:
                    wait.append((job, work))
                    continue
                desk.busy, desk.since, desk.session = True, time.monotonic(), job.session
                begin.append(partial(self._run, desk, job, work))
            self._queue = wait
            self._running = any(desk.busy for desk in self._desks)
            return begin

    def _desk_for(self, session: str) -> Desk[D] | None:
        """The free desk that knows the session best, else the one that was free for longest; None where it waits."""
        own = [desk for desk in self._desks if session and desk.session == session]
        free = sorted((desk for desk in self._desks if not desk.busy), key=lambda desk: desk.since)
        if known := [desk for desk in free if desk in own]:
            return known[-1]
        if any(time.monotonic() - desk.since < WAIT_S for desk in own):
            return None
        return free[0] if free else None

    def _run(self, desk: Desk[D], job: Job[object], work: Callable[[D], object]) -> None:
        """Do the work of a job and free its desk; raises nothing."""
        started = time.monotonic()
        try:
            if not job.future.set_running_or_notify_cancel():
                return
            try:
                job.stop.check()
                if job.stop.expired:
                    raise Overdue("the request waited for longer than it may take")
                result = work(desk.tools)
            except BaseException as error:
                job.future.set_exception(error)
            else:
                job.future.set_result(result)
        finally:
            with self._lock:
                desk.busy = False
                self._typical += 0.2 * (time.monotonic() - started - self._typical)

    def _ended(self, job: Job[object]) -> None:
        with self._lock:
            self._jobs.discard(job)
