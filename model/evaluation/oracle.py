"""Whether a user would have accepted a suggestion: the simulated user of the evaluation.

Responsible for the acceptance rule, fixed before any training so that nothing is tuned to it. It
knows nothing of cases, confidences or predictors.

A suggestion is accepted when it changes something and
- each of its change groups is a group of one right answer (blanks at line ends ignored), or
- it is one such group begun but not finished, cut at a line end, or
- it keeps to a right answer: kept rate >= 0.9, recall >= 0.5, reversal <= 0.1, and Python still
  parses where it does in the right answer.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

from diffing.hunks import Hunk, before_newest, change_groups
from diffing.reversal import reversal_ratio
from model.evaluation.metrics import kept_rate

KEPT = 0.9
LENIENT_KEPT = 0.7
RECALL = 0.5
REVERSAL = 0.1


def accepts(
    original: str,
    actual: str,
    expected: Sequence[str],
    history: Sequence[str] = (),
    *,
    python: bool = False,
    kept: float = KEPT,
) -> bool:
    """Whether the change from `original` to `actual` would be accepted.

    `expected` are the right answers as whole texts; one that equals `original` wants no edit and
    accepts none. `history` are unified diffs of the same file, oldest first.
    """
    if actual == original:
        return False
    given = change_groups(original, actual)
    for answer in expected:
        if answer == original:
            continue
        right = change_groups(original, answer)
        if all(any(same(group, other) for other in right) for group in given):
            return True
        if len(given) == 1 and any(begun(given[0], other) for other in right):
            return True
        rates = kept_rate(original, actual, answer)
        if (
            rates.kept >= kept
            and rates.recall >= RECALL
            and reversal(original, actual, history) <= REVERSAL
            and (not python or parses(actual) or not parses(answer))
        ):
            return True
    return False


def same(left: Hunk, right: Hunk) -> bool:
    """The same lines are replaced by the same lines, blanks at line ends ignored."""
    return (
        left.old_start == right.old_start
        and len(left.old_lines) == len(right.old_lines)
        and stripped(left.new_lines) == stripped(right.new_lines)
    )


def begun(given: Hunk, right: Hunk) -> bool:
    """The given group does the first lines of the right one, at least one with text, and no
    more."""
    lines = stripped(given.new_lines)
    return (
        given.old_start == right.old_start
        and len(given.old_lines) <= len(right.old_lines)
        and any(lines)
        and lines == stripped(right.new_lines)[: len(lines)]
    )


def stripped(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def reversal(original: str, actual: str, history: Sequence[str]) -> float:
    """Share of the change that takes back the newest diff that fits the text; 0 without one."""
    before = before_newest(original, history)
    return 0.0 if before is None else reversal_ratio((before, original), actual)


def parses(text: str) -> bool:
    """Whether the text is Python by itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
