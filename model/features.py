"""What the text tells about a suggestion, for the gate: numbers that cost no model and well under a millisecond.

Responsible for features of an edit in its place: its size, whether its words are known, how it ties to what the user
has just changed, where the cursor stands. Pure functions of texts; knows nothing of weights, thresholds or outcomes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from diffing.edits import Edit
from model.protocol import Request

NAME = re.compile(r"[^\W\d]\w*")
HEADER = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@", re.M)
RECENT = 8
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "finish": ("half-done", "finish-line", "finish-word"),
    "delete": ("delete-identical", "delete-use", "delete-moved", "unused-import"),
    "insert": ("insert-after", "insert-before", "similar-insertion", "similar-block", "together"),
    "import": ("add-import", "add-import-line"),
    "migrate": ("migrate-format", "migrate-quotes", "migrate-typing"),
}
OPENERS, OPERATORS = "([{", "=+-*/%&|^<>!?"


def describe(
    request: Request, edits: Sequence[Edit], known: Mapping[str, float]
) -> dict[str, float]:
    """Features of a suggestion of at least one edit; `known` are those of the model or the rules."""
    text = request.text
    first = edits[0]
    inserted = "".join(edit.new_text for edit in edits)
    removed = "".join(text[edit.start : edit.end] for edit in edits)
    found = {
        "inserted": math.log1p(len(inserted)),
        "removed": math.log1p(len(removed)),
        "grown lines": math.copysign(
            math.log1p(abs(inserted.count("\n") - removed.count("\n"))),
            inserted.count("\n") - removed.count("\n"),
        ),
        "unknown words": unknown_words(text, inserted, request.history),
        "repeats": repeated_lines(text, first, inserted),
        "open": float(bracket_change(removed, inserted)),
        "history": math.log1p(min(len(request.history), RECENT)),
        "fim": float(request.mode == "fim"),
        "script": float(not request.path.endswith((".py", ".pyi"))),
        **surroundings(text, first.start),
        **ties(request, edits, removed, inserted),
    }
    for family, rules in FAMILIES.items():
        found["of " + family] = max((known.get("rule:" + rule, 0.0) for rule in rules), default=0.0)
    return found


def surroundings(text: str, start: int) -> dict[str, float]:
    """Where an edit begins: within its line, in a comment or a string, after what."""
    head = text[text.rfind("\n", 0, start) + 1 : start]
    end = text.find("\n", start)
    rest = text[start : len(text) if end < 0 else end]
    bare = head.strip()
    last = bare[-1:]
    return {
        "in comment": float(bare.startswith(("#", "//", "*", "/*")) or " # " in head),
        "in string": float(inside_string(head)),
        "in word": float(bool(head) and (head[-1].isalnum() or head[-1] == "_")),
        "begun": math.log1p(len(bare)),
        "blank": float(not bare),
        "after opener": float(last != "" and last in OPENERS),
        "after comma": float(last == ","),
        "after dot": float(last == "."),
        "after operator": float(last != "" and last in OPERATORS),
        "after colon": float(last == ":"),
        "rest": float(bool(rest.strip())),
    }


def inside_string(head: str) -> bool:
    """Whether a line up to a place has left a quote open."""
    quote = ""
    escaped = False
    for char in head:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
    return bool(quote)


def unknown_words(text: str, inserted: str, history: Sequence[str]) -> float:
    """Share of the inserted names that stand neither in the text nor in recent changes."""
    names = set(NAME.findall(inserted))
    if not names:
        return 0.0
    recent = history[-RECENT:]
    fresh = sum(name not in text and not any(name in diff for diff in recent) for name in names)
    return fresh / len(names)


def repeated_lines(text: str, edit: Edit, inserted: str) -> float:
    """Share of the inserted lines that stand in the text already, word for word."""
    lines = [line.strip() for line in inserted.split("\n") if len(line.strip()) > 3]
    if not lines:
        return 0.0
    elsewhere = text[: edit.start] + "\n" + text[edit.end :]
    return sum(line in elsewhere for line in lines) / len(lines)


def bracket_change(removed: str, inserted: str) -> int:
    """Brackets that the edit opens more than it closes, in absolute number by sort, at most 3."""
    change = 0
    for left, right in ("()", "[]", "{}"):
        now = inserted.count(left) - inserted.count(right)
        change += abs(now - (removed.count(left) - removed.count(right)))
    return min(change, 3)


def ties(request: Request, edits: Sequence[Edit], removed: str, inserted: str) -> dict[str, float]:
    """How the edit ties to the user's recent changes: common names, and which way he works through the file."""
    changes = [change_of(diff) for diff in request.history[-RECENT:]]
    names = set(NAME.findall(removed)) ^ set(NAME.findall(inserted))
    touched = [names & (change.gone ^ change.come) for change in changes]
    same_gone = sum(bool(names & change.gone) for change in changes)
    row = request.text.count("\n", 0, edits[0].start)
    here = request.text.count("\n", 0, request.cursor)
    rows = [change.row for change in changes if change.row is not None]
    return {
        "linked": float(any(touched)),
        "linked newest": float(bool(touched) and bool(touched[-1])),
        "shared": len(set().union(*touched)) / len(names) if names and touched else 0.0,
        "times": math.log1p(same_gone),
        "passed": float(len(rows) > 1 and min(rows) < row < max(rows)),
        "downward": float(len(rows) > 1 and rows[-1] > rows[-2])
        - float(len(rows) > 1 and rows[-1] < rows[-2]),
        "ahead": math.copysign(math.log1p(abs(row - here)), row - here),
    }


class Changed:
    """Names that a diff takes away and brings, and the first line of its last hunk (from 0)."""

    __slots__ = ("come", "gone", "row")

    def __init__(self, gone: set[str], come: set[str], row: int | None) -> None:
        self.gone, self.come, self.row = gone, come, row


@lru_cache(maxsize=256)
def change_of(diff: str) -> Changed:
    """What a unified diff changes; remembered, for the history stays the same between keys."""
    rows = diff.split("\n")
    gone = set(
        NAME.findall("\n".join(row[1:] for row in rows if row[:1] == "-" and row[:3] != "---"))
    )
    come = set(
        NAME.findall("\n".join(row[1:] for row in rows if row[:1] == "+" and row[:3] != "+++"))
    )
    heads = HEADER.findall(diff)
    return Changed(gone - come, come - gone, int(heads[-1]) - 1 if heads else None)


def among(priors: Sequence[float]) -> list[dict[str, float]]:
    """Of drafts for one request, by their priors: how many there are, and how far each is ahead of its best rival."""
    found = []
    for number, prior in enumerate(priors):
        others = [other for at, other in enumerate(priors) if at != number]
        lead = prior - max(others) if others else 3.0
        found.append({"rivals": float(len(others)), "lead": max(-3.0, min(3.0, lead))})
    return found
