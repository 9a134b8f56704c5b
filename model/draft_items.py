"""Draft rules on lists of siblings: a new parameter, field, key or case goes wherever its neighbour goes.

Responsible for recognising a new item beside another one (on its own line or within a line), and for its counterpart of
each line, list item and branch that is about the other one. Knows nothing of ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from model.draft_calls import parameter_name
from model.draft_history import Change, line_pairs, token_ops
from model.draft_shapes import KEYWORDS, TOKEN
from model.draft_view import Proposal, View, indent_of
from model.names import Renaming, rename_in_line, split_words

_WORD = re.compile(r"[^\W\d]\w*")
_PARAMETER = re.compile(r"\s*[\"']?\*{0,2}([^\W\d]\w*)[\"']?\s*(?:[:=,]|$)")
_DECLARED = re.compile(r"\s*(?:[\w<>\[\],.:?]+[ *&]+)+([^\W\d]\w*)\s*(?:=[^=].*)?[;,]\s*$")
_DECLARED_GO = re.compile(r"\s*([^\W\d]\w*)\s+[\w*\[\].]+(?:\s+`.*`)?\s*$")
_SELF = frozenset({"self", "this", "cls", "None", "Optional", "str", "int", "bool", "Any"})
_OWNER = re.compile(r"\s*(?:[\w@]+\s+)*?(?:class|enum|struct|interface|type)\s+([^\W\d]\w*)")
_BRANCH = re.compile(r"\s*(?:elif|if|case)\b.*:\s*$")
_FIELD = re.compile(r"(\s*(?:self|this)\._?)\w+\s*(?::[^=]+)?=[^=]")
_MAX_PLACES = 6
_MAX_UP = 60
_MAX_BODY = 6


def _item_name(line: str, path: str) -> str | None:
    """The name that a line of a parallel list is about: parameter, field, key, case, listed string."""
    plain = re.sub(r"\s*(self|this)\._?", "", line, count=1)
    match = _PARAMETER.match(plain)
    if not match and not path.endswith((".py", ".pyi")):
        match = (_DECLARED_GO if path.endswith(".go") else _DECLARED).match(plain)
    name = match[1] if match else None
    return None if name is None or name in KEYWORDS or name in _SELF else name


def _inline_items(old: str, new: str, path: str) -> Iterator[tuple[str, str]]:
    """(new item, item before it) for items added to a comma list within a line."""
    a, b = TOKEN.findall(old), TOKEN.findall(new)
    for i1, i2, j1, j2 in token_ops(a, b):
        added = "".join(b[j1:j2])
        if i1 != i2 or "," not in added:
            continue
        before = "".join(b[:j1])
        quoted = re.match(r",?\s*[\"']([^\W\d]\w*)", added)
        item = quoted[1] if quoted else parameter_name(added.strip(", "), path)
        last = re.split(r"[(\[{,]", re.sub(r"=[^,()]*\Z", "", before.rstrip(", ")))[-1]
        sibling = parameter_name(last.strip("\"' "), path)
        if item and sibling and item.isidentifier():
            yield item, sibling


def new_items(change: Change) -> list[tuple[str, str, bool]]:
    """(new name, sibling's name, sibling stands before it) that the change introduces."""
    found: list[tuple[str, str, bool]] = []
    before = set(_WORD.findall("\n".join(change.old)))
    lines = [*change.before[-1:], *change.new, *change.after[:1]]
    inserted = {line for line in change.new if line not in change.old}
    for above, below in pairwise(lines):
        first, second = _item_name(above, change.path), _item_name(below, change.path)
        if not first or not second or first == second or indent_of(above) != indent_of(below):
            continue
        if below in inserted and second not in before:
            found.append((second, first, True))
        if above in inserted and first not in before:
            found.append((first, second, False))
    for old, new in line_pairs(change):
        found += [(item, sibling, True) for item, sibling in _inline_items(old, new, change.path)]
    return [
        entry
        for entry in dict.fromkeys(found)
        if entry[0] not in KEYWORDS and _words(entry[0]) and _words(entry[1])
    ]


def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for _, word in split_words(name))


def _renaming(sibling: str, item: str) -> Renaming:
    return Renaming(_words(sibling), _words(item), 0, "_" if "_" in item else "")


def _owners(view: View, change: Change) -> frozenset[str]:
    """Names that may stand beside a sibling's: of the class or type whose member it is, and of declared types."""
    if change.line is None:
        return frozenset()
    found: set[str] = set()
    for line in change.new:
        if not view.path.endswith((".py", ".pyi")):
            found |= set(_WORD.findall(line))
    depth = len(indent_of(change.new[0])) if change.new else 0
    for row in range(min(change.line, len(view.lines)) - 1, max(-1, change.line - _MAX_UP), -1):
        line = view.lines[row]
        if line.strip() and len(indent_of(line)) < depth:
            head = _OWNER.match(line)
            if head:
                found.add(head[1])
            break
    return frozenset(found)


