"""Draws what several runs cost and give.

Responsible for one picture of two parts: quality against forward passes for each token, a point a
run with its number in the legend, and accept rate against show rate over all thresholds, a line a
run. It knows nothing of how figures come about. Needs matplotlib, which comes with the `training` extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from model.evaluation.gate_metrics import show_curve
from model.evaluation.score import Score
from model.targets import check_file

K = TypeVar("K")

FORMATS = (".svg", ".png", ".pdf")
MAY_BE_SHOWN = (None, "low-confidence")
# Numbers of neighbouring points go to different heights, in points of the page.
HEIGHTS = (16, -16, 32, -32)
# Percent around the best and the worst quality, so that differences do not look larger than they are.
MARGIN = 5.0
TITLES = {"fim": "fill in the middle", "next_edit": "next edit"}


class PictureError(Exception):
    """There can be no picture; the message is for the user."""


def check(path: Path) -> None:
    """Raises `PictureError` or `TargetError` where the picture could not be drawn, before the work that it shows."""
    if path.suffix.lower() not in FORMATS:
        raise PictureError(f"--picture {path}: the name must end in {', '.join(FORMATS)}")
    check_file(path)
    if find_spec("matplotlib") is None:
        raise PictureError("a picture needs matplotlib: pip install 'redraft[training]'")


def quality(summary: Mapping[str, Any]) -> tuple[str, float | None]:
    """The figure that stands for a group's quality, and its name."""
    if "pass_at_1" in summary:
        return "pass@1", summary["pass_at_1"]
    return "exact match", summary.get("candidate", {}).get("em")


def points(
    runs: Mapping[str, Mapping[str, Mapping[str, Any]]], mode: str
) -> dict[str, tuple[float, float]]:
    """(forward passes for each token, quality in percent) of every run that has both."""
    found = {}
    for name, groups in runs.items():
        summary = groups.get(mode, {})
        rate, value = summary.get("tokens_per_forward"), quality(summary)[1]
        if rate and value is not None:
            found[name] = (1 / rate, 100 * value)
    return found


def curve(scores: Sequence[Score], mode: str) -> list[tuple[float, float]]:
    """(show rate, accept rate) in percent for every threshold on the confidence."""
    of_mode = [score for score in scores if score.mode == mode]
    candidates = [
        score
        for score in of_mode
        if score.error is None and score.proposed and score.suppressed in MAY_BE_SHOWN
    ]
    confidences = [score.confidence for score in candidates]
    accepted = [score.accepted for score in candidates]
    return [
        (100 * show, 100 * accept)
        for _, show, accept in show_curve(confidences, accepted, len(of_mode))
    ]


def together(places: Mapping[str, K]) -> dict[K, list[str]]:
    """The names of what is at the same place, in order."""
    found: dict[K, list[str]] = {}
    for name, place in places.items():
        found.setdefault(place, []).append(name)
    return found


def draw(
    path: Path,
    runs: Mapping[str, Mapping[str, Mapping[str, Any]]],
    scores: Mapping[str, Sequence[Score]],
) -> None:
    """Draw summaries (run to `score.grouped`) and the scores that they sum up; a row a mode."""
    from matplotlib.figure import Figure

    modes = [mode for mode in TITLES if any(mode in groups for groups in runs.values())]
    figure = Figure(figsize=(14, 5 * len(modes)), layout="constrained")
    for row, mode in enumerate(modes):
        cost, gate = (figure.add_subplot(len(modes), 2, 2 * row + side) for side in (1, 2))
        found = together(points(runs, mode))
        for number, (x, y) in enumerate(sorted(found), 1):
            label = f"{number}  " + "\n".join(found[x, y])
            cost.scatter(x, y, color=f"C{number % 10}", label=label)
            cost.annotate(
                str(number),
                (x, y),
                (0, HEIGHTS[number % len(HEIGHTS)]),
                textcoords="offset points",
                ha="center",
                va="center",
                arrowprops={"arrowstyle": "-", "color": "0.7"},
            )
        if found:
            lowest, highest = min(y for _, y in found), max(y for _, y in found)
            cost.set_ylim(max(0, lowest - MARGIN), min(100, highest + MARGIN))
            cost.margins(x=0.15)
        named = {quality(groups[mode])[0] for groups in runs.values() if mode in groups}
        cost.set(title=f"{TITLES[mode]}: quality and cost", ylabel=f"{' or '.join(named)}, %")
        cost.set(xlabel="forward passes for each token")
        curves = together({name: tuple(curve(scores[name], mode)) for name in runs})
        for line, names in curves.items():
            if line:
                marker = "o" if len(line) == 1 else ""
                gate.plot(*zip(*line, strict=True), marker=marker, label="\n".join(names))
        gate.set(title=f"{TITLES[mode]}: every threshold", xlabel="shown, % of all cases")
        gate.set(ylabel="accepted, % of shown", ylim=(0, 102))
        for axes in (cost, gate):
            axes.grid(alpha=0.3)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(path)
