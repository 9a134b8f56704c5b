"""Desks: which request is worked on where, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

import pytest

from model.protocol import Stop
from model.serving.engine import Busy, Engine, Overdue
from model.together import Together


def halves(arguments: list[int]) -> list[float]:
    return [one / 2 for one in arguments]


class Watched:
    """An engine whose work tells when it begins and ends, and waits for one step of the model in between."""

    def __init__(self, desks: int, **options: float) -> None:
        self.gate = threading.Event()
        together = Together()
        tools = [f"desk {number}" for number in range(desks)]
        self.engine: Engine[str] = Engine(tools, together, **options)  # type: ignore[arg-type]
        self.told: list[str] = []

    def work(self, name: str) -> Callable[[str, Stop], str]:
        def work(desk: str, stop: Stop) -> str:
            self.told.append(f"{name} begins")
            self.engine.together.step(halves, 4, rows=1)
            stop.check()
            self.told.append(f"{name} ends")
            return desk

        return work

    def hold(self) -> None:
        """Keep the worker thread busy until `gate` is set, so that what comes meanwhile arrives at once."""
        begun = threading.Event()

        def work(desk: str, stop: Stop) -> None:
            begun.set()
            self.gate.wait(10)

        self.engine.submit(work)
        assert begun.wait(5)


@pytest.fixture
def watched() -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def start(desks: int = 2, **options: float) -> Watched:
        made.append(Watched(desks, **options))
        return made[-1]

    yield start
    for one in made:
        one.gate.set()
        one.engine.close()


def test_requests_of_several_sessions_go_on_side_by_side(watched: Callable[..., Watched]) -> None:
    it = watched()
    it.hold()
    jobs = [it.engine.submit(it.work(name), session=name) for name in ("a", "b")]
    it.gate.set()
    assert {job.future.result(5) for job in jobs} == {"desk 0", "desk 1"}
    assert it.told == ["a begins", "b begins", "a ends", "b ends"]


def test_a_session_keeps_its_desk_and_its_order(watched: Callable[..., Watched]) -> None:
    it = watched()
    names = ("a", "b", "a", "b", "a")
    desks = [it.engine.submit(it.work(name), session=name).future.result(5) for name in names]
    assert desks == ["desk 0", "desk 1", "desk 0", "desk 1", "desk 0"]
    it.told.clear()
    it.hold()
    for name in ("first", "second"):
        it.engine.submit(it.work(name), session="same")
    last = it.engine.submit(it.work("third"), session="same")
    it.gate.set()
    last.future.result(5)
    assert it.told == [
        f"{name} {what}" for name in ("first", "second", "third") for what in ("begins", "ends")
    ]


def test_a_session_does_not_wait_for_long_work_of_its_own_while_a_desk_is_free(
    watched: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = watched()

    def long(desk: str, stop: Stop) -> str:
        while "short ends" not in it.told and not stop.expired:
            it.engine.together.step(halves, 4, rows=1)
        return desk

    monkeypatch.setattr("model.serving.engine.WAIT_S", 0.1)
    first = it.engine.submit(long, session="same")
    short = it.engine.submit(it.work("short"), session="same")
    assert short.future.result(5) == "desk 1"
    assert first.future.result(5) == "desk 0"
    assert it.engine.submit(it.work("next"), session="same").future.result(5) == "desk 1"


def test_the_desk_that_was_free_for_longest_is_given_away(watched: Callable[..., Watched]) -> None:
    it = watched()
    names = ("a", "b", "a", "c", "a", "b", "")
    desks = [it.engine.submit(it.work(name), session=name).future.result(5) for name in names]
    assert desks == [f"desk {number}" for number in (0, 1, 0, 1, 0, 1, 0)]


def test_one_desk_is_one_request_after_another(watched: Callable[..., Watched]) -> None:
    it = watched(desks=1)
    it.hold()
    jobs = [it.engine.submit(it.work(name)) for name in ("a", "b")]
    it.gate.set()
    assert [job.future.result(5) for job in jobs] == ["desk 0", "desk 0"]
    assert it.told == ["a begins", "a ends", "b begins", "b ends"]


def test_what_was_abandoned_while_it_waited_never_begins(watched: Callable[..., Watched]) -> None:
    it = watched(desks=1)
    it.hold()
    gone, kept = (it.engine.submit(it.work(name)) for name in ("gone", "kept"))
    gone.abandon()
    assert it.engine.pending == 2
    it.gate.set()
    assert kept.future.result(5) == "desk 0"
    with pytest.raises(CancelledError):
        gone.future.result(5)
    assert it.told == ["kept begins", "kept ends"]


def test_a_failure_frees_its_desk_and_the_engine_goes_on(watched: Callable[..., Watched]) -> None:
    it = watched(desks=1)

    def fails(desk: str, stop: Stop) -> None:
        raise ValueError(desk)

    with pytest.raises(ValueError, match="desk 0"):
        it.engine.submit(fails).future.result(5)
    assert it.engine.submit(it.work("a")).future.result(5) == "desk 0"
    assert it.engine.pending == 0


def test_the_queue_has_a_bound_and_patience_an_end(watched: Callable[..., Watched]) -> None:
    it = watched(desks=2, waiting=2, timeout=0.05)
    it.hold()
    late = it.engine.submit(it.work("late"))
    with pytest.raises(Busy) as refused:
        it.engine.submit(it.work("refused"))
    assert refused.value.retry_after == 1
    threading.Event().wait(0.1)
    it.gate.set()
    with pytest.raises(Overdue):
        late.future.result(5)
    assert it.told == []
