"""Rewrites of one line that repeat what the user has just done to another.

Responsible for turning a recent change into functions from a line to the line it would become: the
literal substitution with as much context as it needs, the same with case, plural and sub-word
variants, the edit as a template with holes, the edit carried to a line of the same shape, the
argument added to another call. Knows nothing of where lines stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from model.draft_history import Change, line_pairs, token_ops
from model.names import Renaming, rename_in_line, renaming

Link = tuple[str, str]

_TOKEN = re.compile(r"\w+|[ \t]+|[^\w\s]")
_SHAPE = re.compile(
    r"(?P<space>\s*)(?P<token>[rbfuRBFU]{0,2}\"[^\"\n]*\"|[rbfuRBFU]{0,2}'[^'\n]*'|`[^`\n]*`|[^\W\d]\w*|\d[\w.]*|[^\w\s])"
)
_NAME = re.compile(r"[^\W\d]\w*\Z")
KEYWORDS = frozenset(
    [
        "False",
        "None",
        "True",
        "and",
        "as",
        "assert",
        "async",
        "await",
        "bool",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "def",
        "default",
        "del",
        "do",
        "elif",
        "else",
        "enum",
        "except",
        "export",
        "extends",
        "extern",
        "false",
        "final",
        "finally",
        "fn",
        "for",
        "from",
        "func",
        "function",
        "global",
        "go",
        "if",
        "implements",
        "import",
        "in",
        "instanceof",
        "int",
        "interface",
        "is",
        "lambda",
        "let",
        "long",
        "match",
        "new",
        "nil",
        "nonlocal",
        "not",
        "null",
        "or",
        "package",
        "pass",
        "private",
        "protected",
        "public",
        "raise",
        "readonly",
        "return",
        "self",
        "static",
        "str",
        "struct",
        "super",
        "switch",
        "this",
        "throw",
        "throws",
        "true",
        "try",
        "type",
        "typeof",
        "union",
        "unsigned",
        "use",
        "var",
        "void",
        "while",
        "with",
        "yield",
    ]
)
_HOLE = r"([\w.]+(?:\[[^\[\]\n]*\]|\([^()\n]*\))?)"


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


def literal_pattern(old: str) -> re.Pattern[str]:
    """Matches `old` where it stands as whole words."""
    head = r"(?<!\w)" if re.match(r"\w", old) else ""
    tail = r"(?!\w)" if re.search(r"\w\Z", old) else ""
    return re.compile(head + re.escape(old) + tail)


def _literal(rule: str, old: str, new: str, recency: int) -> Rewrite:
    pattern = literal_pattern(old)
    inset = new.find(old)

    def replace(match: re.Match[str]) -> str:
        if inset >= 0:
            start = match.start() - inset
            if start >= 0 and match.string.startswith(new, start):
                return match.group()
        return new

    return Rewrite(rule, (old, new), recency, old.lower(), lambda line: pattern.sub(replace, line))


def _extend_left(tokens: list[str], at: int) -> int:
    """Index of the word (or mark) left of `at`; `at` itself at the line's start."""
    at -= 1
    while at > 0 and tokens[at].isspace():
        at -= 1
    return max(at, 0)


def _extend_right(tokens: list[str], at: int) -> int:
    while at < len(tokens) - 1 and tokens[at].isspace():
        at += 1
    return min(at + 1, len(tokens))


def _anchors(old: list[str], new: list[str], op: tuple[int, int, int, int]) -> Iterator[Link]:
    """The replaced text with none, left, right and both neighbours, while it stays specific."""
    i1, i2, j1, j2 = op
    bare = "".join(old[i1:i2])
    if bare.strip() and not is_weak(bare):
        yield bare, "".join(new[j1:j2])
    left, right = _extend_left(old, i1), _extend_right(old, i2)
    spans = [(left, i2), (i1, right), (left, right)]
    far = _extend_left(old, left)
    if is_weak("".join(old[left:i2])):
        spans.append((far, i2))
        spans.append((far, right))
    for a, b in spans:
        if (a, b) == (i1, i2):
            continue
        before = "".join(old[a:b])
        after = "".join(old[a:i1]) + "".join(new[j1:j2]) + "".join(old[i2:b])
        if before.strip() and re.search(r"\w", before):
            yield before, after


def substitutions_of(old: str, new: str) -> list[Link]:
    """Literal replacements that lead from one line to the other, most specific span first; no
    duplicates.
    """
    a, b = _TOKEN.findall(old.strip()), _TOKEN.findall(new.strip())
    ops = token_ops(a, b)
    if not ops or len(ops) > 6:
        return []
    links: list[Link] = []
    i1, i2, j1, j2 = ops[0][0], ops[-1][1], ops[0][2], ops[-1][3]
    if len(ops) > 1 and i2 - i1 <= 16:
        links.append(("".join(a[i1:i2]), "".join(b[j1:j2])))
    for op in ops:
        links.extend(_anchors(a, b, op))
    return [link for link in dict.fromkeys(links) if link[0] != link[1] and link[0].strip()]


