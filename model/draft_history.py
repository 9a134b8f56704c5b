"""What the user has just changed, as change groups and pairs of lines.

Responsible for reading the history's unified diffs newest first, for placing their groups in the
present text, and for pairing old lines with the lines that replaced them. Passes over a diff that
cannot be read. Knows nothing of drafts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from diffing.hunks import DiffHunk, parse_unified

CONTEXT = 3
_MAX_LINES = 40
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Change:
    """A maximal run of changed lines. Lines carry no line ends.

    `line` is the 0-based line of the present text where `new` begins, None when the change is in
    another file; `recency` is 0 for the newest. `before` and `after` are the unchanged neighbours
    that the diff shows.
    """

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    line: int | None
    recency: int = 0

    @property
    def span(self) -> range:
        """Present lines that the change wrote; empty in another file."""
        return range(0) if self.line is None else range(self.line, self.line + len(self.new))


@dataclass(frozen=True, slots=True)
class _Group:
    path: str
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


def _hunk_groups(path: str, hunk: DiffHunk) -> Iterator[_Group]:
    """Change groups of one hunk; their `start` is a line of the text after the diff."""
    rows = [(tag, line.rstrip("\r\n")) for tag, line in hunk.lines]
    line = hunk.new_start
    at = 0
    while at < len(rows):
        if rows[at][0] == " ":
            line += 1
            at += 1
            continue
        end = at
        while end < len(rows) and rows[end][0] != " ":
            end += 1
        old = tuple(text for tag, text in rows[at:end] if tag == "-")
        new = tuple(text for tag, text in rows[at:end] if tag == "+")
        above, below = at, end
        while above > 0 and rows[above - 1][0] == " " and at - above < CONTEXT:
            above -= 1
        while below < len(rows) and rows[below][0] == " " and below - end < CONTEXT:
            below += 1
        before = tuple(text for _, text in rows[above:at])
        after = tuple(text for _, text in rows[end:below])
        yield _Group(path, line, old, new, before, after)
        line += len(new)
        at = end


def read_groups(diff: str) -> list[_Group]:
    """Change groups of one unified diff in file order; none when it cannot be read."""
    try:
        files = parse_unified(diff)
    except ValueError:
        return []
    return [
        group for file in files for hunk in file.hunks for group in _hunk_groups(file.path, hunk)
    ]


def recent_changes(
    history: tuple[str, ...], path: str, cursor_line: int, limit: int = 6
) -> list[Change]:
    """The newest `limit` change groups, newest first.

    Within one diff the group nearest the cursor counts as the newest. Lines of groups in `path` are
    carried through the newer diffs to the present text.
    """
    changes: list[Change] = []
    newer: list[_Group] = []
    for diff in reversed(history):
        if len(changes) >= limit:
            break
        groups = read_groups(diff)
        placed = []
        for group in groups:
            line = None
            if group.path == path:
                line = group.start
                for later in newer:
                    if later.start <= line:
                        line += len(later.new) - len(later.old)
            placed.append(
                Change(
                    path=group.path,
                    old=group.old,
                    new=group.new,
                    before=group.before,
                    after=group.after,
                    line=line,
                )
            )
        placed.sort(
            key=lambda change: (
                abs(change.line - cursor_line) if change.line is not None else 1 << 30
            )
        )
        changes.extend(placed)
        newer = [group for group in groups if group.path == path] + newer
    return [replace(change, recency=i) for i, change in enumerate(changes[:limit])]


def similarity(left: str, right: str) -> float:
    """0..1: share of the longer line's words and marks that the other line has too (order
    ignored).
    """
    ours, theirs = _TOKEN.findall(left.strip()), _TOKEN.findall(right.strip())
    ours, theirs = [t for t in ours if not t.isspace()], [t for t in theirs if not t.isspace()]
    if not ours or not theirs:
        return 0.0
    rest = list(theirs)
    common = 0
    for token in ours:
        if token in rest:
            rest.remove(token)
            common += 1
    return 2 * common / (len(ours) + len(theirs))


def line_pairs(change: Change) -> list[tuple[str, str]]:
    """Old lines with the new lines that replaced them, by order and likeness; unpaired lines are
    left out.
    """
    old, new = change.old[:_MAX_LINES], change.new[:_MAX_LINES]
    if len(old) == len(new):
        return [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    if not old or not new:
        return []
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    score = [[similarity(a, b) for b in new] for a in old]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            taken = score[i][j] + best[i + 1][j + 1] if score[i][j] >= 0.4 else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], taken)
    pairs = []
    i = j = 0
    while i < len(old) and j < len(new):
        if score[i][j] >= 0.4 and best[i][j] == score[i][j] + best[i + 1][j + 1]:
            if old[i] != new[j]:
                pairs.append((old[i], new[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def token_ops(
    old: list[str], new: list[str], *, trim: bool = True
) -> list[tuple[int, int, int, int]]:
    """Differing ranges (i1, i2, j1, j2) of two token lists, in order.

    With `trim` the common head and tail are matched first, without it the longest common runs.
    """
    head = tail = 0
    while trim and head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while trim and tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if not a or not b:
        return [(head, head + len(a), head, head + len(b))] if a or b else []
    return [
        (head + i1, head + i2, head + j1, head + j2)
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
