"""Draws how long answers took: a bar from the median to the 99th percentile for every group, on a logarithmic scale.

Responsible for one picture. It knows nothing of what the groups are. Needs matplotlib, which comes with the `training`
extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

Times = Mapping[str, float]
"""`p50`, `p90` and `p99` in milliseconds."""

WHOLE_MS = 10
BUDGETS_MS = {150: "budget p50", 300: "budget p95"}


def draw(path: Path, title: str, groups: Sequence[tuple[str, Times]]) -> None:
    """Draw the groups from top to bottom, each with its name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.5 + 0.3 * len(groups)), layout="constrained")
    axes = figure.add_subplot()
    places = list(range(len(groups)))
    for place, (_, times) in zip(places, groups, strict=True):
        axes.barh(place, times["p50"], color="C0", height=0.6)
        axes.plot([times["p50"], times["p99"]], [place, place], color="0.3", linewidth=1)
        axes.plot(times["p90"], place, "|", color="C3", markersize=9)
        axes.plot(times["p99"], place, "|", color="0.3", markersize=6)
        label = f"{times['p50']:,.2f}" if times["p50"] < WHOLE_MS else f"{times['p50']:,.0f}"
        end = (max(times["p50"], times["p99"]), place)
        axes.annotate(label, end, (4, 0), textcoords="offset points", va="center", fontsize=7)
    for budget, name in BUDGETS_MS.items():
        axes.axvline(budget, color="C2", linestyle=":", linewidth=1)
        axes.annotate(name, (budget, -0.8), fontsize=6, color="C2")
    axes.set_yticks(places, [name for name, _ in groups], fontsize=8)
    axes.set(xscale="log", title=title)
    axes.set(xlabel="milliseconds: bar and number p50, red mark p90, end p99")
    axes.invert_yaxis()
    axes.grid(alpha=0.3, axis="x")
    figure.savefig(path)
