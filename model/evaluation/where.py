"""Whether the place of the next edit was found: lines named by a predictor against lines that change.

Responsible for which lines count as right and for the rank of the first right one. It knows nothing
of cases, contents or how lines are chosen. Lines count from 0, in the text before the edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diffing.hunks import change_groups


def changed_lines(original: str, after: str) -> list[int]:
    """The lines that a change replaces or deletes; for an insertion the two lines that it parts."""
    found: set[int] = set()
    for group in change_groups(original, after):
        if group.old_lines:
            found.update(range(group.old_start, group.old_start + len(group.old_lines)))
        else:
            found.update({max(0, group.old_start - 1), group.old_start})
    return sorted(found)


def right_lines(original: str, answers: Iterable[str]) -> set[int]:
    """Where any of the right answers changes something."""
    return {line for answer in answers for line in changed_lines(original, answer)}


def named_lines(row: Mapping[str, Any], original: str) -> list[int]:
    """The lines that a prediction row names, most likely first.

    One that names none is taken by its candidate, which stands for the first line that it changes.
    """
    if row.get("where"):
        return [int(line) for line, _ in row["where"]]
    groups = change_groups(original, row.get("candidate", original))
    return [groups[0].old_start] if groups else []


def rank(named: Sequence[int], right: set[int]) -> int | None:
    """Which of the named lines is the first right one, counted from 1; None when none is."""
    return next((place for place, line in enumerate(named, 1) if line in right), None)
