"""An edit made general: as a template with holes, or carried to a line of the same shape.

Responsible for functions from a line to the line it would become. Knows nothing of where lines
stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from model.draft_history import token_ops
from model.names import rename_in_line, renaming

LineRewrite = Callable[[str], str | None]

TOKEN = re.compile(r"\w+|[ \t]+|[^\w\s]")
NAME = re.compile(r"[^\W\d]\w*\Z")
_KEYWORDS = (
    "False None True and as assert async await bool break case catch class const continue "
    "def default del do elif else enum except export extends extern false final finally fn "
    "for from func function global go if implements import in instanceof int interface is "
    "lambda let long match new nil nonlocal not null or package pass private protected "
    "public raise readonly return self static str struct super switch this throw throws "
    "true try type typeof union unsigned use var void while with yield "
)
KEYWORDS = frozenset(_KEYWORDS.split())
_SHAPE = re.compile(
    r"(?P<space>\s*)(?P<token>[rbfuRBFU]{0,2}\"[^\"\n]*\"|[rbfuRBFU]{0,2}'[^'\n]*'|`[^`\n]*`"
    r"|[^\W\d]\w*|\d[\w.]*|[^\w\s])"
)
_OPEN, _CLOSE = "([{", ")]}"


def is_balanced(text: str) -> bool:
    """True when the brackets of a text close in order and no quote stays open."""
    stack: list[str] = []
    quote = ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _OPEN:
            stack.append(_CLOSE[_OPEN.index(char)])
        elif char in _CLOSE and (not stack or stack.pop() != char):
            return False
    return not stack and not quote


@dataclass(frozen=True, slots=True)
class Template:
    """Literal texts with holes between them, and the result in terms of the holes.

    `result` holds texts and hole numbers. A hole matches the shortest balanced text.
    """

    literals: tuple[str, ...]
    result: tuple[str | int, ...]

    def _match(self, line: str, at: int) -> tuple[int, list[str]] | None:
        """End and holes of a match that starts at `at`."""
        if at and re.match(r"\w", self.literals[0]) and re.match(r"\w", line[at - 1]):
            return None
        end = at + len(self.literals[0])
        holes: list[str] = []
        for literal in self.literals[1:]:
            stop = end
            while True:
                stop = line.find(literal, stop + 1)
                if stop < 0:
                    return None
                hole = line[end:stop]
                if hole.strip() and is_balanced(hole):
                    break
            holes.append(hole)
            end = stop + len(literal)
        return end, holes

    def apply(self, line: str) -> str:
        """The line with all matches replaced, left to right."""
        out: list[str] = []
        done = at = 0
        while (at := line.find(self.literals[0], at)) >= 0:
            match = self._match(line, at)
            if match is None:
                at += 1
                continue
            end, holes = match
            new = "".join(holes[part] if isinstance(part, int) else part for part in self.result)
            if not line.startswith(new, max(0, at - max(0, new.find(self.literals[0])))):
                out += [line[done:at], new]
                done = end
            at = max(end, at + 1)
        return "".join(out) + line[done:]


def _chain_start(tokens: list[str], at: int) -> int:
    """Start of the dotted name that reaches up to `at`."""
    while at >= 2 and tokens[at - 1] == "." and re.match(r"\w", tokens[at - 2]):
        at -= 2
    return at


def _widened(
    tokens: list[str], ops: list[tuple[int, int, int, int]]
) -> list[tuple[int, int, int, int]]:
    """Pure insertions with a neighbour, so that each operation has something to be found by."""
    wide = []
    for number, (i1, stop, j1, new_stop) in enumerate(ops):
        i2, j2 = stop, new_stop
        limit = ops[number + 1][0] if number + 1 < len(ops) else len(tokens)
        if i1 == i2:
            if number == 0 or i1 == ops[number - 1][1]:
                grow = min(limit, i2 + 1)
                if grow < limit and tokens[grow] in _OPEN:
                    grow += 1
            else:
                grow = min(len(tokens), i2 + 1)
            i2, j2 = grow, j2 + (grow - i2)
        wide.append((i1, i2, j1, j2))
    return wide


def templates(old: str, new: str) -> list[Template]:
    """The edit with what both sides share as holes: `Optional[str]` -> `str | None` fits any type.

    One template for the whole changed span and one for each two neighbouring operations.
    """
    a, b = TOKEN.findall(old.strip()), TOKEN.findall(new.strip())
    first = token_ops(a, b)
    if not first:
        return []
    start = _chain_start(a, first[0][0])
    shift = first[0][2] - first[0][0]
    stop, new_stop = first[-1][1], first[-1][3]
    ops = [
        (start + i1, start + i2, start + shift + j1, start + shift + j2)
        for i1, i2, j1, j2 in token_ops(a[start:stop], b[start + shift : new_stop], trim=False)
    ]
    found = []
    if 1 < len(ops) <= 4:
        found.append(_template(a, b, _widened(a, ops)))
    if len(ops) > 2:
        found += [_template(a, b, _widened(a, [x, y])) for x, y in pairwise(ops)]
    found += _call_templates(a, b, first)
    return list(dict.fromkeys(template for template in found if template))


def _template(a: list[str], b: list[str], ops: list[tuple[int, int, int, int]]) -> Template | None:
    literals: list[str] = [""]
    result: list[str | int] = [""]
    for number, (i1, i2, j1, j2) in enumerate(ops):
        literals[-1] += "".join(a[i1:i2])
        result.append("".join(b[j1:j2]))
        if number + 1 < len(ops):
            shared = "".join(a[i2 : ops[number + 1][0]])
            if re.search(r"\w", shared) and is_balanced(shared):
                result.append(len(literals) - 1)
                literals.append("")
            else:
                literals[-1] += shared
                result.append(shared)
    fixed = "".join(literals)
    if len(literals) < 2 or not all(literals) or not re.search(r"\w|`|\"|'", fixed):
        return None
    return Template(tuple(literals), tuple(part for part in result if part != ""))


def _call_templates(
    a: list[str], b: list[str], ops: list[tuple[int, int, int, int]]
) -> list[Template]:
    """An argument added at the end of a call, for any call of the same function."""
    if len(ops) != 1 or ops[0][0] != ops[0][1]:
        return []
    i1, _, j1, j2 = ops[0]
    if i1 >= len(a) or a[i1] != ")":
        return []
    depth, at = 1, i1
    while at > 0 and depth:
        at -= 1
        depth += (a[at] == ")") - (a[at] == "(")
    if depth or at == 0 or not NAME.match(a[at - 1]) or at + 1 == i1:
        return []
    head = "".join(a[at - 1 : at + 1])
    return [Template((head, ")"), (head, 0, "".join(b[j1:j2]) + ")"))]


@lru_cache(maxsize=8192)
def shape(line: str) -> tuple[tuple[str, str], ...]:
    """(space before, token) of a line; strings are single tokens."""
    return tuple((match[1], match[2]) for match in _SHAPE.finditer(line))


@lru_cache(maxsize=8192)
def kinds(line: str) -> tuple[str, ...]:
    """The classes of a line's tokens; equal for lines of the same shape."""
    return tuple(kind(token) for _, token in shape(line))


