"""Prints scores and times as plain text tables and writes them as JSON.

Responsible for what a person reads. It knows nothing of how figures come about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Column = tuple[str, str, str]

WIDTH = 100

COST_COLUMNS: list[Column] = [
    ("forwards", "forwards", ".2f"),
    ("steps", "denoising_steps", ".2f"),
    ("tokens", "tokens", ".1f"),
    ("tok/fwd", "tokens_per_forward", ".2f"),
    ("p50 ms", "latency_ms.p50", ".0f"),
    ("p90 ms", "latency_ms.p90", ".0f"),
]
FIM_COLUMNS: list[Column] = [
    ("n", "cases", "d"),
    ("errors", "errors", "d"),
    ("EM", "candidate.em", "%"),
    ("EM strip", "candidate.em_stripped", "%"),
    ("pass@1", "pass_at_1", "%"),
    ("edit sim", "candidate.similarity", "%"),
    ("shown", "gate.show", "%"),
    ("accept", "gate.accept", "%"),
    ("AUROC", "gate.auroc", ".2f"),
    *COST_COLUMNS,
]
NEXT_EDIT_COLUMNS: list[Column] = [
    ("n", "cases", "d"),
    ("errors", "errors", "d"),
    ("EM", "content.em", "%"),
    ("EM-ws", "content.em_ws", "%"),
    ("dChrF", "content.delta_chrf", ".1f"),
    ("top 1", "where.top1", "%"),
    ("top 3", "where.top3", "%"),
    ("shown", "gate.show_wanted", "%"),
    ("accept", "gate.accept", "%"),
    ("quiet", "gate.quiet", "%"),
    ("undoes", "gate.reversal", "%"),
    ("saved", "keystrokes.saved", "%"),
    ("cand EM", "candidate.em", "%"),
    ("cand ws", "candidate.em_ws", "%"),
    ("cand dChrF", "candidate.delta_chrf", ".1f"),
    ("AUROC", "gate.auroc", ".2f"),
    *COST_COLUMNS,
]
NOTES = {
    "fim": "pass@1, EM: what it would insert, shown or not; accept: of what is shown",
    "next_edit": "top 1, 3: the right line is named first, or among three; shown: of the edits that are "
    "wanted;\naccept: of all shown; quiet: of the cases where silence is right; saved: keystrokes",
}
TITLES = {"fim": "Fill in the middle", "next_edit": "Next edit"}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell, the first to the left and the others to the right."""
    widths = [max(len(row[index]) for row in [header, *rows]) for index in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def tables_within(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int = WIDTH
) -> list[str]:
    """One table, or as few as fit in `width` under each other, about equally wide.

    Each has the first column and at least one of the others.
    """
    sizes = [max(len(row[index]) for row in [header, *rows]) for index in range(len(header))]
    parts = columns_within(sizes, width)
    for narrower in range(width):
        if len(even := columns_within(sizes, narrower)) == len(parts):
            parts = even
            break
    return [
        table([header[i] for i in part], [[row[i] for i in part] for row in rows]) for part in parts
    ]


def columns_within(sizes: Sequence[int], width: int) -> list[list[int]]:
    """The columns of each table when every one takes as many as it can; all have the first."""
    parts = [[0]]
    used = sizes[0]
    for index in range(1, len(sizes)):
        used += 2 + sizes[index]
        if used > width and len(parts[-1]) > 1:
            parts.append([0])
            used = sizes[0] + 2 + sizes[index]
        parts[-1].append(index)
    return parts


def cell(summary: Mapping[str, Any], path: str, form: str) -> str:
    """One figure, `-` when there is none. `%` multiplies by 100 and shows one decimal."""
    value: Any = summary
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is None:
        return "-"
    return f"{100 * value:.1f}" if form == "%" else format(value, form)


def score_tables(runs: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The summaries of several runs (name to `score.grouped`) beside each other, a table per mode.

    Columns in which no run has a figure, and errors where there are none, are left out. Shares are
    in percent. A table that is wider than `WIDTH` goes on in further ones.
    """
    parts = []
    for mode, columns in (("fim", FIM_COLUMNS), ("next_edit", NEXT_EDIT_COLUMNS)):
        groups: list[str] = []
        for run in runs.values():
            groups += [name for name in run if name.split("/")[0] == mode and name not in groups]
        if not groups:
            continue
        lines = [
            [run if group == mode else f"{run} {group.partition('/')[2]}", runs[run][group]]
            for group in groups
            for run in runs
            if group in runs[run]
        ]
        cells = [[str(name), *(cell(s, c[1], c[2]) for c in columns)] for name, s in lines]  # type: ignore[arg-type]
        header = ["", *(column[0] for column in columns)]
        used = [0]
        for index, name in enumerate(header[1:], 1):
            nothing = ("-", "0") if name == "errors" else ("-",)
            if any(row[index] not in nothing for row in cells):
                used.append(index)
        shown = tables_within([header[i] for i in used], [[row[i] for i in used] for row in cells])
        parts.append(f"{TITLES[mode]}\n" + "\n\n".join(shown) + f"\n{NOTES[mode]}")
    return "\n\n".join(parts)


def write_json(report: Mapping[str, Any], path: Path) -> None:
    """Write a report; every number in it is finite or null."""
    text = json.dumps(report, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
