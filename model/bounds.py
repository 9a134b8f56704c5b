"""Numbers on a command line: read, and refused outside of their bounds.

Responsible for the types that parsers share. Knows nothing of commands.
"""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable

MOST_THREADS = 512
MOST_PORT = 65_535


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of a whole number from `least` to `most`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not a whole number") from None
        _check(number, least, most)
        return number

    return read


def real(least: float, most: float | None = None) -> Callable[[str], float]:
    """The type of a finite number from `least` to `most`."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not a number") from None
        if not math.isfinite(number):
            raise ArgumentTypeError(f"{text!r} is not a finite number")
        _check(number, least, most)
        return number

    return read


def _check(number: float, least: float, most: float | None) -> None:
    if number < least or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ArgumentTypeError(f"{number} is out of bounds: it must be {bounds}")


threads = whole(0, MOST_THREADS)
port = whole(0, MOST_PORT)
count = whole(1)
