"""Identifiers as words: split, restyle, rename inside longer names.

Responsible for what two spellings of one name have in common (snake_case, camelCase, PascalCase,
UPPER_CASE, singular and plural). Knows nothing of lines, files, edits or languages beyond the shape
of a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

_NAME = re.compile(r"[^\W\d]\w*")
_INVARIABLE = frozenset(
    {"this", "is", "has", "was", "class", "alias", "args", "kwargs", "status", "bus", "process"}
)


@lru_cache(maxsize=4096)
def split_words(name: str) -> tuple[tuple[str, str], ...]:
    """Pairs (separator before the word, word): `_getUserName` -> (("_","get"), ("","User"),
    ("","Name")).
    """
    words: list[tuple[str, str]] = []
    at = done = 0
    while at < len(name):
        if not name[at].isalnum():
            at += 1
            continue
        end = at + 1
        if name[at].isdigit():
            end = _run(name, end, str.isdigit)
        elif name[at].isupper():
            end = _run(name, end, str.isupper)
            if end < len(name) and _is_small(name[end]):
                end = end - 1 if end - at > 1 else _run(name, end, _is_small)
        else:
            end = _run(name, end, _is_small)
        words.append((name[done:at], name[at:end]))
        at = done = end
    return tuple(words)


def _run(name: str, at: int, test: Callable[[str], bool]) -> int:
    while at < len(name) and test(name[at]):
        at += 1
    return at


def _is_small(char: str) -> bool:
    return char.isalpha() and not char.isupper()


def plural(word: str) -> str:
    """The regular English plural of a lower-case word."""
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + "es" if re.search(r"(s|x|z|ch|sh)$", word) else word + "s"


def singular(word: str) -> str | None:
    """The singular of a regular plural; None when the word does not look like one."""
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss") or word in _INVARIABLE:
        return None
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if re.search(r"(ss|x|z|ch|sh)es$", word) else word[:-1]


@dataclass(frozen=True, slots=True)
class Renaming:
    """The words that differ between two names, lower case; `shared` counts the words they have in
    common.

    `styled` tells how the new words were joined in the name the user typed ("_", "" for camel
    case).
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    shared: int
    joint: str


def renaming(old: str, new: str) -> Renaming | None:
    """What one would have to do to other names after `old` became `new`; None when there is no
    common sense in it.

    Common leading and trailing words are dropped (`user_name` -> `account_name` is `user` ->
    `account`); if nothing of `old` is left (a word was added) the whole names are kept.
    """
    before = tuple(word.lower() for _, word in split_words(old))
    after = tuple(word.lower() for _, word in split_words(new))
    if not before or not after or before == after:
        return None
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    joint = "_" if "_" in new.strip("_") or new.islower() else ""
    core_old, core_new = before[head : len(before) - tail], after[head : len(after) - tail]
    if not core_old or not core_new:
        return Renaming(before, after, 0, joint)
    return Renaming(core_old, core_new, head + tail, joint)


def _style(words: tuple[str, ...], name: str, first: str, joint: str) -> list[tuple[str, str]]:
    """The new words with separators, in the style of `name` where `first` was the first word
    replaced.
    """
    if first.isupper() and (len(first) > 1 or name.isupper()):
        return [("_" if i else "", word.upper()) for i, word in enumerate(words)]
    inner = name.strip("_")
    if "_" in inner:
        separator = "_"
    elif inner.islower():
        separator = joint
    else:
        separator = ""
    capital = separator == "" or first[:1].isupper()
    return [
        (
            separator if i else "",
            word.capitalize() if (first[:1].isupper() if i == 0 else capital) else word,
        )
        for i, word in enumerate(words)
    ]


def rename_word_run(name: str, change: Renaming, *, inside: bool) -> str | None:
    """`name` with the old words replaced in its own style; None when they do not stand in it.

    With `inside` false the whole name must consist of the old words (case and plural aside); with
    `inside` true they may be a part of a longer name.
    """
    parts = split_words(name)
    lower = tuple(word.lower() for _, word in parts)
    size = len(change.old)
    if size == 0 or len(lower) < size or (not inside and len(lower) != size):
        return None
    for at in range(len(lower) - size + 1):
        window = lower[at : at + size]
        new = change.new
        if _stands_already(lower, at, change):
            continue
        if window[:-1] != change.old[:-1]:
            continue
        if window[-1] != change.old[-1]:
            if plural(change.old[-1]) == window[-1]:
                new = (*new[:-1], plural(new[-1]))
            elif singular(change.old[-1]) == window[-1] and singular(new[-1]):
                new = (*new[:-1], singular(new[-1]) or "")
            else:
                continue
        styled = _style(new, name, parts[at][1], change.joint)
        styled[0] = (parts[at][0], styled[0][1])
        end = sum(len(sep) + len(word) for sep, word in parts)
        joined = "".join(sep + word for sep, word in (*parts[:at], *styled, *parts[at + size :]))
        return joined + name[end:]
    return None


def _stands_already(words: tuple[str, ...], at: int, change: Renaming) -> bool:
    """True when the old words at `at` are part of the new ones (`price` in `unit_price`)."""
    size = len(change.new)
    for inset in range(size - len(change.old) + 1):
        if change.new[inset : inset + len(change.old)] == change.old and inset <= at:
            start = at - inset
            if words[start : start + size] == change.new:
                return True
    return False


def rename_in_line(line: str, change: Renaming, *, inside: bool) -> str:
    """Every name in `line` renamed where the old words stand in it."""

    def replace(match: re.Match[str]) -> str:
        return rename_word_run(match.group(), change, inside=inside) or match.group()

    return _NAME.sub(replace, line)
