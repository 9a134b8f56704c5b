"""Draws a gate before and after tuning.

Responsible for one picture of two parts: how often suggestions of each confidence were accepted (reliability), and
accept rate against show rate over all thresholds. Needs matplotlib, which comes with the `training` extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from model.evaluation.gate_metrics import show_curve

BINS = 5

Pairs = Sequence[tuple[float, bool]]


def reliability(pairs: Pairs, bins: int = BINS) -> list[tuple[float, float, int]]:
    """(mean probability, share accepted, suggestions) of bins with equally many suggestions, the least sure first."""
    ordered = sorted(pairs)
    found = []
    for number in range(bins):
        part = ordered[len(ordered) * number // bins : len(ordered) * (number + 1) // bins]
        if part:
            sure = sum(p for p, _ in part) / len(part)
            found.append((sure, sum(a for _, a in part) / len(part), len(part)))
    return found


def draw(path: Path, gates: Mapping[str, Pairs]) -> None:
    """Draw the suggestions of each gate; the file's ending says which format."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    sure, rates = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    sure.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="calibrated")
    for name, pairs in gates.items():
        points = reliability(pairs)
        sure.plot([x for x, _, _ in points], [y for _, y, _ in points], marker="o", label=name)
        curve = show_curve([p for p, _ in pairs], [a for _, a in pairs], max(1, len(pairs)))
        rates.plot([100 * x for _, x, _ in curve], [100 * y for _, _, y in curve], label=name)
    sure.set(title="reliability", xlabel="probability by the gate", ylabel="share accepted")
    rates.set(title="every threshold", xlabel="shown, %", ylabel="accepted, % of shown")
    rates.set_ylim(0, 102)
    for axes in (sure, rates):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(path)
