"""Whether a prediction takes back what the user has just done.

Responsible for measuring it between texts. Knows nothing of how predictions are made or suppressed.

The measure follows the reversal ratio of Zed's edit prediction metrics: characters of the
prediction that delete what the user added or bring back what he deleted, as a share of all
characters that it adds or deletes. White space does not count unless there is nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher

from diffing.edits import Edit, minimal_edits
from diffing.hunks import reverse_unified

# Share of a prediction that must take something back for it to count as undoing.
UNDO_SHARE = 0.75
# A prediction that only deletes undoes if it deletes this share of what was typed; less may be a
# correction.
UNDO_DELETED_SHARE = 0.5
# Texts longer than this are compared as wholes, not word by word.
MAX_COMPARED_CHARS = 20_000

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Reversal:
    """Characters of a prediction: all that it changes, and those that take back what the user did.

    `added` is what the user had added and `removed_again` the part of it that the prediction
    deletes again; `restored` is what it brings back of what the user had deleted.
    """

    predicted: int
    added: int
    removed_again: int
    restored: int

    @property
    def ratio(self) -> float:
        """Share of the prediction that takes back, 0 to 1."""
        return (self.removed_again + self.restored) / self.predicted if self.predicted else 0.0


def reversal_ratio(last: str | tuple[str, str], predicted: str, *, now: str | None = None) -> float:
    """Share (0 to 1) of the prediction's characters that undo the user's last edit.

    `last` is (text before the edit, text now), or the unified diff of the edit, and then `now` must
    be given. ValueError when the diff does not lead to `now`.
    """
    before, now = _texts(last, now)
    return measure(before, now, predicted).ratio


def undoes_last_edit(before: str, now: str, predicted: str) -> bool:
    """Whether `predicted` mainly takes back the user's last edit, which led from `before` to `now`.

    Restoring what he has just deleted counts in full and in part, deleting what he has just typed
    where it is at least half of it. Text that he moves elsewhere is not restored, and mending a
    word is not undoing it.
    """
    if before == now or predicted == now:
        return False
    if predicted == before:
        return True
    found = measure(before, now, predicted)
    if found.ratio < UNDO_SHARE:
        return False
    return bool(found.restored) or found.removed_again >= UNDO_DELETED_SHARE * found.added


def measure(before: str, now: str, predicted: str) -> Reversal:
    """Compare what led from `before` to `now` with what leads from `now` to `predicted`."""
    user, prediction = _fine_edits(before, now), _fine_edits(now, predicted)
    weigh: Callable[[str], int] = _ink
    if not any(_ink(now[e.start : e.end]) + _ink(e.new_text) for e in prediction):
        weigh = len
    added: list[tuple[int, int]] = []
    deleted: list[tuple[int, int, str]] = []  # where in `now` the text is missing
    shift = 0
    for edit in user:
        start = edit.start + shift
        end = start + len(edit.new_text)
        shift += len(edit.new_text) - (edit.end - edit.start)
        if edit.new_text:
            added.append((start, end))
        if edit.end > edit.start:
            deleted.append((start, end, before[edit.start : edit.end]))
    total = removed_again = restored = 0
    for edit in prediction:
        total += weigh(now[edit.start : edit.end]) + weigh(edit.new_text)
        for start, end in added:
            low, high = max(start, edit.start), min(end, edit.end)
            removed_again += weigh(now[low:high]) if low < high else 0
        if edit.new_text:
            missing = "".join(text for s, e, text in deleted if _touch(now, s, e, edit))
            restored += weigh(_common(missing, edit.new_text))
    return Reversal(total, sum(weigh(now[s:e]) for s, e in added), removed_again, restored)


def _texts(last: str | tuple[str, str], now: str | None) -> tuple[str, str]:
    if isinstance(last, tuple):
        return last
    if now is None:
        raise ValueError("with a diff the present text must be given too")
    return reverse_unified(now, last), now


def _ink(text: str) -> int:
    """Number of characters that are not white space."""
    return sum(map(len, text.split()))


def _fine_edits(old: str, new: str) -> list[Edit]:
    """The change from `old` to `new`, word by word."""
    fine = []
    for edit in minimal_edits(old, new):
        before, after = old[edit.start : edit.end], edit.new_text
        if not before or not after or len(before) + len(after) > MAX_COMPARED_CHARS:
            fine.append(edit)
            continue
        a, b = _WORD.findall(before), _WORD.findall(after)
        at = edit.start
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, False).get_opcodes():
            length = sum(map(len, a[i1:i2]))
            if tag != "equal":
                fine.append(Edit(at, at + length, "".join(b[j1:j2])))
            at += length
    return fine


def _touch(now: str, start: int, end: int, edit: Edit) -> bool:
    """Whether nothing but white space lies between a place where text is missing and an edit."""
    if edit.start > end:
        return not now[end : edit.start].strip()
    return edit.end >= start or not now[edit.end : start].strip()


def _common(missing: str, inserted: str) -> str:
    """What the inserted text has in common with the missing one: words, or letters of one word."""
    if not missing:
        return ""
    if missing == inserted:
        return missing
    if max(len(missing), len(inserted)) > MAX_COMPARED_CHARS:
        return ""
    short = len(_WORD.findall(missing)) == 1 or len(_WORD.findall(inserted)) == 1
    a: list[str] | str = missing if short else _WORD.findall(missing)
    b: list[str] | str = inserted if short else _WORD.findall(inserted)
    if max(len(a), len(b)) > 4_000:
        return ""
    blocks = SequenceMatcher(None, a, b, False).get_matching_blocks()
    return "".join("".join(a[block.a : block.a + block.size]) for block in blocks)
