"""Measuring within a given time.

Responsible for how much of the time is left and for rows of times as a table. It knows nothing of what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from model.evaluation.bench import number
from model.evaluation.gate_metrics import percentile
from model.evaluation.report import table


@dataclass
class Budget:
    """Time that is left. A section may take a share of it."""

    seconds: float
    clock: Callable[[], float] = time.perf_counter
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def left(self) -> float:
        return self.seconds - (self.clock() - self.began)

    def rounds(self, count: int, share: float) -> Iterator[int]:
        """0, 1, ... below `count`, ended early when that share of what is left has passed; at least one."""
        until = self.clock() + share * max(0.0, self.left)
        for index in range(count):
            if index and self.clock() >= until:
                return
            yield index


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Times are seconds, one for each of what was measured."""

    what: str
    times: Sequence[float]
    tokens: int = 0
    forwards: int = 0
    note: str = ""

    def figures(self) -> dict[str, Any]:
        ms = [1000 * one for one in self.times]
        return {
            "what": self.what,
            "n": len(ms),
            "p50_ms": percentile(ms, 50),
            "p95_ms": percentile(ms, 95),
            "mean_ms": sum(ms) / len(ms) if ms else None,
            "tokens_per_forward": self.tokens / self.forwards if self.forwards else None,
            "note": self.note,
        }


def rows_table(rows: Sequence[Row]) -> str:
    """The rows as plain text."""
    header = ["", "n", "p50 ms", "p95 ms", "tok/fwd", "note"]
    cells = []
    for figures in (row.figures() for row in rows):
        times = (number(figures[name], ".2f") for name in ("p50_ms", "p95_ms"))
        rate = number(figures["tokens_per_forward"], ".2f")
        cells.append([figures["what"], str(figures["n"]), *times, rate, figures["note"]])
    return table(header, cells)
