"""Whether edits can be drawn as ghost text at the cursor, and as which single replacement.

Responsible for the one form that editors agree on: text that begins at the cursor, replaces nothing
before it and at most the rest of its line. Pure text; knows nothing of LSP or of suggestions.

The replacement begins exactly at the cursor (or at what the completion menu would replace):
Neovim 0.12 draws an insertion in line only when its range is empty, and lays it over the text that
follows otherwise; VS Code accepts both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from diffing.edits import Edit, apply


class Selection(NamedTuple):
    """What the completion menu would put in place of `start..end` (code points)."""

    start: int
    end: int
    text: str


def ghost_text(
    text: str, cursor: int, edits: Sequence[Edit], selection: Selection | None = None
) -> Edit | None:
    """The edits as one replacement that starts at the cursor; None when they are not of that form.

    With a selection it starts where that starts, and its text starts with the selected text.
    """
    if not edits:
        return None
    begin = cursor if selection is None else selection.start
    reach = [cursor] if selection is None else [selection.start, selection.end]
    low = min(edits[0].start, *reach, begin)
    high = max(edits[-1].end, *reach, begin)
    old = text[low:high]
    if "\n" in old or "\r" in old:
        return None
    new = apply(old, [Edit(e.start - low, e.end - low, e.new_text) for e in edits])
    kept = text[low:begin]
    if not new.startswith(kept):
        return None
    new = new[len(kept) :]
    if selection is not None and not (
        new.startswith(selection.text) and len(new) > len(selection.text)
    ):
        return None
    return Edit(begin, high, new)
