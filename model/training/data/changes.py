"""Groups of changed lines, and how a person would have made them.

Responsible for cutting the difference of two texts into groups, for telling which belong together
and in which order they were typed. It knows nothing of cursors, cases, packages or models. Texts
have `\\n` line ends only.
"""

from __future__ import annotations

import ast
import keyword
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from diffing.hunks import change_groups
from diffing.positions import split_lines

MAX_GROUP_LINES = 12
MAX_GROUPS = 8
MAX_SPAN = 160

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LAYOUT = re.compile(r"[\s;,'\"`()]+")
TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|\s+|[^\sA-Za-z0-9_]")
# Python's commonest names, and the words that JavaScript and TypeScript have for themselves.
COMMON_WORDS = """
self cls str int bool float list dict Any type
const let var function return this null undefined true false new typeof instanceof void export default
extends implements interface enum switch case break throw catch finally do of delete super static public
private protected readonly string number boolean object unknown never any require module exports
"""
COMMON = frozenset(keyword.kwlist) | frozenset(COMMON_WORDS.split())


@dataclass(frozen=True)
class Group:
    """A maximal run of changed lines: `old[start:start + len(before)]` becomes `after`. Lines keep
    their ends."""

    start: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.before)

    @property
    def names(self) -> frozenset[str]:
        """Identifiers that the group adds or takes away."""
        return changed_names("".join(self.before), "".join(self.after))

    @property
    def substitutions(self) -> frozenset[tuple[str, str]]:
        """Token-level replacements (old, new) inside the group."""
        return token_substitutions("".join(self.before), "".join(self.after))

    def introduces(self) -> set[str]:
        """Names that the group's new lines define or import and its old ones do not."""
        pattern = re.compile(
            r"(?:\b(?:def|class|import|as|const|let|var|function|interface|enum)\s+|^\s*)([A-Za-z_]\w*)(?=\s*(?:\(|[:=]|$|,))",
            re.M,
        )
        return set(pattern.findall("".join(self.after))) - set(
            pattern.findall("".join(self.before))
        )


@lru_cache(maxsize=8192)
def changed_names(old: str, new: str) -> frozenset[str]:
    """Identifiers that only one of the texts has; keywords and the commonest names are left out."""
    either = set(IDENTIFIER.findall(old)) ^ set(IDENTIFIER.findall(new))
    return frozenset(name for name in either if len(name) > 1 and name not in COMMON)


@lru_cache(maxsize=8192)
def token_substitutions(old: str, new: str) -> frozenset[tuple[str, str]]:
    """Token-level replacements (old, new) of at most 60 characters, surrounding blanks left out."""
    if not old or not new:
        return frozenset()
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    found = set()
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        pair = ("".join(before[i:j]).strip(), "".join(after[k:m]).strip())
        if tag != "equal" and pair[0] != pair[1] and max(map(len, pair)) <= 60:
            found.add(pair)
    return frozenset(found)


def linked(history: Iterable[Group], target: Group) -> bool:
    """Whether the target could be guessed from the history: a changed identifier or a substitution
    in common."""
    names, substitutions = target.names, target.substitutions
    return any(names & group.names or substitutions & group.substitutions for group in history)


def common_prefix(left: str, right: str) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def common_suffix(left: str, right: str) -> int:
    """Length of the longest common suffix that does not overlap the longest common prefix."""
    room = min(len(left), len(right)) - common_prefix(left, right)
    count = 0
    while count < room and left[-1 - count] == right[-1 - count]:
        count += 1
    return count


def is_reformat(old: str, new: str, language: str = "python") -> bool:
    """Whether only the layout of two texts differs (in Python: or comments, by the syntax tree).

    Elsewhere quotes, semicolons, commas and parentheses count as layout, as formatters change them.
    """
    if language != "python":
        return LAYOUT.sub("", old) == LAYOUT.sub("", new)
    try:
        return ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    except (SyntaxError, ValueError, RecursionError):
        return False


def split_groups(old: str, new: str) -> tuple[list[str], list[Group]]:
    """Lines of the old text with every unsuitable change already made, and the groups that are
    left.

    Unsuitable are groups of more than `MAX_GROUP_LINES` lines, those that change white space only
    and those that touch a last line without an end.
    """
    lines: list[str] = []
    groups: list[Group] = []
    old_lines = split_lines(old)
    position = 0
    for hunk in change_groups(old, new):
        lines += old_lines[position : hunk.old_start]
        position = hunk.old_start + len(hunk.old_lines)
        before, after = tuple(hunk.old_lines), tuple(hunk.new_lines)
        blank = "".join("".join(before).split()) == "".join("".join(after).split())
        open_ended = any(not line.endswith("\n") for line in before + after)
        if blank or open_ended or max(len(before), len(after)) > MAX_GROUP_LINES:
            lines += after
        else:
            groups.append(Group(len(lines), before, after))
            lines += before
    return lines + old_lines[position:], groups


def cluster(groups: Sequence[Group]) -> list[list[Group]]:
    """Partition the groups of a file into sittings.

    Groups that share a changed identifier or a substitution belong together (unless it is too
    common in the file to tell), at most `MAX_GROUPS` of them within `MAX_SPAN` lines. What is left
    over is joined with its neighbours.
    """
    holders: dict[object, list[int]] = {}
    for index, group in enumerate(groups):
        for key in (*group.names, *group.substitutions):
            holders.setdefault(key, []).append(index)
    leader = list(range(len(groups)))

    def find(index: int) -> int:
        while leader[index] != index:
            index = leader[index]
        return index

    for members in holders.values():
        if len(members) <= 2 * MAX_GROUPS:
            for one, other in pairwise(members):
                if groups[other].end - groups[one].start <= MAX_SPAN:
                    leader[find(other)] = find(one)
    families: dict[int, list[Group]] = {}
    for index, group in enumerate(groups):
        families.setdefault(find(index), []).append(group)
    sittings: list[list[Group]] = []
    singles: list[Group] = []
    for family in families.values():
        for part in in_reach(family):
            if len(part) > 1:
                sittings.append(part)
            else:
                singles += part
    singles.sort(key=lambda group: group.start)
    sittings += in_reach(singles, size=3)
    return sorted(sittings, key=lambda sitting: sitting[0].start)


def in_reach(groups: Sequence[Group], size: int = MAX_GROUPS) -> Iterator[list[Group]]:
    """Cut a sorted run of groups so that each part is short and close enough for one excerpt."""
    part: list[Group] = []
    for group in groups:
        if part and (len(part) == size or group.end - part[0].start > MAX_SPAN):
            yield part
            part = []
        part.append(group)
    if part:
        yield part


def typing_order(groups: Sequence[Group], rng: random.Random) -> list[Group]:
    """The order in which a person would make the changes: definitions before uses, else top to
    bottom; 1 in 5 random."""
    rest = sorted(groups, key=lambda group: group.start)
    if rng.random() < 0.2:
        rng.shuffle(rest)
        return rest
    defined = {group: group.introduces() for group in rest}
    ordered: list[Group] = []
    while rest:
        ready = next(
            (
                g
                for g in rest
                if not any(defined[o] & g.names - defined[g] for o in rest if o is not g)
            ),
            rest[0],
        )
        ordered.append(ready)
        rest.remove(ready)
    return ordered
