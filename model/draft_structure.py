"""Draft rules on parallel structure: a new name beside its siblings, moved and removed code.

Responsible for what follows from a name or a block that came, went or moved: the new parameter
passed on where its neighbour is, the old copy of moved lines deleted, uses of a removed name
deleted, the name used but not yet a parameter. Knows nothing of ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from model.draft_history import Change, line_pairs, token_ops
from model.draft_rewrites import name_changes
from model.draft_shapes import KEYWORDS, TOKEN
from model.draft_view import Proposal, View, indent_of, reindent
from model.names import Renaming, rename_in_line, split_words

_WORD = re.compile(r"[^\W\d]\w*")
_PARAMETER = re.compile(r"\s*[\"']?\*{0,2}([^\W\d]\w*)[\"']?\s*(?:[:=,]|$)")
_SELF = frozenset({"self", "this", "cls", "None", "Optional", "str", "int", "bool", "Any"})
_HEAD = re.compile(r"(\s*)(?:async\s+def|def|class|function|func|fn)\s+([^\W\d]\w*)")
_MAX_PLACES = 6


def _item_name(line: str) -> str | None:
    """The name that a line of a parallel list is about: parameter, field, key, listed string."""
    match = _PARAMETER.match(re.sub(r"\s*(self|this)\._?", "", line, count=1))
    name = match[1] if match else None
    return None if name is None or name in KEYWORDS or name in _SELF else name


def _inline_items(old: str, new: str) -> Iterator[tuple[str, str]]:
    """(new item, item before it) for items added to a comma list within a line."""
    a, b = TOKEN.findall(old), TOKEN.findall(new)
    for i1, i2, j1, j2 in token_ops(a, b):
        if i1 != i2:
            continue
        added = "".join(b[j1:j2])
        before = "".join(b[:j1])
        item = re.match(r",?\s*[\"']?([^\W\d]\w*)", added)
        sibling = re.search(r"([^\W\d]\w*)[\"']?\s*(?:[:=][^,()]*)?,?\s*\Z", before)
        if item and sibling and ("," in added):
            yield item[1], sibling[1]


def new_items(change: Change) -> list[tuple[str, str, bool]]:
    """(new name, sibling's name, sibling stands before it) that the change introduces."""
    found: list[tuple[str, str, bool]] = []
    before = set(_WORD.findall("\n".join(change.old)))
    lines = [*change.before[-1:], *change.new, *change.after[:1]]
    inserted = {line for line in change.new if line not in change.old}
    for above, below in pairwise(lines):
        first, second = _item_name(above), _item_name(below)
        if not first or not second or first == second or indent_of(above) != indent_of(below):
            continue
        if below in inserted and second not in before:
            found.append((second, first, True))
        if above in inserted and first not in before:
            found.append((first, second, False))
    for old, new in line_pairs(change):
        found += [(item, sibling, True) for item, sibling in _inline_items(old, new)]
    return [
        entry
        for entry in dict.fromkeys(found)
        if entry[0] not in KEYWORDS and _words(entry[0]) and _words(entry[1])
    ]


def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for _, word in split_words(name))


def _twin(line: str, sibling: str, item: str) -> str | None:
    """The line with the sibling's name replaced, if the line is about nothing else."""
    for word in _WORD.findall(line):
        if word.strip("_") != sibling.strip("_") and word not in _SELF and word not in KEYWORDS:
            return None
    change = Renaming(_words(sibling), _words(item), 0, "_" if "_" in item else "")
    twin = rename_in_line(line, change, inside=False)
    return twin if twin != line else None


def pass_through(view: View) -> Iterator[Proposal]:
    """A new parameter, field or key goes wherever its sibling in the list goes."""
    for change in view.changes:
        for item, sibling, after in new_items(change):
            link = (sibling, item)
            places: list[tuple[int, int, str, str]] = []
            needle = sibling.lower()
            for number in view.lines_with(needle):
                if number in change.span:
                    continue
                line = view.lines[number]
                twin = _twin(line, sibling, item)
                if twin:
                    places.append((number + after, number + after, twin, "twin-line"))
                    field = re.match(r"(\s*(?:self|this)\._?)\w+\s*(?::[^=]+)?=[^=]", twin)
                    if field:
                        end = ";" if twin.rstrip().endswith(";") else ""
                        simple = f"{field[1]}{item} = {item}{end}"
                        if simple != twin:
                            places.append((number + after, number + after, simple, "twin-line"))
                    continue
                if re.search(rf"(?<!\w){item}(?!\w)", line):
                    continue
                match = re.search(rf"(?<![\w.]){sibling}=[\w.]*{sibling}(?!\w)", line)
                if match:
                    new = f"{match.group()}, {item}={item}"
                else:
                    match = re.search(rf"(?<=[(, \[])([\"']?){sibling}\1(?=[,)\]])", line)
                    if not match:
                        continue
                    quote = match[1]
                    new = f"{match.group()}, {quote}{item}{quote}"
                changed = line[: match.start()] + new + line[match.end() :]
                places.append((number, number + 1, changed, "twin-argument"))
            kept = [
                place
                for place in places
                if place[3] != "twin-line"
                or all(
                    view.lines[near].strip() != place[2].strip()
                    for near in range(max(0, place[0] - 3), min(len(view.lines), place[0] + 3))
                )
            ]
            kept.sort(key=lambda place: view.reach(place[0]))
            for first, last, line, rule in kept[:_MAX_PLACES]:
                yield Proposal(first, last, (line,), rule, link, change.recency, len(kept))


def _letters(lines: tuple[str, ...] | list[str]) -> int:
    return sum(len(re.sub(r"\W", "", line)) for line in lines)


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
