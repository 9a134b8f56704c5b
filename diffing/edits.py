"""Edits of a text: apply, invert, compose, shrink, and follow what the user types meanwhile.

Responsible for changes as code point offsets. Knows nothing of files, LSP encodings or models.

A "change" is a tuple of edits that are sorted, do not overlap and all count offsets of the text
before the change.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diffing.line_diff import changed_ranges
from diffing.positions import split_lines

_PAIRS = {")": "(", "]": "[", "}": "{", '"': '"', "'": "'", "`": "`"}


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `text[start:end]` by `new_text`.

    Offsets count code points of the text before; `end` is exclusive.
    """

    start: int
    end: int
    new_text: str


def check(edits: Iterable[Edit], length: int | None = None) -> None:
    """ValueError unless `edits` are sorted, do not overlap and lie inside the text.

    `length` is that of the text in code points; None leaves it open.
    """
    previous = 0
    for edit in edits:
        if edit.end < edit.start or edit.start < 0:
            raise ValueError(f"edit {edit.start}..{edit.end} is not a range")
        if edit.start < previous:
            raise ValueError(f"edit {edit.start}..{edit.end} overlaps what ends at {previous}")
        previous = edit.end
    if length is not None and previous > length:
        raise ValueError(f"edit ends at {previous} in a text of {length} characters")


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text after the change.

    ValueError when edits overlap, are unsorted or lie outside of the text.
    """
    edits = tuple(edits)
    check(edits, len(text))
    parts = []
    position = 0
    for edit in edits:
        parts.append(text[position : edit.start])
        parts.append(edit.new_text)
        position = edit.end
    parts.append(text[position:])
    return "".join(parts)


def invert(text: str, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The change that undoes `edits`, where `text` is the text before them."""
    edits = tuple(edits)
    check(edits, len(text))
    inverse = []
    shift = 0
    for edit in edits:
        start = edit.start + shift
        inverse.append(Edit(start, start + len(edit.new_text), text[edit.start : edit.end]))
        shift += len(edit.new_text) - (edit.end - edit.start)
    return tuple(inverse)


def compose(first: Sequence[Edit], second: Sequence[Edit]) -> tuple[Edit, ...]:
    """One change that does what `first` and then `second` (in coordinates after `first`) do.

    Edits that touch become one, so keys typed in a row compose to a single edit. What the two undo
    of each other is dropped as far as that can be seen without the text.
    """
    check(first)
    check(second)
    composed = []
    i = j = shift = 0  # shift: length after `first` minus length before it, up to edit i
    while i < len(first) or j < len(second):
        first_start = first[i].start + shift if i < len(first) else None
        if first_start is None or (j < len(second) and second[j].start < first_start):
            low = high = second[j].start
        else:
            low = high = first_start
        group_j, shift_before = j, shift
        middle: list[
            tuple[int, str]
        ] = []  # what `first` put into this group, with its offsets after `first`
        while True:
            if i < len(first) and first[i].start + shift <= high:
                edit = first[i]
                middle.append((edit.start + shift, edit.new_text))
                high = max(high, edit.start + shift + len(edit.new_text))
                shift += len(edit.new_text) - (edit.end - edit.start)
                i += 1
            elif j < len(second) and second[j].start <= high:
                high = max(high, second[j].end)
                j += 1
            else:
                break
        parts = []
        position = low
        for edit in second[group_j:j]:
            parts.append(_between(middle, position, edit.start))
            parts.append(edit.new_text)
            position = edit.end
        parts.append(_between(middle, position, high))
        new_text = "".join(parts)
        start, end = low - shift_before, high - shift
        if start != end or new_text:
            composed.append(Edit(start, end, new_text))
    return tuple(composed)


def _between(middle: list[tuple[int, str]], start: int, end: int) -> str:
    """The part of a group's inserted text in start..end of the text after `first`."""
    return "".join(
        text[max(start - at, 0) : max(end - at, 0)]
        for at, text in middle
        if at < end and at + len(text) > start
    )


def shrink(text: str, edit: Edit) -> Edit | None:
    r"""Trim what the edit leaves as it was at both ends; None when it changes nothing.

    Never cuts between `\r` and `\n`, between a character and what combines with it, or inside a
    surrogate pair.
    """
    old, new = text[edit.start : edit.end], edit.new_text
    if old == new:
        return None
    front = _common_prefix(old, new)
    while front and not (_may_cut(text, edit.start + front) and _may_cut(new, front)):
        front -= 1
    old, new = old[front:], new[front:]
    back = _common_prefix(old[::-1], new[::-1])
    end = edit.end
    while back and not (_may_cut(text, end - back) and _may_cut(new, len(new) - back)):
        back -= 1
    return Edit(edit.start + front, end - back, new[: len(new) - back])


def _common_prefix(a: str, b: str) -> int:
    """Length of the common prefix, block by block so that long texts cost few steps."""
    limit = min(len(a), len(b))
    length = 0
    while length < limit and a[length : length + 512] == b[length : length + 512]:
        length += 512
    length = min(length, limit)
    while length < limit and a[length] == b[length]:
        length += 1
    return length