def _twin(text: str, sibling: str, item: str, owners: frozenset[str]) -> str | None:
    """The text with the sibling's name replaced, if it is about nothing else."""
    plain = sibling.strip("_").lower()
    for word in _WORD.findall(text):
        if word.strip("_").lower() == plain or word in _SELF or word in KEYWORDS:
            continue
        if word not in owners:
            return None
    twin = rename_in_line(text, _renaming(sibling, item), inside=False)
    return twin if twin != text else None


def _segments(line: str, name: str) -> Iterator[tuple[int, int]]:
    """The comma-separated items of the line that hold the name, quotes not looked at."""
    for match in re.finditer(rf"(?<!\w)_?{re.escape(name)}(?!\w)", line, re.I):
        left, depth = match.start(), 0
        while left > 0 and not (depth == 0 and line[left - 1] in ",([{"):
            left -= 1
            depth += (line[left] in ")]}") - (line[left] in "([{")
        right, depth = match.end(), 0
        while right < len(line) and not (depth == 0 and line[right] in ",)]}"):
            depth += (line[right] in "([{") - (line[right] in ")]}")
            right += 1
        if left == 0 or right == len(line):
            continue
        text = line[left:right]
        yield left + len(text) - len(text.lstrip()), left + len(text.rstrip())


def _beside(line: str, sibling: str, item: str, owners: frozenset[str], after: bool) -> str | None:
    """The line with the item's counterpart next to the list item that is about the sibling."""
    done: set[tuple[int, int]] = set()
    for start, end in reversed(list(_segments(line, sibling))):
        if (start, end) in done:
            continue
        done.add((start, end))
        before, behind = line[:start].rstrip()[-1:], line[end:].lstrip()[:1]
        if before == "{" and re.search(r"[\"'`]", line[:start]):
            continue
        twin = _twin(line[start:end], sibling, item, owners)
        if twin and ("," in (before, behind) or (before in "([{" and behind in ")]}")):
            pair = (line[start:end], twin) if after else (twin, line[start:end])
            line = line[:start] + ", ".join(pair) + line[end:]
            return line
    return None


def _branch(
    view: View, row: int, sibling: str, item: str, after: bool
) -> tuple[int, tuple[str, ...]] | None:
    """(place, lines) of the item's counterpart of the branch that begins on the row."""
    line = view.lines[row]
    if not _BRANCH.match(line) or not re.search(rf"(?:\.|\bcase ){re.escape(sibling)}\b", line):
        return None
    depth, end = len(indent_of(line)), row + 1
    while (
        end < len(view.lines)
        and view.lines[end].strip()
        and len(indent_of(view.lines[end])) > depth
    ):
        end += 1
    if not 1 <= end - row - 1 <= _MAX_BODY:
        return None
    change = _renaming(sibling, item)
    block = [rename_in_line(text, change, inside=False) for text in view.lines[row:end]]
    if not after and line.lstrip().startswith("if"):
        return None
    block[0] = re.sub(r"^(\s*)if\b", r"\1elif", block[0])
    return (end if after else row), tuple(block)


def _places(
    view: View, change: Change, item: str, sibling: str, after: bool
) -> Iterator[tuple[int, int, tuple[str, ...], str]]:
    owners = _owners(view, change)
    own_line = any(_item_name(line, view.path) == item for line in change.new)
    known = re.compile(rf"(?<!\w){re.escape(item)}(?!\w)")
    for number in view.lines_with(sibling.lower()):
        if number in change.span:
            continue
        line = view.lines[number]
        beside = number in (change.span.start - 1, change.span.stop)
        if own_line and beside and _item_name(line, view.path) == sibling:
            continue
        branch = _branch(view, number, sibling, item, after) if own_line else None
        if branch:
            yield branch[0], branch[0], branch[1], "twin-branch"
            continue
        whole = not line.rstrip().endswith(("{", "(", "):"))
        twin = _twin(line, sibling, item, owners) if whole else None
        at = number + after
        if twin:
            yield at, at, (twin,), "twin-line"
            field = _FIELD.match(twin)
            if field:
                simple = f"{field[1]}{item} = {item}{';' if twin.rstrip().endswith(';') else ''}"
                if simple != twin:
                    yield at, at, (simple,), "twin-line"
            continue
        if known.search(line):
            continue
        changed = _beside(line, sibling, item, owners, after)
        if changed:
            yield number, number + 1, (changed,), "twin-argument"
            continue


def _stands(view: View, first: int, new: tuple[str, ...]) -> bool:
    near = range(max(0, first - 3), min(len(view.lines), first + 3))
    return any(view.lines[row].strip() == new[0].strip() for row in near)


def pass_through(view: View) -> Iterator[Proposal]:
    """The counterparts of a new item wherever its sibling stands alone, in a list or as a branch."""
    for change in view.changes:
        for item, sibling, after in new_items(change):
            kept = [
                place
                for place in _places(view, change, item, sibling, after)
                if place[3] == "twin-argument" or not _stands(view, place[0], place[2])
            ]
            kept.sort(key=lambda place: view.reach(place[0]))
            for first, last, lines, rule in kept[:_MAX_PLACES]:
                yield Proposal(first, last, lines, rule, (sibling, item), change.recency, len(kept))
