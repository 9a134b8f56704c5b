"""Draft rules on whole lines: repeat rewrites, repeat insertions and deletions, finish what was
half done.

Each rule takes the view and yields proposals. Knows nothing of ranking, offsets or models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from model.draft_history import line_pairs
from model.draft_rewrites import Rewrite
from model.draft_shapes import KEYWORDS, analogy, carry, kinds, name_map, shape
from model.draft_view import Proposal, View, indent_of, reindent

_MAX_PLACES = 8

# Rewrites in the order in which one is preferred for a line, and those that may be combined.
TRUST = {
    rule: rank
    for rank, rule in enumerate(
        [
            "migrate-format",
            "migrate-typing",
            "migrate-quotes",
            "import-use",
            "joint",
            "template",
            "substitution",
            "variant",
            "analogy",
            "subword",
            "analogy-lossy",
        ]
    )
}
_SIGNATURE = re.compile(r"\s*(?:async\s+)?(?:def|function|fn|func)\b.*\(")
COMPOSABLE = {
    "migrate-format",
    "migrate-typing",
    "migrate-quotes",
    "import-use",
    "template",
    "substitution",
    "span",
}


def _runs(hits: dict[int, str]) -> list[tuple[int, int]]:
    """Maximal runs of consecutive line numbers as (first, past the last)."""
    runs: list[tuple[int, int]] = []
    for line in sorted(hits):
        if runs and runs[-1][1] == line:
            runs[-1] = (runs[-1][0], line + 1)
        else:
            runs.append((line, line + 1))
    return runs


def repeat_rewrites(view: View, rewrites: list[Rewrite]) -> Iterator[Proposal]:
    """Lines on which a rewrite of the user's applies: as whole runs, and the nearest lines
    alone.
    """
    found: dict[int, list[tuple[Rewrite, str]]] = {}
    for rewrite in rewrites:
        hits: dict[int, str] = {}
        for number in view.lines_with(rewrite.needle):
            line = view.lines[number]
            after = rewrite.apply(line)
            if after is not None and after != line:
                hits[number] = after
        runs = sorted(_runs(hits), key=lambda run: view.reach(run[0]))
        for first, last in runs[:_MAX_PLACES]:
            new = tuple(hits[number] for number in range(first, last))
            common = (rewrite.rule, rewrite.link, rewrite.recency, len(runs))
            yield Proposal(first, last, new, *common)
            if last - first > 1:
                for number in range(first, min(last, first + 4)):
                    yield Proposal(number, number + 1, (hits[number],), *common)
            for number in range(first, last):
                found.setdefault(number, []).append((rewrite, hits[number]))
    yield from _together(view, found)


def _together(view: View, found: dict[int, list[tuple[Rewrite, str]]]) -> Iterator[Proposal]:
    """Runs of lines that need different rewrites, and lines that need more than one."""
    best: dict[int, str] = {}
    mixed: set[int] = set()
    for number, hits in found.items():
        ranked = sorted(hits, key=lambda hit: TRUST.get(hit[0].rule, len(TRUST)))
        line = ranked[0][1]
        for rewrite, _ in ranked[1:]:
            if rewrite.rule in COMPOSABLE:
                again = rewrite.apply(line)
                if again and again != line and again != view.lines[number]:
                    line = again
                    mixed.add(number)
        best[number] = line
    runs = sorted(_runs(best), key=lambda run: view.reach(run[0]))
    for first, last in runs[:_MAX_PLACES]:
        rewrite = found[first][0][0]
        new = tuple(best[number] for number in range(first, last))
        yield Proposal(first, last, new, "together", rewrite.link, rewrite.recency, len(runs))
        for number in range(first, last):
            if number in mixed and last - first > 1:
                yield Proposal(
                    number,
                    number + 1,
                    (best[number],),
                    "together",
                    rewrite.link,
                    rewrite.recency,
                    len(runs),
                )


def _is_parameter(view: View, old: str, new: str) -> bool:
    """True when the function around the cursor has a parameter `old` and none called `new`: only an attribute was
    renamed, and the rest of the line means the parameter.
    """
    row = next(
        (n for n in range(view.cursor_line, -1, -1) if _SIGNATURE.match(view.lines[n])), None
    )
    if row is None:
        return False
    names = set(re.findall(r"\w+", view.lines[row].partition("(")[2]))
    return old in names and new not in names


def half_done(view: View, rewrites: list[Rewrite]) -> Iterator[Proposal]:
    """The line being typed, finished as an earlier change would have it."""
    newest = view.changes[0] if view.changes else None
    if (
        newest is None
        or view.cursor_line not in newest.span
        or not newest.old
        or not view.typed.strip()
    ):
        return
    present = view.lines[view.cursor_line]
    for old in newest.old:
        for rewrite in rewrites:
            after = rewrite.apply(old)
            if after and after not in (present, old) and after.startswith(view.typed):
                if _is_parameter(view, *rewrite.link):
                    continue
                yield Proposal(
                    view.cursor_line,
                    view.cursor_line + 1,
                    (after,),
                    "half-done",
                    rewrite.link,
                    rewrite.recency,
                )


def _find_block(view: View, block: tuple[str, ...]) -> list[int]:
    """First lines of the places where the block stands, indentation aside."""
    stripped = [line.strip() for line in block]
    if not stripped or not any(stripped):
        return []
    lead = next(i for i, line in enumerate(stripped) if line)
    found = []
    for place in view.places.get(stripped[lead], []):
        first = place - lead
        if first < view.low or first + len(block) > view.high:
            continue
        if all(view.lines[first + i].strip() == line for i, line in enumerate(stripped)):
            found.append(first)
    return found


def identical_lines(view: View) -> Iterator[Proposal]:
    """The same old lines elsewhere become the same new lines (or go, when the change deleted
    them).
    """
    for change in view.changes:
        blocks = [(change.old, change.new)] if change.old else []
        if len(change.old) > 1:
            blocks += [((a,), (b,)) for a, b in line_pairs(change)[:12]]
        for old, new in blocks:
            if sum(len(re.sub(r"\W", "", line)) for line in old) < 4:
                continue
            places = [
                first
                for first in _find_block(view, old)
                if tuple(line.strip() for line in view.lines[first : first + len(new)])
                != tuple(line.strip() for line in new)
                or not new
            ]
            places.sort(key=view.reach)
            rule = "identical" if new else "delete-identical"
            for first in places[:_MAX_PLACES]:
                moved = reindent(new, old[0], view.lines[first])
                yield Proposal(
                    first,
                    first + len(old),
                    moved,
                    rule,
                    (old[0].strip(), new[0].strip() if new else ""),
                    change.recency,
                    len(places),
                )


def repeated_insertions(view: View) -> Iterator[Proposal]:
    """Lines inserted next to a neighbour are inserted next to the same neighbour elsewhere."""
    for change in view.changes:
        if change.old or not any(line.strip() for line in change.new):
            continue
        new = tuple(line.strip() for line in change.new)
        for below, context in ((True, change.before[-1:]), (False, change.after[:1])):
            if not context or len(re.sub(r"\W", "", context[0])) < 3:
                continue
            neighbour = context[0]
            places = []
            for place in view.places.get(neighbour.strip(), []):
                first = place + 1 if below else place
                span = (first, first + len(new)) if below else (first - len(new), first)
                if (
                    tuple(line.strip() for line in view.lines[max(0, span[0]) : max(0, span[1])])
                    == new
                ):
                    continue
                if not view.written(place):
                    places.append(first)
            places.sort(key=view.reach)
            for first in places[:_MAX_PLACES]:
                target = view.lines[first - 1 if below else first]
                yield Proposal(
                    first,
                    first,
                    reindent(change.new, neighbour, target),
                    "insert-after" if below else "insert-before",
                    (neighbour.strip(), new[0]),
                    change.recency,
                    len(places),
                )


def similar_blocks(view: View) -> Iterator[Proposal]:
    """Groups of lines of the same shape as the old ones become what these became, names carried."""
    for change in view.changes:
        size = len(change.old)
        if not 1 <= size <= 6 or len(change.new) > 12 or (size == 1 and len(change.new) == 1):
            continue
        carried = analogy(_dedent(change.old), _dedent(change.new), lossy=True)
        first_shape = kinds(change.old[0].strip())
        if carried is None or len(first_shape) < 3:
            continue
        starts = [
            number
            for number in range(view.low, view.high - size + 1)
            if number not in change.span and kinds(view.lines[number].strip()) == first_shape
        ]
        starts.sort(key=view.reach)
        places: list[tuple[int, tuple[str, ...]]] = []
        for number in starts[: 2 * _MAX_PLACES]:
            block = tuple(view.lines[number : number + size])
            after = carried[1](_dedent(block))
            if after is not None:
                pad = indent_of(block[0])
                new = tuple(pad + row if row.strip() else row for row in after.split("\n"))
                places.append((number, new if after else ()))
        for number, new in places[:_MAX_PLACES]:
            link = (change.old[0].strip(), change.new[0].strip() if change.new else "")
            yield Proposal(
                number, number + size, new, "similar-block", link, change.recency, len(places)
            )


def _dedent(lines: tuple[str, ...]) -> str:
    pad = indent_of(lines[0]) if lines else ""
    return "\n".join(line.removeprefix(pad) for line in lines)


def similar_insertions(view: View) -> Iterator[Proposal]:
    """Lines inserted next to a line are inserted next to lines of its shape, names carried."""
    for change in view.changes:
        if change.old or not any(line.strip() for line in change.new) or len(change.new) > 12:
            continue
        for below, context in ((True, change.before[-1:]), (False, change.after[:1])):
            mark = kinds(context[0].strip()) if context else ()
            if len(mark) < 3:
                continue
            ours = [token for _, token in shape(context[0].strip())]
            common = {t for t in ours if len(t) > 2 and t not in KEYWORDS}
            starts = [
                number
                for number in range(view.low, view.high)
                if number not in change.span and kinds(view.lines[number].strip()) == mark
            ]
            starts.sort(key=view.reach)
            places = []
            for number in starts[:_MAX_PLACES]:
                theirs = [token for _, token in shape(view.lines[number].strip())]
                names = name_map(ours, theirs)
                if not names:
                    continue
                pad = indent_of(view.lines[number])
                new = tuple(
                    "".join(space + carry(token, names) for space, token in shape(row))
                    for row in reindent(change.new, context[0], pad)
                )
                if new != change.new or common & set(theirs):
                    places.append((number + below, new))
            for number, new in places[:4]:
                beside = (
                    view.lines[number : number + len(new)]
                    if below
                    else view.lines[max(0, number - len(new)) : number]
                )
                if [row.strip() for row in beside] == [row.strip() for row in new]:
                    continue
                link = (context[0].strip(), change.new[0].strip())
                yield Proposal(
                    number, number, new, "similar-insertion", link, change.recency, len(places)
                )


def finished_lines(view: View) -> Iterator[Proposal]:
    """The line being typed, finished like another line, or its word like another word."""
    newest = view.changes[0] if view.changes else None
    if newest is None or view.cursor_line not in newest.span:
        return
    line = view.lines[view.cursor_line]
    typed, rest = view.typed, line[view.cursor_column :]
    start = typed.lstrip()
    here = (view.cursor_line, view.cursor_line + 1)
    link = (start, start)
    if len(re.sub(r"\W", "", start)) >= 3:
        known: dict[str, int] = {}
        for change in view.changes:
            for other in (*change.new, *change.old):
                known.setdefault(other.strip(), 0)
        for number in range(view.low, view.high):
            known.setdefault(view.lines[number].strip(), abs(number - view.cursor_line))
        fits = [
            other
            for other in known
            if other.startswith(start) and other.endswith(rest) and len(other) > len(start + rest)
        ]
        fits.sort(key=lambda other: known[other])
        for other in fits[:3]:
            new = typed + other[len(start) :]
            yield Proposal(*here, (new,), "finish-line", link, 0, len(fits))
    part = re.search(r"[^\W\d]\w*\Z", typed)
    if part and len(part[0]) >= 2 and not re.match(r"\w", rest):
        words = [w for w in view.words if w.startswith(part[0]) and len(w) > len(part[0])]
        words.sort(key=lambda word: -view.words[word])
        for word in words[:3]:
            new = typed + word[len(part[0]) :] + rest
            yield Proposal(*here, (new,), "finish-word", link, 0, len(words))
