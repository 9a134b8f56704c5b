"""Retry budget and circuit breaker, by a clock that the test moves."""

from __future__ import annotations

from model.remote.pacing import Breaker, RetryBudget


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock, failures: int = 3) -> Breaker:
    breaker = Breaker(failures, clock=clock)
    told = [breaker.failed("down") for _ in range(failures)]
    assert told == [False] * (failures - 1) + [True]
    return breaker


def test_retries_are_a_share_of_requests() -> None:
    budget = RetryBudget(tokens=2, share=0.25)
    assert [budget.take() for _ in range(3)] == [True, True, False]
    taken = 0
    for _ in range(40):
        budget.asked()
        taken += budget.take()
    assert taken == 10


def test_a_budget_does_not_grow_beyond_its_size() -> None:
    budget = RetryBudget(tokens=2, share=0.5)
    for _ in range(100):
        budget.asked()
    assert [budget.take() for _ in range(3)] == [True, True, False]


def test_single_failures_change_nothing() -> None:
    breaker = Breaker(clock=Clock())
    for _ in range(5):
        assert not breaker.failed("a")
        assert not breaker.failed("b")
        breaker.succeeded()
    assert breaker.state == "closed"


def test_an_open_breaker_lets_one_probe_through_at_a_time() -> None:
    clock = Clock()
    breaker = opened(clock)
    assert (breaker.state, breaker.admits(), breaker.problem) == ("open", False, "down")
    clock.now += 1
    assert breaker.state == "half-open"
    assert [breaker.admits() for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.admits()


def test_pauses_double_up_to_a_minute_and_nobody_is_told_again() -> None:
    clock = Clock()
    breaker = opened(clock)
    pauses = []
    for _ in range(9):
        pauses.append(breaker.pause_s)
        clock.now += breaker.pause_s
        assert breaker.admits()
        assert not breaker.failed("still down")
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_probe_that_is_withdrawn_leaves_room_for_the_next() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 1
    assert breaker.admits()
    breaker.withdrawn()
    assert breaker.state == "half-open"
    assert breaker.admits()


def test_lasting_trouble_opens_at_once_and_for_longer() -> None:
    clock = Clock()
    breaker = Breaker(clock=clock)
    assert breaker.failed("no key", lasting=True)
    assert breaker.pause_s == 30


def test_the_service_says_how_long_it_wants_to_rest() -> None:
    clock = Clock()
    breaker = Breaker(clock=clock)
    assert not breaker.failed("429", least_s=7)
    assert (breaker.state, breaker.pause_s) == ("open", 7)
    clock.now += 7
    assert breaker.admits()
    breaker.succeeded()
    assert breaker.state == "closed"


def test_a_wish_for_ever_is_not_granted() -> None:
    breaker = Breaker(clock=Clock())
    breaker.failed("429", least_s=1e9)
    assert breaker.pause_s == 60


def test_an_episode_lasts_until_the_service_has_answered_for_a_while() -> None:
    clock = Clock()
    breaker = opened(clock)

    def trouble_again(after: int) -> bool:
        clock.now += 1000
        for _ in range(after):
            assert breaker.admits()
            breaker.succeeded()
        told = [breaker.failed("down") for _ in range(3)]
        return any(told)

    assert not trouble_again(after=1)
    assert not trouble_again(after=4)
    assert trouble_again(after=5)
