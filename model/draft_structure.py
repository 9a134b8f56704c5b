"""Draft rules on parallel structure: a new name beside its siblings, moved and removed code.

Responsible for what follows from a name or a block that came, went or moved: the new parameter
passed on where its neighbour is, the old copy of moved lines deleted, uses of a removed name
deleted, the name used but not yet a parameter. Knows nothing of ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from model.draft_history import Change, line_pairs
from model.draft_rewrites import name_changes
from model.draft_shapes import KEYWORDS
from model.draft_view import Proposal, View, indent_of, reindent

_WORD = re.compile(r"[^\W\d]\w*")
_PARAMETER = re.compile(r"\s*[\"']?\*{0,2}([^\W\d]\w*)[\"']?\s*(?:[:=,]|$)")
_SELF = frozenset({"self", "this", "cls", "None", "Optional", "str", "int", "bool", "Any"})
_HEAD = re.compile(r"(\s*)(?:async\s+def|def|class|function|func|fn)\s+([^\W\d]\w*)")
_MAX_PLACES = 6


def moved_lines(view: View) -> Iterator[Proposal]:
    """Lines that were written here stand elsewhere: delete the other copy."""
    for change in view.changes:
        gone = {line.strip() for line in change.old}
        fresh = [line.strip() for line in change.new]
        seen: set[int] = set()
        for at, line in enumerate(fresh):
            if not line or line in gone or len(re.sub(r"\W", "", line)) < 8:
                continue
            places = [p for p in view.places.get(line, ()) if p not in change.span]
            if not places or len(places) > 3:
                continue
            for place in places:
                if place in seen:
                    continue
                size = 1
                while (
                    at + size < len(fresh)
                    and place + size < view.high
                    and view.lines[place + size].strip() == fresh[at + size]
                    and place + size not in change.span
                ):
                    size += 1
                seen.update(range(place, place + size))
                link = (line, "")
                yield Proposal(
                    place, place + size, (), "delete-moved", link, change.recency, len(places)
                )
                end = place + size
                if end < view.high and not view.lines[end].strip():
                    yield Proposal(
                        place, end + 1, (), "delete-moved", link, change.recency, len(places)
                    )


def removed_names(change: Change) -> list[str]:
    """Names that stood in the old lines and are neither in the new ones nor renamed."""
    new = set(_WORD.findall("\n".join(change.new)))
    renamed = {old for pair in line_pairs(change) for old, _ in name_changes(*pair)}
    old = dict.fromkeys(_WORD.findall("\n".join(change.old)))
    known = new | renamed | KEYWORDS | _SELF
    return [word for word in old if word not in known and len(word) > 2]


def uses_of_removed(view: View) -> Iterator[Proposal]:
    """What is left of a removed name: lines about nothing else go, list items and arguments too."""
    for change in view.changes:
        if len(change.new) > len(change.old):
            continue
        for name in removed_names(change)[:8]:
            count = view.words.get(name, 0)
            if not 0 < count <= 8:
                continue
            link = (name, "")
            for number in view.lines_with(name.lower()):
                if number in change.span:
                    continue
                line = view.lines[number]
                words = [w for w in _WORD.findall(line) if w not in _SELF and w not in KEYWORDS]
                if words and all(word.strip("_") == name.strip("_") for word in words):
                    yield Proposal(
                        number, number + 1, (), "delete-use", link, change.recency, count
                    )
                    continue
                match = re.search(
                    rf"(,\s*)?[\"']?(?<![\w.]){name}(?:\s*=\s*[\w.]*{name})?"
                    rf"(?:\s*=\s*(?:None|True|False|\d+))?(?!\w)[\"']?(?=\s*[,)\]])(\s*,\s*)?",
                    line,
                )
                if match and (match[1] or match[2]):
                    joint = match[1] if match[1] and match[2] else ""
                    new = line[: match.start()] + joint + line[match.end() :]
                    yield Proposal(
                        number, number + 1, (new,), "drop-item", link, change.recency, count
                    )


def before_definitions(view: View) -> Iterator[Proposal]:
    """Lines put right above a definition (decorator, comment) are put above the next ones too."""
    for change in view.changes[:3]:
        if change.old or not change.after or not change.new or not change.new[-1].strip():
            continue
        head = _HEAD.match(change.after[0]) or re.match(r"(\s*)@", change.after[0])
        if not head or len(change.new) > 3:
            continue
        depth = indent_of(change.after[0])
        new = [line.strip() for line in change.new]
        places = []
        for number in range(view.low, view.high):
            line = view.lines[number]
            if indent_of(line) != depth or not _HEAD.match(line) or number in change.span:
                continue
            first = number
            while first > 0 and re.match(r"\s*@", view.lines[first - 1]):
                first -= 1
            above = [row.strip() for row in view.lines[max(0, first - len(new)) : first]]
            if above != new and not any(row.strip() in new for row in view.lines[first:number]):
                places.append(first)
        places = [p for p in places if p - len(change.new) not in change.span]
        places.sort(key=view.reach)
        for first in places[:4]:
            lines = reindent(change.new, change.after[0], view.lines[first])
            yield Proposal(
                first,
                first,
                lines,
                "above-definition",
                (new[0], new[0]),
                change.recency,
                len(places),
            )