def kind(token: str) -> str:
    """The token's class in a line's shape: names, numbers and strings stand for their likes."""
    if token in KEYWORDS:
        return token
    if NAME.match(token):
        return "NAME"
    if token[0].isdigit():
        return "0"
    return '""' if len(token) > 1 and token[-1] in "\"'`" else token


_OPEN_KINDS = ("NAME", "0", '""')


def carry(token: str, names: dict[str, str]) -> str:
    """A token of the new line with the other line's names in place of the edited line's."""
    if token in names:
        return names[token]
    for old, new in names.items():
        change = renaming(old, new) if NAME.match(old) and NAME.match(new) else None
        if change is None:
            continue
        carried = rename_in_line(token, change, inside=True)
        if carried != token:
            return carried
    return token


def name_map(ours: list[str], theirs: list[str]) -> dict[str, str] | None:
    """Names, numbers and strings of one token list -> those of another of the same shape.

    None when the shapes differ or one name would stand for two.
    """
    if len(ours) != len(theirs):
        return None
    names: dict[str, str] = {}
    for mine, other in zip(ours, theirs, strict=True):
        sort = kind(mine)
        if sort != kind(other):
            return None
        if sort in _OPEN_KINDS and names.setdefault(mine, other) != other:
            return None
    return {mine: other for mine, other in names.items() if mine != other}


def analogy(old: str, new: str, *, lossy: bool = False) -> tuple[str, LineRewrite] | None:
    """The edit `old` -> `new` carried to lines of the same shape, names mapped by position.

    Texts may span lines. Returns a literal that stands in every such line, and the rewrite.
    `lossy` also takes lines whose own names would vanish without standing in the result.
    """
    a, b = shape(old.strip()), shape(new.strip())
    if len(a) < 3 or not b:
        return None
    old_tokens = [token for _, token in a]
    ops = token_ops(old_tokens, [token for _, token in b])
    if not ops:
        return None
    changed = {i for i1, i2, _, _ in ops for i in range(i1, i2)}
    kept = [token for i, token in enumerate(old_tokens) if i not in changed]
    if not any(re.match(r"\w", token) or token in "=([{" for token in kept):
        return None
    plain = old.strip()
    marks = kinds(plain)

    def apply(line: str) -> str | None:
        body = line.strip()
        if kinds(body) != marks or body == plain:
            return None
        theirs = shape(body)
        tokens = [token for _, token in theirs]
        names = name_map(old_tokens, tokens)
        if not names:
            return None
        out: list[str] = []
        last = new_last = 0
        for i1, i2, j1, j2 in [*ops, (len(a), len(a), len(b), len(b))]:
            for (space, token), (was, _), (now, _) in zip(
                theirs[last:i1], a[last:i1], b[new_last:j1], strict=True
            ):
                out.append((space if was == now else now) + token)
            out.extend(space + carry(token, names) for space, token in b[j1:j2])
            last, new_last = i2, j2
        result = "".join(out).lstrip()
        gone = [tokens[i] for i in changed if tokens[i] != old_tokens[i]]
        if not lossy and any(kind(token) in _OPEN_KINDS and token not in result for token in gone):
            return None
        return line[: len(line) - len(line.lstrip())] + result

    needle = max((mark for mark in marks if mark not in _OPEN_KINDS), key=len, default="")
    return needle.lower(), apply
