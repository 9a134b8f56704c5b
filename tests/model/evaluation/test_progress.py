from __future__ import annotations

import io
from collections.abc import Callable

from model.evaluation.progress import BAR, clock_time, progress, state


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ticking(step: float) -> Callable[[], float]:
    now = -step

    def clock() -> float:
        nonlocal now
        now += step
        return now

    return clock


def test_items_pass_and_a_line_comes_every_ten_seconds() -> None:
    out = io.StringIO()
    # The clock is read once at the start and once for each item: 4, 8, 12, ... seconds.
    assert list(progress("abcdef", "eval", stream=out, clock=ticking(4))) == list("abcdef")
    assert out.getvalue().splitlines() == [
        "eval: 2 of 6, 0:12, 0:24 left",
        "eval: 5 of 6, 0:24, 0:05 left",
    ]


def test_a_quick_run_says_nothing() -> None:
    for out in (io.StringIO(), Terminal()):
        list(progress("abc", "eval", stream=out, clock=ticking(0.01)))
        assert out.getvalue() == ""


def test_a_terminal_gets_one_line_drawn_over_itself() -> None:
    out = Terminal()
    list(progress("ab", "eval", stream=out, clock=ticking(1)))
    text = out.getvalue()
    assert text.count("\n") == 1
    assert text.split("\r")[-1] == f"\x1b[Keval [{'#' * BAR}] 2 of 2, 0:03\n"


def test_what_is_not_known_is_not_told() -> None:
    assert state("eval", 3, None, 4.0, bar=True) == "eval 3, 0:04"
    assert state("eval", 0, 5, 0.0, bar=False) == "eval: 0 of 5, 0:00"
    assert (
        state("eval", 12, 48, 65, bar=True)
        == f"eval [{'#' * 6}{'-' * 18}] 12 of 48, 1:05, 3:15 left"
    )


def test_clock_time() -> None:
    assert [clock_time(s) for s in (0, 59.6, 61, 3723)] == ["0:00", "1:00", "1:01", "1:02:03"]


def test_a_label_that_changes_is_asked_each_time() -> None:
    out, losses = io.StringIO(), iter((3, 2, 1))
    list(progress("abc", lambda: f"train {next(losses)}", stream=out, clock=ticking(10)))
    assert [line.split(":")[0] for line in out.getvalue().splitlines()] == [
        "train 3",
        "train 2",
        "train 1",
    ]
