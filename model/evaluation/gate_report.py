"""What several gates would have shown one simulated user, side by side.

Responsible for walking the same pauses with each gate, for ranking and calibration of their probabilities, for ratios
with intervals (paired, clustered by release), and for the table. Knows nothing of how gates are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from model.candidate import judged
from model.evaluation.bootstrap import clustered
from model.evaluation.gate_metrics import auroc, expected_calibration_error
from model.evaluation.simulate import Opportunity, Step, Sums, by_gate, ratios, sums, walk
from model.gate import Gate

Interval = tuple[float, float]


@dataclass(frozen=True)
class Run:
    """One gate's walk through all pauses."""

    name: str
    steps: tuple[Step, ...]
    figures: Mapping[str, Any]
    ranking: Mapping[str, tuple[int, float | None, float | None]]


def run_gate(
    name: str,
    gate: Gate,
    chances: Sequence[Opportunity],
    setting: str = "balanced",
    speed: float | None = None,
) -> Run:
    steps = tuple(walk(chances, by_gate(gate, setting), speed))
    return Run(name, steps, sums(steps).figures(), ranking(gate, chances))


def ranking(
    gate: Gate, chances: Sequence[Opportunity]
) -> dict[str, tuple[int, float | None, float | None]]:
    """Suggestions, AUROC and expected calibration error, of all and by source, mode and kind."""
    groups: dict[str, list[tuple[float, bool]]] = {}
    for chance in chances:
        found = judged(gate, [offer.candidate for offer in chance.offers])
        for one, offer in zip(found, chance.offers, strict=True):
            pair = (one.confidence, offer.accepted)
            for name in ("all", one.source, chance.mode, chance.kind):
                groups.setdefault(name, []).append(pair)
    table = {}
    for name, pairs in groups.items():
        scores, labels = [p for p, _ in pairs], [a for _, a in pairs]
        table[name] = (
            len(pairs),
            auroc(scores, labels),
            expected_calibration_error(scores, labels),
        )
    return table


def compared(before: Run, after: Run, draws: int = 1000) -> dict[str, tuple[float, Interval]]:
    """The four ratios of two runs and the gain in utility, with 95 % intervals over releases."""
    clusters: dict[str, tuple[list[Step], list[Step]]] = {}
    for side, run in enumerate((before, after)):
        for step in run.steps:
            clusters.setdefault(step.chance.release, ([], []))[side].append(step)
    counted = {name: (sums(old), sums(new)) for name, (old, new) in clusters.items()}

    def figures(drawn: Sequence[tuple[Sums, Sums]]) -> dict[str, float | None]:
        old, new = (added([pair[side] for pair in drawn]) for side in (0, 1))
        gain = new.utility() - old.utility()
        return {**ratios(old.figures(), new.figures()), "utility gained": gain}

    whole = figures(list(counted.values()))
    spread = clustered(counted, figures, draws)
    return {
        name: (value, spread[name])
        for name, value in whole.items()
        if value is not None and name in spread
    }


def added(parts: Sequence[Sums]) -> Sums:
    """The numbers of several walks together, but for those by kind."""
    total = Sums()
    for part in parts:
        for name in vars(total):
            if name != "by_kind":
                setattr(total, name, getattr(total, name) + getattr(part, name))
    return total


def table(runs: Sequence[Run]) -> str:
    """Figures, ranking and shown by kind of every run, then the ratios of each to the first."""
    lines = [
        "| gate | pauses | shown | accepted | accept rate | unwanted | quiet | utility | keys saved | late |"
        " reading, s each | time saved |"
    ]
    lines.append("| --- |" + " ---: |" * 11)
    for run in runs:
        f = run.figures
        lines.append(
            f"| {run.name} | {f['pauses']} | {f['shown']} | {f['accepted']} | "
            f"{percent(f['accept_rate'])} | {f['unwanted']} | {percent(f['quiet'])} | "
            f"{f['utility']:.2f} | {percent(f['keys_saved'])} | {f['late']} | "
            f"{two(f['reading'])} | {percent(f['time_saved'])} |"
        )
    names = sorted({name for run in runs for name in run.ranking})
    lines += ["", "| AUROC, ECE | " + " | ".join(names) + " |"]
    lines.append("| --- |" + " ---: |" * len(names))
    for run in runs:
        cells = [run.ranking.get(name, (0, None, None)) for name in names]
        lines.append(
            f"| {run.name} | " + " | ".join(f"{two(a)}, {three(e)}" for _, a, e in cells) + " |"
        )
    kinds = sorted({step.chance.kind for run in runs for step in run.steps})
    lines += ["", "| shown, accepted | " + " | ".join(kinds) + " | linked | not linked |"]
    lines.append("| --- |" + " ---: |" * (len(kinds) + 2))
    for run in runs:
        groups = [[s for s in run.steps if s.chance.kind == kind] for kind in kinds]
        groups += [[s for s in run.steps if s.chance.linked is tie] for tie in (True, False)]
        lines.append(f"| {run.name} | " + " | ".join(map(of_pauses, groups)) + " |")
    for run in runs[1:]:
        told = (
            f"{name} {value:.2f} ({low:.2f} to {high:.2f})"
            for name, (value, (low, high)) in compared(runs[0], run).items()
        )
        lines += ["", f"{run.name} against {runs[0].name}: " + ", ".join(told)]
    return "\n".join(lines)


def of_pauses(steps: Sequence[Step]) -> str:
    shown = sum(step.shown is not None for step in steps)
    return f"{shown}, {sum(step.accepted for step in steps)} of {len(steps)}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
