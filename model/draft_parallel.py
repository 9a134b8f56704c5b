"""Draft rules on neighbours of a like kind: modifiers, annotations, deleted lines, awaits.

Responsible for carrying what was done to one declaration, signature, line or call to its likes, where no literal
substitution says it. Knows nothing of ranking.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from model.draft_calls import brackets_of, parameter_name
from model.draft_history import Change, line_pairs
from model.draft_shapes import NAME, kind, kinds, shape
from model.draft_signatures import Scope
from model.draft_uses import awaited_names, with_await
from model.draft_view import Proposal, View, indent_of

_MODIFIERS = (
    "public private protected internal static final readonly export const let var async abstract virtual "
    "inline extern unsigned pub override constexpr default declare volatile mut"
)
_MODIFIER = frozenset(_MODIFIERS.split())
_PLAIN_TYPES = "int long short char float double bool boolean void str string byte auto"
_TYPES = frozenset(_PLAIN_TYPES.split())
_MAX_PLACES = 6
_DEF = re.compile(r"\s*(?:async\s+)?def\s+\w+\(")
_TYPE_OF = (
    (re.compile(r"(?:True|False)\Z"), "bool"),
    (re.compile(r"-?\d+\Z"), "int"),
    (re.compile(r"-?\d*\.\d+\Z"), "float"),
    (re.compile(r"[\"'].*[\"']\Z"), "str"),
)


def _head(old: str, new: str) -> tuple[list[str], list[str]] | None:
    """The modifiers at the head of a declaration before and after, when nothing else changed."""
    a, b = old.split(), new.split()
    tail = 0
    while tail < min(len(a), len(b)) and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    before, after = a[: len(a) - tail], b[: len(b) - tail]
    if not tail or not all(word in _MODIFIER for word in (*before, *after)) or before == after:
        return None
    return before, after


def _start(line: str) -> tuple[str, ...]:
    """The kinds of the first two tokens, types as names."""
    tokens = [token for _, token in shape(line.strip())[:2]]
    return tuple("NAME" if token in _TYPES else kind(token) for token in tokens)


def same_modifiers(view: View) -> Iterator[Proposal]:
    """Declarations beside one that got, lost or swapped modifiers do so too."""
    for change in view.changes[:3]:
        for old, new in line_pairs(change)[:2]:
            heads = _head(old, new)
            if heads is None or change.line is None:
                continue
            before, after = (" ".join(words) for words in heads)
            depth, rest = indent_of(old), old.strip().removeprefix(before).strip()
            hits: dict[int, str] = {}
            low, high = max(view.low, change.line - 60), min(view.high, change.line + 60)
            for number in range(low, high):
                line = view.lines[number]
                body = line.strip()
                if indent_of(line) != depth or number in change.span or not body:
                    continue
                if before and not body.startswith(before + " "):
                    continue
                tail = body.removeprefix(before).strip()
                if _start(tail) == _start(rest) and tail.split()[0] not in heads[1]:
                    hits[number] = depth + (after + " " if after else "") + tail
            yield from _hits(view, hits, "same-modifier", (before, after), change)


def _hits(
    view: View, hits: dict[int, str], rule: str, link: tuple[str, str], change: Change
) -> Iterator[Proposal]:
    """The nearest lines alone, and the run of adjacent ones that begins at the nearest."""
    places = sorted(hits, key=view.reach)
    for number in places[:_MAX_PLACES]:
        yield Proposal(number, number + 1, (hits[number],), rule, link, change.recency, len(places))
    if places and places[0] + 1 in hits:
        last = places[0]
        while last in hits:
            last += 1
        new = tuple(hits[number] for number in range(places[0], last))
        yield Proposal(places[0], last, new, rule, link, change.recency, len(places))


def deleted_alike(view: View) -> Iterator[Proposal]:
    """Lines of the shape of a deleted one that share most of its names and texts go too."""
    for change in view.changes[:3]:
        if change.new or len(change.old) != 1 or len(kinds(change.old[0].strip())) < 4:
            continue
        mark = kinds(change.old[0].strip())
        ours = [token for _, token in shape(change.old[0].strip())]
        opens = [at for at, token in enumerate(ours) if kind(token) in ("NAME", '""', "0")]
        hits = []
        for number in range(view.low, view.high):
            body = view.lines[number].strip()
            if number in change.span or body == change.old[0].strip() or kinds(body) != mark:
                continue
            theirs = [token for _, token in shape(body)]
            same = sum(theirs[at] == ours[at] for at in opens)
            if theirs[0] == ours[0] and NAME.match(ours[0]) and 2 * same > len(opens):
                hits.append(number)
        hits.sort(key=view.reach)
        for number in hits[:4]:
            link = (change.old[0].strip(), "")
            yield Proposal(number, number + 1, (), "delete-alike", link, change.recency, len(hits))


def awaits(view: View) -> Iterator[Proposal]:
    """Calls of a function that became asynchronous are awaited where they can be, and the reverse."""
    for change in view.changes[:3]:
        for name, wanted in awaited_names(change).items():
            hits: dict[int, str] = {}
            for number in view.lines_with(name.lower() + "("):
                if number in change.span:
                    continue
                after = with_await(view.lines[number], name, wanted=wanted)
                if (
                    after
                    and after != view.lines[number]
                    and (not wanted or Scope(view, number).is_async)
                ):
                    hits[number] = after
            yield from _hits(view, hits, "await-call", (name, "await " + name), change)


def _guess(part: str) -> str | None:
    value = part.partition("=")[2].strip()
    return next((name for pattern, name in _TYPE_OF if pattern.match(value)), None)


def annotated_alike(view: View) -> Iterator[Proposal]:
    """After parameters were annotated those of the next functions are, by name and by default value."""
    if not view.path.endswith((".py", ".pyi")):
        return
    for change in view.changes[:3]:
        pairs = [(old, new) for old, new in line_pairs(change) if _DEF.match(new)]
        pairs = [
            (o, n) for o, n in pairs if n.count(":") > o.count(":") or ("->" in n and "->" not in o)
        ]
        if not pairs or change.line is None:
            continue
        types: dict[str, Counter[str]] = {}
        for found in brackets_of(view.lines, view.lines_with("def ")):
            for part in found.parts if found.defines else ():
                name, colon, rest = part.partition(":")
                if colon:
                    types.setdefault(name.strip("* "), Counter())[
                        rest.partition("=")[0].strip()
                    ] += 1
        result = re.search(r"\)\s*->\s*(.+):\s*$", pairs[0][1])
        yield from _annotations(view, change, types, result[1] if result else None)


def _annotations(
    view: View, change: Change, types: dict[str, Counter[str]], result: str | None
) -> Iterator[Proposal]:
    rows = [
        n for n in view.lines_with("def ") if n not in change.span and _DEF.match(view.lines[n])
    ]
    rows.sort(key=view.reach)
    for found in brackets_of(view.lines, rows[: 2 * _MAX_PLACES]):
        behind = found.text[found.end + 1 :].strip()
        if not found.defines or behind != ":" or "\n" in found.text:
            continue
        parts, known = [], 0
        for part in found.parts:
            name = parameter_name(part, view.path)
            bare = ":" not in part and name not in ("self", "cls", "")
            sort = types[name].most_common(1)[0][0] if name in types else _guess(part)
            if not bare:
                parts.append(part)
            elif sort is None:
                break
            else:
                known += 1
                left, equals, value = part.partition("=")
                tail = f" = {value.strip()}" if equals else ""
                parts.append(f"{left.strip()}: {sort}{tail}")
        if len(parts) < len(found.parts):
            continue
        text = found.with_parts(parts)
        own = _result(view, found.first, result) if result else None
        link = (found.name, found.name)
        ends = [text.rstrip().removesuffix(":") + f" -> {own}:"] if own else []
        for new in [*ends, *([text] if known and not result else [])]:
            yield Proposal(
                found.first, found.last, (new,), "annotate", link, change.recency, len(rows)
            )


def _result(view: View, row: int, result: str) -> str:
    """What a function returns: nothing when it has no `return` with a value, else as the annotated one."""
    depth = len(indent_of(view.lines[row]))
    for line in view.lines[row + 1 : row + 80]:
        if line.strip() and len(indent_of(line)) <= depth:
            break
        if re.match(r"\s*(?:return\s+\S|yield\b)", line):
            return result
    return "None"
