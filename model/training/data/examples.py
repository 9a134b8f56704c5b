"""Turns two states of a file into next-edit and fill-in-the-middle cases.

Responsible for the moments on the way from the old text to the new one: where the cursor stood,
what had been done and what was left to do. It knows nothing of packages, downloads or models. Texts
have `\\n` line ends only.

The recipe (jump, mid-typing, fim, done, idle) follows the practice of Zed's `split-commit`, NEP and
CoEditor: a history of the groups done so far, a target of one group, a cursor where the last edit
ended.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

from diffing.hunks import unified_diff
from model.evaluation.replay import pause_weight
from model.training.data.changes import (
    Group,
    cluster,
    common_prefix,
    common_suffix,
    is_reformat,
    linked,
    split_groups,
    typing_order,
)
from model.training.data.syntax import language_of

Kind = Literal["jump", "mid-typing", "fim", "done", "idle"]

MARGIN = (15, 60)
WHOLE_FILE = 160
MERGE_LINES = 8


@dataclass
class Episode:
    """An excerpt of a file and the groups that one sitting changes in it, in the order of typing.

    `others` are groups of later sittings inside the excerpt, still to be done when this one ends.
    """

    path: str
    lines: list[str]
    groups: list[Group]
    first_line: int = 0
    others: list[Group] = field(default_factory=list)

    def open_ends(self, done: Sequence[Group]) -> list[Group]:
        """Groups still to be done that someone who saw `done` could expect."""
        rest = [group for group in (*self.groups, *self.others) if group not in done]
        return [group for group in rest if linked(done, group)]

    def state(self, done: Iterable[Group]) -> list[str]:
        """The excerpt with some of the groups applied."""
        lines = list(self.lines)
        for group in sorted(done, key=lambda group: group.start, reverse=True):
            lines[group.start : group.end] = group.after
        return lines

    def row(self, group: Group, done: Iterable[Group]) -> int:
        """The line at which `group` begins once `done` are applied."""
        shift = sum(
            len(other.after) - len(other.before) for other in done if other.start < group.start
        )
        return group.start + shift

    def cursor_after(self, group: Group, done: Sequence[Group]) -> tuple[int, int]:
        """Where typing `group` last leaves the cursor: the end of what changed in its last changed
        line."""
        row = self.row(group, done)
        if not group.after:
            return row, 0
        last = group.after[-1].rstrip("\n")
        if len(group.before) == len(group.after):
            old = group.before[-1].rstrip("\n")
            return row + len(group.after) - 1, len(last) - common_suffix(old, last)
        return row + len(group.after) - 1, len(last)

    def history(self, done: Sequence[Group], rng: random.Random) -> list[str]:
        """One unified diff for each group, oldest first; close neighbours typed in a row are
        sometimes one."""
        diffs: list[str] = []
        previous = self.state(())
        base = previous
        for number, group in enumerate(done):
            now = self.state(done[: number + 1])
            near = number > 0 and abs(group.start - done[number - 1].start) <= MERGE_LINES
            if near and rng.random() < 0.5:
                diffs[-1] = unified_diff("".join(base), "".join(now), self.path)
            else:
                base = previous
                diffs.append(unified_diff("".join(base), "".join(now), self.path))
            previous = now
        return [diff for diff in diffs if diff]


def episodes(path: str, old: str, new: str, rng: random.Random) -> Iterator[Episode]:
    """The sittings that lead from `old` to `new`, in file order; earlier ones are done when a later
    one begins."""
    if is_reformat(old, new, language_of(path)):
        return
    lines, groups = split_groups(old, new)
    done: list[Group] = []
    for members in cluster(groups):
        whole = Episode(path, lines, members)
        base = whole.state(done)
        start = whole.row(members[0], done)
        end = max(whole.row(group, done) + len(group.before) for group in members)
        first, last = 0, len(base)
        if last > WHOLE_FILE:
            first = max(0, start - rng.randint(*MARGIN))
            last = min(last, end + rng.randint(*MARGIN))
        rest = [group for group in groups if group not in done and group not in members]
        inside, others = (
            [Group(whole.row(g, done) - first, g.before, g.after) for g in some]
            for some in (members, rest)
        )
        others = [group for group in others if group.start >= 0 and group.end <= last - first]
        yield Episode(path, base[first:last], typing_order(inside, rng), first, others)
        done += members


def type_partly(group: Group, rng: random.Random) -> tuple[tuple[str, ...], int, int] | None:
    """Stop in the middle of typing a group.

    Returns the group's lines as they stand then, and the cursor's line (from the group's first) and
    column. The cut is drawn by how likely one pauses there. None when the group adds nothing to
    type.
    """
    choices: list[tuple[int, int, str, tuple[str, ...]]] = []
    weights: list[float] = []
    for number, line in enumerate(group.after):
        text = line.rstrip("\n")
        if number < len(group.before) and line == group.before[number]:
            continue
        old = group.before[number].rstrip("\n") if number < len(group.before) else ""
        similar = bool(old) and SequenceMatcher(None, old, text, autojunk=False).ratio() > 0.5
        if similar:
            low, tail_length = common_prefix(old, text), common_suffix(old, text)
            high, tail = len(text) - tail_length, text[len(text) - tail_length :]
            below = group.before[number + 1 :]
        else:
            low, high, tail = len(text) - len(text.lstrip()), len(text), ""
            below = group.before[number:]
        for column in range(low, high + 1):
            partial = (*group.after[:number], text[:column] + tail + "\n", *below)
            if partial not in (group.after, group.before):
                choices.append((number, column, tail, partial))
                weights.append(pause_weight(text, column) / (1 + number))
    if not choices:
        return None
    number, column, _, partial = rng.choices(choices, weights)[0]
    return partial, number, column


def hole(group: Group, rng: random.Random) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """A stretch of a group's new lines to be filled in: ((line, column), (line, column)), end
    exclusive.

    The rest of a line, the rest of the group, or from inside one token to inside another.
    """
    rows = [number for number, line in enumerate(group.after) if len(line.strip()) > 3]
    if not rows:
        return None
    row = rng.choice(rows)
    line = group.after[row].rstrip("\n")
    indent = len(line) - len(line.lstrip())
    draw = rng.random()
    column = indent if rng.random() < 0.3 else rng.randint(indent, max(indent, len(line) - 2))
    last = len(group.after) - 1
    end = (row, len(line))
    if draw < 0.3 and row < last:
        end = (last, len(group.after[last].rstrip("\n")))
    elif draw >= 0.75:
        row_end = rng.randint(row, min(last, row + 3))
        length = len(group.after[row_end].rstrip("\n"))
        end = (row_end, rng.randint(min(length, column + 1 if row_end == row else 0), length))
    return ((row, column), end) if (row, column) < end else None


def episode_cases(episode: Episode, rng: random.Random) -> Iterator[dict[str, Any]]:
    """All cases of one sitting, in the headless contract's shape without `id`, with `meta` kind,
    linked and step."""
    for step, group in enumerate(episode.groups):
        done = episode.groups[:step]
        if step:
            yield jump_case(episode, step, rng)
        yield from filter(
            None, (typing_case(episode, done, group, rng), fim_case(episode, done, group, rng))
        )
    if not episode.open_ends(episode.groups):
        now = "".join(episode.state(episode.groups))
        cursor = episode.cursor_after(episode.groups[-1], episode.groups)
        history = episode.history(episode.groups, rng)
        yield case("done", episode, now, cursor, history, [now], None, len(episode.groups))
    yield idle_case(episode, rng)


def jump_case(episode: Episode, step: int, rng: random.Random) -> dict[str, Any]:
    """Some groups are done and the cursor is still at the last; a right answer makes one of those
    that remain."""
    done, rest = episode.groups[:step], episode.groups[step:]
    expected = ["".join(episode.state([*done, rest[0]]))]
    for other in episode.open_ends(done)[:4]:
        expected.append("".join(episode.state([*done, other])))
    if 1 < len(rest) <= 3:
        expected.append("".join(episode.state(episode.groups)))
    now = "".join(episode.state(done))
    cursor = episode.cursor_after(done[-1], done)
    return case(
        "jump",
        episode,
        now,
        cursor,
        episode.history(done, rng),
        expected,
        linked(done, rest[0]),
        step,
    )


def typing_case(
    episode: Episode, done: list[Group], group: Group, rng: random.Random
) -> dict[str, Any] | None:
    """The next group is partly typed; the right answer finishes it."""
    stopped = type_partly(group, rng)
    if stopped is None:
        return None
    after, number, column = stopped
    partial = Group(group.start, group.before, after)
    now = "".join(episode.state([*done, partial]))
    expected = ["".join(episode.state([*done, group]))]
    cursor = (episode.row(group, done) + number, column)
    history = episode.history(done, rng)
    last = unified_diff("".join(episode.state(done)), now, episode.path)
    tie = linked([*done, partial], Group(0, after, group.after))
    return case("mid-typing", episode, now, cursor, [*history, last], expected, tie, len(done))


def fim_case(
    episode: Episode, done: list[Group], group: Group, rng: random.Random
) -> dict[str, Any] | None:
    """A stretch of the next group's new lines is missing at the cursor, the rest is there."""
    gap = hole(group, rng)
    if gap is None:
        return None
    (row, column), (end_row, end_column) = gap
    joined = group.after[row][:column] + group.after[end_row][end_column:]
    holed = Group(
        group.start, group.before, (*group.after[:row], joined, *group.after[end_row + 1 :])
    )
    now = "".join(episode.state([*done, holed]))
    expected = ["".join(episode.state([*done, group]))]
    cursor = (episode.row(group, done) + row, column)
    tie = linked(done, Group(0, holed.after, group.after))
    return case("fim", episode, now, cursor, episode.history(done, rng), expected, tie, len(done))


def idle_case(episode: Episode, rng: random.Random) -> dict[str, Any]:
    """Nothing has been changed and the cursor is anywhere: silence is right."""
    now = "".join(episode.lines)
    row = rng.randrange(len(episode.lines))
    line = episode.lines[row].rstrip("\n")
    column = len(line) if rng.random() < 0.6 else rng.randint(0, len(line))
    return case("idle", episode, now, (row, column), [], [now], None, 0)


def case(
    kind: Kind,
    episode: Episode,
    text: str,
    cursor: tuple[int, int],
    history: list[str],
    expected: list[str],
    tie: bool | None,
    step: int,
) -> dict[str, Any]:
    return {
        "mode": "fim" if kind == "fim" else "next_edit",
        "path": episode.path,
        "language": language_of(episode.path),
        "text": text,
        "cursor": {"line": cursor[0], "character": cursor[1]},
        "history": history,
        "expected": list(dict.fromkeys(expected)),
        "meta": {"kind": kind, "linked": tie, "step": step, "first_line": episode.first_line},
    }
