"""How far a long run has come, for whoever waits for it.

Responsible for a bar on a terminal and for a plain line now and then elsewhere, with counts and the
time left. It knows nothing of what is being counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TextIO, TypeVar

T = TypeVar("T")

PLAIN_S = 10.0
BAR_S = 0.2
BAR = 24


def progress(
    items: Iterable[T],
    label: str | Callable[[], str],
    total: int | None = None,
    *,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[T]:
    """Pass the items on and tell `stream` (standard error) how many are done.

    A bar that is drawn over itself on a terminal, else a line every `PLAIN_S` seconds. A label that
    changes is a function, asked whenever something is shown.
    """
    named = label if callable(label) else lambda: label
    stream = stream or sys.stderr
    if total is None and isinstance(items, Sized):
        total = len(items)
    bar = stream.isatty()
    began = last = clock()
    count = 0
    for count, item in enumerate(items):
        now = clock()
        if now - last >= (BAR_S if bar else PLAIN_S):
            last = now
            line = state(named(), count, total, now - began, bar=bar)
            stream.write(f"\r\x1b[K{line}" if bar else line + "\n")
            stream.flush()
        yield item
    if bar and last > began:
        line = state(named(), count + 1, total, clock() - began, bar=True)
        stream.write(f"\r\x1b[K{line}\n")
        stream.flush()


def state(label: str, count: int, total: int | None, seconds: float, *, bar: bool) -> str:
    """`eval [####----] 12 of 300, 0:24, 9:36 left`, without the bar if there is none to draw."""
    drawn = ""
    if bar and total:
        full = BAR * min(count, total) // total
        drawn = f" [{'#' * full}{'-' * (BAR - full)}]"
    of = f" of {total}" if total is not None else ""
    line = f"{label}{drawn if bar else ':'} {count}{of}, {clock_time(seconds)}"
    if total and count and count < total:
        line += f", {clock_time(seconds * (total - count) / count)} left"
    return line


def clock_time(seconds: float) -> str:
    """`1:02:03`, or `2:03` under an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
