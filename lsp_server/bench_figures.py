"""Sums up what an editor saw of a server: groups of samples, a table, and memory in words.

Responsible for figures; knows nothing of servers or of how they are asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import linear_regression
from typing import TYPE_CHECKING, Any

from model.evaluation.bench import WORK, number, work_cells, work_of
from model.evaluation.gate_metrics import percentile
from model.evaluation.report import table

if TYPE_CHECKING:
    from lsp_server.bench_client import Sample

LIVE = "live"
MOMENTS = ("key after a jump", "key after a rest", "accept at once", "accept after a look")
PERCENTILES = (50, 90, 95, 99)


def groups(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """A summary per mode, size and kind of the answers that the model gave; one of all warm keys of the traces, those
    of `MOMENTS` apart; one of those that continue a live suggestion (`kind` is `live`)."""
    found = []
    for mode, lines in dict.fromkeys((one.mode, one.lines) for one in samples):
        members = [one for one in samples if (one.mode, one.lines) == (mode, lines)]
        asked = [one for one in members if one.source == "model"]
        for kind in dict.fromkeys(one.kind for one in asked):
            found.append(summarise(mode, lines, kind, [one for one in asked if one.kind == kind]))
        warm = [one for one in asked if one.kind not in ("first", *MOMENTS)]
        if warm:
            found.append(summarise(mode, lines, "all warm", warm))
        if live := [one for one in members if one.source == LIVE]:
            found.append(summarise(mode, lines, LIVE, live))
    return found


def summarise(mode: str, lines: int, kind: str, samples: Sequence[Sample]) -> dict[str, Any]:
    """Figures of one group; `overhead_ms` is what the answer took beyond the model."""
    latencies = [one.latency_ms for one in samples]
    beyond = [one.latency_ms - one.model_ms for one in samples if one.model_ms is not None]
    return {
        "mode": mode,
        "lines": lines,
        "kind": kind,
        "requests": len(samples),
        "latency_ms": {f"p{q}": percentile(latencies, q) for q in PERCENTILES},
        "overhead_ms": percentile(beyond, 50),
        **work_of(samples),
    }


def others(samples: Sequence[Sample]) -> dict[str, int]:
    """How many requests ended before the model was asked, by reason."""
    reasons = [one.source for one in samples if one.source not in ("model", LIVE)]
    return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


def client_table(summaries: Sequence[Mapping[str, Any]]) -> str:
    """The groups as plain text; `server` is the median of what an answer took beyond the model."""
    header = ["", "lines", "n", "p50 ms", "p90 ms", "p95 ms", "p99 ms", "server", "shown"]
    header += WORK
    rows = []
    for one in summaries:
        form = ".2f" if one["kind"] == LIVE else ".0f"
        rows.append(
            [
                f"{one['mode']} {one['kind']}",
                str(one["lines"]),
                str(one["requests"]),
                *(number(one["latency_ms"][f"p{q}"], form) for q in PERCENTILES),
                number(one["overhead_ms"], ".1f"),
                number(one["shown"], ".0%"),
                *work_cells(one),
            ]
        )
    return table(header, rows)


def mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def growth(rows: Sequence[Mapping[str, int]]) -> float | None:
    """Bytes that `resident` grows by with each of `requests`, by least squares; None for fewer than two rows."""
    if len(rows) < 2:
        return None
    return linear_regression(
        [float(row["requests"]) for row in rows], [float(row["resident"]) for row in rows]
    ).slope


def memory_note(rows: Sequence[Mapping[str, int]]) -> str:
    """How memory went: the first row, the last, and the growth over all and over the second half."""
    if not rows:
        return "too few requests to tell how memory goes"
    first, last = (f"{mib(row['resident'])} after {row['requests']}" for row in (rows[0], rows[-1]))
    grown = [
        "unknown" if slope is None else f"{1000 * slope / 2**20:+.1f} MiB"
        for slope in (growth(rows), growth(rows[len(rows) // 2 :]))
    ]
    return (
        f"first {first} requests, last {last}; "
        f"growth in 1,000 requests: {grown[0]}, in the second half {grown[1]}"
    )


def load(averages: Sequence[float] | None) -> str:
    """The load average in words."""
    return "unknown" if averages is None else " / ".join(f"{one:.1f}" for one in averages)
