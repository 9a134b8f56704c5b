"""Which of the cases are kept, so that their kinds stand in a fixed ratio.

Knows nothing of files or packages.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

MIX = {"jump": 0.35, "mid-typing": 0.25, "fim": 0.15, "done": 0.15, "idle": 0.10}
UNLINKED_JUMPS = 0.25


def select(kinds: Sequence[tuple[str, bool | None]], rng: random.Random) -> list[int]:
    """Draw among cases, given as (kind, linked), so that kinds stand as in `MIX`; as many as linked jumps allow.

    Unlinked jumps (their target cannot be guessed, so silence is the good answer) come on top, at most
    `UNLINKED_JUMPS` as many as linked ones. Returns rising indices.
    """
    by_kind: dict[str, list[int]] = {kind: [] for kind in MIX}
    unlinked: list[int] = []
    for index, (kind, linked) in enumerate(kinds):
        (unlinked if kind == "jump" and not linked else by_kind[kind]).append(index)
    total = len(by_kind["jump"]) / MIX["jump"]
    room = round(UNLINKED_JUMPS * len(by_kind["jump"]))
    kept = rng.sample(unlinked, min(len(unlinked), room))
    for kind, share in MIX.items():
        members = by_kind[kind]
        kept += rng.sample(members, min(len(members), round(share * total)))
    return sorted(kept)