def _may_cut(text: str, index: int) -> bool:
    """Whether a text may be cut at `index` without tearing a visible character apart."""
    if not 0 < index < len(text):
        return True
    before, after = text[index - 1], text[index]
    if before == "\r":
        return after != "\n"
    if after.isascii():
        return True
    if before == "\u200d" or after == "\u200d" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    return unicodedata.category(after) not in {"Mn", "Mc", "Me"}


def minimal_edits(old: str, new: str) -> tuple[Edit, ...]:
    """A small change from `old` to `new`: changed lines only, each trimmed to what differs.

    Lines are matched as in `line_diff`, so the cost is bounded on texts of any size.
    """
    if old == new:
        return ()
    old_lines, new_lines = split_lines(old), split_lines(new)
    edits = []
    offset = line = 0
    for i1, i2, j1, j2 in changed_ranges(old_lines, new_lines):
        offset += sum(map(len, old_lines[line:i1]))
        line = i1
        if i2 - i1 == j2 - j1:
            pairs = list(zip(old_lines[i1:i2], new_lines[j1:j2], strict=True))
        else:
            pairs = [("".join(old_lines[i1:i2]), "".join(new_lines[j1:j2]))]
        for before, after in pairs:
            edit = shrink(old, Edit(offset, offset + len(before), after))
            if edit is not None:
                edits.append(edit)
            offset += len(before)
        line = i2
    return tuple(edits)


def rebase(edits: Sequence[Edit], change: Sequence[Edit]) -> tuple[Edit, ...] | None:
    """`edits` moved to the text after `change`, made elsewhere; None when they touch.

    Edits that do nothing touch nothing, and are dropped.
    """
    moved = []
    for edit in filter(_does_something, edits):
        shift = 0
        for other in filter(_does_something, change):
            if other.end < edit.start:
                shift += len(other.new_text) - (other.end - other.start)
            elif other.start <= edit.end:
                return None
        moved.append(Edit(edit.start + shift, edit.end + shift, edit.new_text))
    return tuple(moved)


def _does_something(edit: Edit) -> bool:
    return edit.start != edit.end or bool(edit.new_text)


def interpolate(edits: Sequence[Edit], user: Edit) -> tuple[Edit, ...] | None:
    """What is left of predicted edits after the user has made one edit himself.

    None when he went another way.

    Both count offsets of the text before the user's edit, the result those of the text after it.
    The user follows a predicted edit when he makes the beginning of it: types a prefix of its new
    text at its start (deleting nothing or the beginning of what it deletes), or deletes from the
    end of a pure deletion. A bracket or quote that the editor closed by itself is followed where
    the prediction closes it too. An edit that touches no predicted edit only moves them. An empty
    tuple means that nothing is left. Predicted edits should be minimal (see `shrink`).
    """
    if not _does_something(user):
        return tuple(edits)
    shift = len(user.new_text) - (user.end - user.start)
    left: list[Edit] = []
    followed = False
    for edit in edits:
        if user.end < edit.start:
            left.append(Edit(edit.start + shift, edit.end + shift, edit.new_text))
        elif user.start > edit.end:
            left.append(edit)
        else:
            rest = None if followed else _rest_of(edit, user)
            if rest is None:
                return None
            followed = True
            left.extend(rest)
    return tuple(left)


def _rest_of(edit: Edit, user: Edit) -> list[Edit] | None:
    """What remains of one predicted edit that the user's edit touches; None unless it follows."""
    typed = user.new_text
    if user.end > edit.end or user.start < edit.start:
        return None
    if not typed and not edit.new_text:
        rest = [Edit(edit.start, edit.end - (user.end - user.start), "")]
    elif user.start != edit.start:
        return None
    else:
        at = user.start + len(typed)
        end = edit.end + len(typed) - (user.end - user.start)
        if edit.new_text.startswith(typed):
            rest = [Edit(at, end, edit.new_text[len(typed) :])]
        else:
            close = _closing(edit.new_text, typed)
            if close is None:
                return None
            rest = [
                Edit(at - 1, at - 1, edit.new_text[1:close]),
                Edit(at, end, edit.new_text[close + 1 :]),
            ]
    return list(filter(_does_something, rest))


def _closing(predicted: str, typed: str) -> int | None:
    """Where `predicted` closes the pair that `typed` ("()", '""', ...) is, if it opens with it."""
    if len(typed) != 2 or _PAIRS.get(typed[1]) != typed[0] or not predicted.startswith(typed[0]):
        return None
    if typed[0] == typed[1]:
        close = predicted.find(typed[1], 1)
        return close if close > 0 else None
    depth = 0
    for index, char in enumerate(predicted):
        if char == typed[0]:
            depth += 1
        elif char == typed[1]:
            depth -= 1
            if depth == 0:
                return index
    return None