def name_changes(old: str, new: str) -> list[Link]:
    """Names that were replaced by other names at the same place of the line."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    found: list[Link] = []
    for i1, i2, j1, j2 in token_ops(a, b):
        if i2 - i1 == j2 - j1:
            found.extend(
                (x, y)
                for x, y in zip(a[i1:i2], b[j1:j2], strict=True)
                if x != y
                and _NAME.match(x)
                and _NAME.match(y)
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


def template(old: str, new: str, recency: int) -> Rewrite | None:
    """The changed span with what both sides share as holes: `Optional[str]` -> `str | None` works
    for any type.
    """
    a, b = _TOKEN.findall(old.strip()), _TOKEN.findall(new.strip())
    ops = token_ops(a, b)
    if not 0 < len(ops) <= 4:
        return None
    i1, i2, j1, j2 = ops[0][0], ops[-1][1], ops[0][2], ops[-1][3]
    if len(ops) == 1 or i2 - i1 > 16:
        return None
    pattern, result = "", ""
    holes = 0
    for index, (p1, p2, q1, q2) in enumerate(ops):
        pattern += re.escape("".join(a[p1:p2]))
        result += "".join(b[q1:q2]).replace("\\", r"\\")
        if index + 1 == len(ops):
            break
        shared = "".join(a[p2 : ops[index + 1][0]])
        if re.search(r"\w", shared):
            holes += 1
            pattern += _HOLE
            result += rf"\g<{holes}>"
        else:
            pattern += re.escape(shared)
            result += shared.replace("\\", r"\\")
    if not holes or not re.search(r"\w", pattern.replace(_HOLE, "").replace("\\", "")):
        return None
    head = r"(?<!\w)" if re.match(r"\w", a[i1]) else ""
    try:
        compiled = re.compile(head + pattern)
    except re.error:
        return None
    literal = "".join(a[ops[0][0] : ops[0][1]]).strip().lower()
    return Rewrite(
        "template",
        ("".join(a[i1:i2]), "".join(b[j1:j2])),
        recency,
        literal,
        lambda line: compiled.sub(result, line),
    )


def shape(line: str) -> list[tuple[str, str]]:
    """(space before, token) of a line; strings are single tokens."""
    return [(match["space"], match["token"]) for match in _SHAPE.finditer(line)]


def kind(token: str) -> str:
    """The token's class in a line's shape: names, numbers and strings stand for their likes."""
    if token in KEYWORDS:
        return token
    if _NAME.match(token):
        return "NAME"
    if token[0].isdigit():
        return "0"
    return '""' if len(token) > 1 and token[-1] in "\"'`" else token


def _carry(token: str, names: dict[str, str]) -> str:
    """A token of the new line with the other line's names in place of the edited line's."""
    if token in names:
        return names[token]
    for old, new in names.items():
        change = renaming(old, new) if _NAME.match(old) and _NAME.match(new) else None
        if change is None:
            continue
        carried = rename_in_line(token, change, inside=True)
        if carried != token:
            return carried
    return token


def analogy(old: str, new: str, recency: int, *, lossy: bool = False) -> Rewrite | None:
    """The edit `old` -> `new` carried to lines of the same shape, names mapped by position.

    `lossy` also takes lines whose own names would vanish without standing in the result.
    """
    a, b = shape(old.strip()), shape(new.strip())
    if len(a) < 3 or not b:
        return None
    old_tokens, new_tokens = [t for _, t in a], [t for _, t in b]
    ops = token_ops(old_tokens, new_tokens)
    kinds = [kind(t) for t in old_tokens]
    if not ops:
        return None
    kept = [t for i, t in enumerate(old_tokens) if not any(i1 <= i < i2 for i1, i2, _, _ in ops)]
    if not any(re.match(r"\w", t) or t in "=([{" for t in kept):
        return None

    def apply(line: str) -> str | None:
        body = line.strip()
        theirs = shape(body)
        if len(theirs) != len(a) or body == old.strip():
            return None
        tokens = [t for _, t in theirs]
        if [kind(t) for t in tokens] != kinds:
            return None
        names: dict[str, str] = {}
        for ours, other in zip(old_tokens, tokens, strict=True):
            if kind(ours) not in ("NAME", "0", '""'):
                continue
            if names.setdefault(ours, other) != other:
                return None
        names = {ours: other for ours, other in names.items() if ours != other}
        out: list[str] = []
        gone: list[str] = []
        last = 0
        for i1, i2, j1, j2 in [*ops, (len(a), len(a), len(b), len(b))]:
            out.extend(space + token for space, token in theirs[last:i1])
            gone.extend(
                tokens[i]
                for i in range(i1, i2)
                if tokens[i] != old_tokens[i] and kind(tokens[i]) != tokens[i]
            )
            out.extend(space + _carry(token, names) for space, token in b[j1:j2])
            last = i2
        result = "".join(out).lstrip()
        if not lossy and any(token not in result for token in gone):
            return None
        return line[: len(line) - len(line.lstrip())] + result

    needle = max((t for t in kinds if t not in ("NAME", "0", '""')), key=len, default="")
    return Rewrite(
        "analogy-lossy" if lossy else "analogy",
        (old.strip(), new.strip()),
        recency,
        needle.lower(),
        apply,
    )


def rewrites_of(change: Change) -> list[Rewrite]:
    """All rewrites that repeat one change, strongest evidence first."""
    pairs = line_pairs(change)
    if len(pairs) > 12:
        pairs = pairs[:12]
    recency = change.recency
    found: list[Rewrite] = []
    for old, new in pairs:
        links = substitutions_of(old, new)
        literal = [_literal("substitution", a, b, recency) for a, b in links]
        names = name_changes(old, new)
        if len(names) > 1:
            found.append(
                _sequence([_literal("joint", a, b, recency) for a, b in names], "joint", names[0])
            )
        found.extend(literal)
        for link in names:
            change_of_names = renaming(*link)
            if change_of_names:
                found.append(_variant("variant", link, change_of_names, recency, inside=False))
                found.append(_variant("subword", link, change_of_names, recency, inside=True))
        for extra in (
            template(old, new, recency),
            analogy(old, new, recency),
            analogy(old, new, recency, lossy=True),
        ):
            if extra:
                found.append(extra)
    unique: dict[tuple[str, Link], Rewrite] = {}
    for rewrite in found:
        unique.setdefault((rewrite.rule, rewrite.link), rewrite)
    return list(unique.values())
