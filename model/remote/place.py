"""Where a service is asked to edit: around the cursor, or where a rule sees the next edit.

Responsible for one choice of place. A service rewrites a few lines that it is given; the rules that draft edits on this
machine know which lines a change elsewhere leaves behind. Knows nothing of what is asked.
"""

from __future__ import annotations

from model.context import region_around
from model.draft import drafts
from model.protocol import Request

LIKELY = -2.0
"""Least log-odds of a draft that is worth a request of its own, away from the cursor."""


def place_to_edit(request: Request, max_lines: int) -> int:
    """An offset into `request.text`: the cursor, unless all likely drafts are outside of the lines around it."""
    likely = [draft for draft in drafts(request) if draft.score >= LIKELY]
    near = region_around(request.text, request.cursor, max_lines)
    starts = [draft.edit.start for draft in likely]
    if not starts or any(request.text.count("\n", 0, at) in near for at in starts):
        return request.cursor
    return starts[0]
