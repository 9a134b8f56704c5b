"""What a change costs to type: CoEditor's keystroke model (Wei et al. 2024, arXiv 2305.18584).

Responsible for the cost of turning one text into another by hand, for what an accepted
suggestion saves of it, and for the time that reading one takes. It knows nothing of cases or
predictors.

Going over text that stays is free. A character typed or deleted costs 1, moving the cursor its
distance but at most `JUMP`, and a range of any length is deleted for 2: one key to begin the
selection, one to delete it. The cursor comes to every change group from far away. So a deleted line
or range costs 6 with the jump, and a line added costs its length, its line end and 4.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from diffing.hunks import change_groups

JUMP = 4
ACCEPT = 1
READ = 3
"""Keys that looking at a suggestion and turning it down is worth."""

KEY_S = 60 / 450
"""Seconds from one key to the next while typing."""

READ_CHARACTERS_S = 25.0
"""Characters read in a second: 238 words of English prose a minute (Brysbaert 2019, Journal of
Memory and Language 109, 104047), a word and its blank taken as six to seven characters."""

MAX_TABLE = 4_000_000


def reading_seconds(size: int) -> float:
    """What a user spends on a suggestion of `size` characters, taken or not: a look, and reading
    it."""
    return READ * KEY_S + size / READ_CHARACTERS_S


def typing_cost(before: str, after: str) -> int:
    """Keystrokes from one text to the other, change group by change group."""
    return sum(
        group_cost("".join(group.old_lines), "".join(group.new_lines))
        for group in change_groups(before, after)
    )


@lru_cache(maxsize=4096)
def group_cost(old: str, new: str) -> int:
    """The cheapest way from `old` to `new`, the cursor being far from both.

    Row by row over `old`, `near[d, j]` is the least cost of having made `new[:j]` with the cursor
    `d` characters away (`JUMP` stands for all that is farther), `deleting[j]` the same inside a
    range that is being deleted. Beyond `MAX_TABLE` pairs of characters all of `old` is deleted as
    one range and `new` typed.
    """
    if old == new:
        return 0
    if len(old) * len(new) > MAX_TABLE:
        return JUMP + 2 + len(new)
    columns = np.arange(len(new) + 1)
    letters = np.array([ord(char) for char in new], dtype=np.int64)
    never = 4 * (len(old) + len(new) + JUMP)
    near = np.full((JUMP + 1, len(new) + 1), never)
    near[JUMP, 0] = 0
    deleting = np.full(len(new) + 1, never)
    _settle(near, deleting, columns)
    for char in old:
        passed = np.full_like(near, never)
        matches = np.flatnonzero(letters == ord(char))
        passed[1:, matches + 1] = near[:-1, matches]
        passed[JUMP, matches + 1] = near[JUMP - 1 :, matches].min(axis=0)
        passed[0] = near[0] + 1
        near = passed
        _settle(near, deleting, columns)
    return int(near[:, -1].min())


def _settle(near: np.ndarray, deleting: np.ndarray, columns: np.ndarray) -> None:
    """The moves that stay in a row: end a deletion, bring the cursor here, type, begin a
    deletion."""
    here = np.minimum(near[0], deleting + 1)
    for distance in range(1, JUMP + 1):
        np.minimum(here, near[distance] + distance, out=here)
    near[0] = np.minimum.accumulate(here - columns) + columns
    np.minimum(deleting, near[0] + 1, out=deleting)


def saving(original: str, actual: str, answers: tuple[str, ...]) -> tuple[int, int]:
    """(keystrokes by hand, of these saved) if `actual` is accepted on the way to a right answer.

    The answer is the one of which the largest share is saved; accepting takes `ACCEPT` keys. What
    is saved may be negative.
    """
    best = (0, 0)
    for answer in answers:
        by_hand = typing_cost(original, answer)
        saved = by_hand - ACCEPT - typing_cost(actual, answer)
        if by_hand and (not best[0] or saved * best[0] > best[1] * by_hand):
            best = (by_hand, saved)
    return best
