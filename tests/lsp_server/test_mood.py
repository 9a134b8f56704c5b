"""How the user is getting on."""

from __future__ import annotations

import math

import pytest

from lsp_server.mood import Mood


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_typing_speed_is_that_of_the_last_seconds() -> None:
    clock = Clock()
    mood = Mood(clock)
    assert mood.signals() == {"typing speed": 0.0, "after rejection": 0.0}
    for _ in range(20):
        clock.now += 0.25
        mood.typed()
    assert mood.signals()["typing speed"] == 4.0
    clock.now += 60
    assert mood.signals()["typing speed"] == 0.0


def test_a_rejection_fades_and_an_acceptance_ends_it() -> None:
    clock = Clock()
    mood = Mood(clock)
    mood.rejected()
    assert mood.signals()["after rejection"] == 1.0
    clock.now += 30
    assert mood.signals()["after rejection"] == pytest.approx(math.exp(-1), abs=1e-3)
    mood.accepted()
    assert mood.signals()["after rejection"] == 0.0


def test_after_three_rejections_in_a_row_it_rests_longer_each_time() -> None:
    clock = Clock()
    mood = Mood(clock)
    rests = []
    for _ in range(7):
        mood.rejected()
        began = clock.now
        while mood.resting:
            clock.now += 0.5
        rests.append(clock.now - began)
    assert rests == [0.0, 0.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    mood.rejected()
    assert mood.resting
    mood.accepted()
    mood.rejected()
    assert not mood.resting
