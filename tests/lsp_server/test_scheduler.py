"""One live request per document, one worker, back-off."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from lsp_server.scheduler import (
    MAX_PENDING,
    BackOff,
    DeadlineExceededError,
    Scheduler,
    TooBusyError,
    aside,
)
from model.protocol import Cancelled, Stop


def until_stopped(stop: Stop) -> str:
    while not stop.expired:
        stop.check()
        time.sleep(0.002)
    return "expired"


def always(work: Callable[[Stop], object]) -> Callable[[], Callable[[Stop], object]]:
    return lambda: work


async def test_a_newer_request_of_the_same_key_cancels_the_older() -> None:
    scheduler = Scheduler()
    stops: list[Stop] = []

    def remember(stop: Stop) -> str:
        stops.append(stop)
        return until_stopped(stop)

    older = asyncio.ensure_future(scheduler.run("a", always(remember), debounce_s=0, deadline_s=60))
    while not stops:
        await asyncio.sleep(0.002)
    newer = await scheduler.run("a", always(lambda stop: "new"), debounce_s=0, deadline_s=60)
    assert newer == "new"
    with pytest.raises(asyncio.CancelledError):
        await older
    assert stops[0].cancelled
    assert (scheduler.superseded, scheduler.pending) == (1, 0)
    await scheduler.close()


async def test_work_that_ends_the_moment_it_is_withdrawn_counts_as_cancelled() -> None:
    """Work that waits is woken by `on_cancel` and may be over before its task has been told."""
    scheduler = Scheduler()

    def wait(stop: Stop) -> None:
        woken = threading.Event()

        def wake() -> None:
            woken.set()
            time.sleep(0.05)  # the work is over when the task is told

        stop.on_cancel(wake)
        woken.wait(10)
        stop.check()

    older = asyncio.ensure_future(scheduler.run("a", always(wait), debounce_s=0, deadline_s=60))
    while not scheduler.busy:
        await asyncio.sleep(0.001)
    scheduler.supersede("a")
    with pytest.raises(asyncio.CancelledError):
        await older
    await scheduler.close()


async def test_what_is_superseded_in_its_pause_is_never_prepared() -> None:
    scheduler = Scheduler()
    prepared: list[str] = []

    def prepare(name: str) -> Callable[[], Callable[[Stop], str]]:
        def now() -> Callable[[Stop], str]:
            prepared.append(name)
            return lambda stop: name

        return now

    tasks = [
        asyncio.ensure_future(scheduler.run("a", prepare(str(n)), debounce_s=0.05, deadline_s=5))
        for n in range(5)
    ]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results[-1] == "4"
    assert all(isinstance(r, asyncio.CancelledError) for r in results[:-1])
    assert prepared == ["4"]
    await scheduler.close()


async def test_nothing_to_do_after_the_pause() -> None:
    scheduler = Scheduler()
    assert (await scheduler.run("a", lambda: None, debounce_s=0, deadline_s=1)) is None
    await scheduler.close()


async def test_the_deadline_reaches_the_work_and_failures_come_back() -> None:
    scheduler = Scheduler()
    assert (
        await scheduler.run("a", always(until_stopped), debounce_s=0, deadline_s=0.02)
    ) == "expired"

    def fail(stop: Stop) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await scheduler.run("a", always(fail), debounce_s=0, deadline_s=1)
    await scheduler.close()


async def test_work_that_never_comes_back_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lsp_server.scheduler._GRACE_S", 0.05)
    scheduler = Scheduler()
    release = threading.Event()
    stuck = always(lambda stop: release.wait(10))
    with pytest.raises(DeadlineExceededError):
        await scheduler.run("a", stuck, debounce_s=0, deadline_s=0.01)
    assert scheduler.busy
    started = time.monotonic()
    await scheduler.close(timeout=0.05)
    assert time.monotonic() - started < 2
    release.set()


async def test_only_so_many_documents_may_wait() -> None:
    scheduler = Scheduler()
    release = threading.Event()
    waiting = [
        asyncio.ensure_future(
            scheduler.run(str(n), always(lambda stop: release.wait(10)), debounce_s=0, deadline_s=9)
        )
        for n in range(MAX_PENDING)
    ]
    await asyncio.sleep(0.02)
    assert scheduler.pending == MAX_PENDING
    with pytest.raises(TooBusyError):
        await scheduler.run("more", always(lambda stop: None), debounce_s=0, deadline_s=1)
    release.set()
    assert await asyncio.gather(*waiting) == [True] * MAX_PENDING
    await scheduler.close()


async def test_a_stop_that_was_cancelled_in_the_queue() -> None:
    scheduler = Scheduler()
    task = asyncio.ensure_future(
        scheduler.run("a", always(until_stopped), debounce_s=0, deadline_s=60)
    )
    await asyncio.sleep(0.02)
    scheduler.supersede("a")
    with pytest.raises((asyncio.CancelledError, Cancelled)):
        await task
    await scheduler.close()


def test_back_off_doubles_and_ends_with_success() -> None:
    now = 0.0
    backoff = BackOff(first_s=1, longest_s=5, clock=lambda: now)
    assert not backoff.active
    for pause in (1, 2, 4, 5, 5):
        assert backoff.failed() is (pause == 1 and backoff.failures == 1)
        now += pause - 0.1
        assert backoff.active
        now += 0.2
        assert not backoff.active
    backoff.succeeded()
    assert backoff.failed() is True


async def test_aside_gives_results_and_errors() -> None:
    assert await aside(max, 1, 2) == 2
    with pytest.raises(ZeroDivisionError):
        await aside(divmod, 1, 0)
