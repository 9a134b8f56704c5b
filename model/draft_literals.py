"""What a number or a string on a line belongs to.

Responsible for telling whether two equal literals mean the same: `timeout=30` and `self.timeout = 30` do,
`RETRIES = 30` does not. Knows nothing of rewrites or places.
"""

from __future__ import annotations

from collections.abc import Callable

from model.draft_shapes import KEYWORDS, NAME, kind, shape
from model.names import split_words

_CLOSE, _OPEN = ")]}", "([{"
_CONSTANTS = ("0", '""')


def _tokens(line: str) -> list[str]:
    return [token for _, token in shape(line.strip())]


def _stretch(tokens: list[str], at: int) -> list[str]:
    """Names and strings left of `at` up to the comma or bracket that begins the item, nearest last."""
    found: list[str] = []
    depth = 0
    while at > 0:
        at -= 1
        token = tokens[at]
        if token in _CLOSE:
            depth += 1
        elif token in _OPEN:
            if depth == 0:
                break
            depth -= 1
        elif token in ",;" and depth == 0:
            break
        elif depth == 0 and token == ":":
            found.clear()
        if depth == 0 and (kind(token) in ("NAME", '""') or token == "return"):
            found.append(token.strip("\"'`"))
    return found[::-1]


def owner(tokens: list[str], at: int) -> str | None:
    """The name that the literal at `at` gives a value to: target, keyword, key, compared name or called function.

    None where the literal is itself a name: a key, a subscript, a string passed to a function.
    """
    if tokens[at + 1 : at + 2] == [":"] and tokens[at][0] in "\"'":
        return None
    depth = 0
    for left in range(at - 1, -1, -1):
        token = tokens[left]
        if token in _CLOSE:
            depth += 1
        elif token in _OPEN and depth:
            depth -= 1
        elif token in _OPEN:
            before = tokens[left - 1] if left else ""
            named = bool(NAME.match(before)) and before not in KEYWORDS
            if token == "[" and (named or before in (")", "]")):
                return None
            if token == "(" and named:
                return before if kind(tokens[at]) == "0" else None
        elif not depth and token in ("=", ":", "<", ">", "return"):
            names = _stretch(tokens, left + (token == "return"))
            return names[-1] if names else ""
    return ""


def _akin(left: str, right: str) -> bool:
    ours = {word.lower() for _, word in split_words(left)}
    return left == right or bool(ours & {word.lower() for _, word in split_words(right)})


def tie(old: str, new: str) -> Callable[[str, str], bool] | None:
    """A test of (line, rewritten line) when the edit changed nothing but literals that belong to something: a changed
    literal of the line must belong to something of like name. None when every repetition makes sense.
    """
    before, after = _tokens(old), _tokens(new)
    if len(before) != len(after):
        return None
    owners: list[str] = []
    for at, (a, b) in enumerate(zip(before, after, strict=True)):
        if a == b:
            continue
        belongs = owner(before, at) if kind(a) in _CONSTANTS and kind(b) in _CONSTANTS else None
        if belongs is None:
            return None
        owners.append(belongs)
    if not owners:
        return None

    def tied(line: str, rewritten: str) -> bool:
        mine, theirs = _tokens(line), _tokens(rewritten)
        if len(mine) != len(theirs):
            return True
        changed = [at for at, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b]
        names = [owner(mine, at) for at in changed]
        return all(name is None or any(_akin(name, one) for one in owners) for name in names)

    return tied
