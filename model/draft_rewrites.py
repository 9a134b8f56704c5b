"""Rewrites of one line that repeat what the user has just done to another.

Responsible for turning a recent change into functions from a line to the line it would become: the
literal substitution with as much context as it needs, the same with case, plural and sub-word
variants, the edit as a template with holes, the edit carried to a line of the same shape, the
argument added to another call. Knows nothing of where lines stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from model.draft_history import Change, line_pairs, token_ops
from model.draft_literals import tie
from model.draft_migrations import migrations
from model.draft_shapes import KEYWORDS, NAME, TOKEN, Template, analogy, templates
from model.names import Renaming, rename_in_line, renaming

Link = tuple[str, str]

MAX_PAIRS = 12


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way to repeat a change on other lines.

    `needle` (lower case) stands in every line that `apply` could alter; `apply` gives the new line
    or None.
    """

    rule: str
    link: Link
    recency: int
    needle: str
    apply: Callable[[str], str | None]


def is_weak(text: str) -> bool:
    """True when `text` is too common to be replaced wherever it stands."""
    return not any(
        len(word) >= 3 and word not in KEYWORDS and not word.isdigit()
        for word in re.findall(r"\w+", text)
    )


def replace_whole(line: str, old: str, new: str) -> str:
    """`old` replaced by `new` wherever it stands as whole words and is not yet part of `new`."""
    first_word, last_word = _is_word(old[0]), _is_word(old[-1])
    inset = new.find(old)
    out: list[str] = []
    done = at = 0
    while (at := line.find(old, at)) >= 0:
        end = at + len(old)
        inside = (first_word and at > 0 and _is_word(line[at - 1])) or (
            last_word and end < len(line) and _is_word(line[end])
        )
        if inside or (inset >= 0 and at >= inset and line.startswith(new, at - inset)):
            at += 1
            continue
        out += [line[done:at], new]
        done = at = end
    return "".join(out) + line[done:]


def _is_word(char: str) -> bool:
    return char == "_" or char.isalnum()


def _literal(rule: str, old: str, new: str, recency: int) -> Rewrite:
    return Rewrite(
        rule, (old, new), recency, old.lower(), lambda line: replace_whole(line, old, new)
    )


def _anchors(
    old: list[str], new: list[str], op: tuple[int, int, int, int]
) -> Iterator[tuple[str, str, str]]:
    """(rule, old, new): the replaced text alone if it is specific (an attribute with its dot: it is
    another name than the plain word), then with neighbours on either and both sides.

    A side grows until the whole holds a word, by three tokens at most.
    """
    i1, i2, j1, j2 = op
    bare = "".join(old[i1:i2])
    if bare.strip() and not is_weak(bare):
        dot = "." if i1 and old[i1 - 1] == "." and NAME.match(bare) else ""
        yield "substitution", dot + bare, dot + "".join(new[j1:j2])

    def grown(left: int, right: int, *, leftwards: bool) -> int:
        for _ in range(4):
            if leftwards:
                left = max(0, left - 1)
            else:
                right = min(len(old), right + 1)
            text = "".join(old[left:right])
            if re.search(r"\w", text) and not old[left if leftwards else right - 1].isspace():
                break
        return left if leftwards else right

    left, right = grown(i1, i2, leftwards=True), grown(i1, i2, leftwards=False)
    spans = [("left", left, i2), ("right", i1, right), ("both", left, right)]
    if is_weak("".join(old[left:i2])):
        far = grown(left, i2, leftwards=True)
        spans += [("left", far, i2), ("both", far, right)]
    sort = "insert" if i1 == i2 else "delete" if j1 == j2 else "replace"
    for side, a, b in spans:
        before = "".join(old[a:b])
        after = "".join(old[a:i1]) + "".join(new[j1:j2]) + "".join(old[i2:b])
        if (a, b) != (i1, i2) and re.search(r"\w", before):
            yield f"{sort}-{side}", before, after


def substitutions_of(old: str, new: str) -> list[tuple[str, Link]]:
    """Literal replacements that lead from one line to the other with their rules, the most specific
    first; no duplicates.
    """
    a, b = TOKEN.findall(old.strip()), TOKEN.findall(new.strip())
    ops = token_ops(a, b)
    if not ops or len(ops) > 6:
        return []
    links: dict[Link, str] = {}
    i1, i2, j1, j2 = ops[0][0], ops[-1][1], ops[0][2], ops[-1][3]
    if len(ops) > 1 and i2 - i1 <= 16:
        links["".join(a[i1:i2]), "".join(b[j1:j2])] = "span"
    for op in ops:
        for rule, before, after in _anchors(a, b, op):
            links.setdefault((before, after), rule)
    return [(rule, link) for link, rule in links.items() if link[0] != link[1] and link[0].strip()]


def name_changes(old: str, new: str) -> list[Link]:
    """Names that were replaced by other names at the same place of the line."""
    a, b = TOKEN.findall(old), TOKEN.findall(new)
    found: list[Link] = []
    for i1, i2, j1, j2 in token_ops(a, b):
        if i2 - i1 == j2 - j1:
            found.extend(
                (x, y)
                for x, y in zip(a[i1:i2], b[j1:j2], strict=True)
                if x != y
                and NAME.match(x)
                and NAME.match(y)
                and x not in KEYWORDS
                and y not in KEYWORDS
            )
    return list(dict.fromkeys(found))


def _variant(rule: str, link: Link, change: Renaming, recency: int, *, inside: bool) -> Rewrite:
    needle = change.old[0] if len(change.old) > 1 else change.old[0].rstrip("s").removesuffix("ie")
    return Rewrite(
        rule,
        link,
        recency,
        needle or change.old[0],
        lambda line: rename_in_line(line, change, inside=inside),
    )


def _sequence(rewrites: list[Rewrite], rule: str, link: Link) -> Rewrite:
    """All substitutions of one change at once; None unless two of them find their place."""

    def apply(line: str) -> str | None:
        hits = 0
        for rewrite in rewrites:
            after = rewrite.apply(line)
            if after is not None and after != line:
                hits += 1
                line = after
        return line if hits > 1 else None

    return Rewrite(rule, link, rewrites[0].recency, "", apply)


def _templated(template: Template, recency: int) -> Rewrite:
    pieces = ["\N{HORIZONTAL ELLIPSIS}" if isinstance(p, int) else p for p in template.result]
    link = ("\N{HORIZONTAL ELLIPSIS}".join(template.literals), "".join(pieces))
    needle = max(template.literals, key=len).lower()
    return Rewrite("template", link, recency, needle, template.apply)


def _tied(rewrite: Rewrite, test: Callable[[str, str], bool]) -> Rewrite:
    """The rewrite only where the changed literals mean the same as on the user's line."""

    def apply(line: str) -> str | None:
        after = rewrite.apply(line)
        return after if after is None or after == line or test(line, after) else None

    return replace(rewrite, apply=apply)


def rewrites_of(change: Change) -> list[Rewrite]:
    """All rewrites that repeat one change, the most specific first."""
    recency = change.recency
    pairs = line_pairs(change)[:MAX_PAIRS]
    found: list[Rewrite] = []
    for rule, link, needle, migrate in migrations(pairs):
        found.append(Rewrite(rule, link, recency, needle, migrate))
    for old, new in pairs:
        names = name_changes(old, new)
        done = len(found)
        if len(names) > 1:
            parts = [_literal("joint", a, b, recency) for a, b in names]
            found.append(_sequence(parts, "joint", names[0]))
        links = substitutions_of(old, new)
        found.extend(_literal(rule, *link, recency) for rule, link in links)
        found.extend(_templated(template, recency) for template in templates(old, new))
        for link in names:
            change_of_names = renaming(*link)
            if change_of_names:
                found.append(_variant("variant", link, change_of_names, recency, inside=False))
                found.append(_variant("subword", link, change_of_names, recency, inside=True))
        for lossy in (False, True):
            carried = analogy(old, new, lossy=lossy)
            if carried:
                rule = "analogy-lossy" if lossy else "analogy"
                found.append(Rewrite(rule, (old.strip(), new.strip()), recency, *carried))
        test = tie(old, new)
        if test:
            found[done:] = [_tied(rewrite, test) for rewrite in found[done:]]
    unique: dict[tuple[str, Link], Rewrite] = {}
    for rewrite in found:
        unique.setdefault((rewrite.rule, rewrite.link), rewrite)
    return list(unique.values())
