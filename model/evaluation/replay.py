"""How a user works through one edit: what he types, and where he stops and the editor asks.

Responsible for turning a case into the pauses on the way from its text to a right answer, and for drawing a mixed
sample of cases. Follows the replay of CoEditor (Wei et al. 2024, arXiv 2305.18584) and the pauses of Zed's
`split-commit`: a pause after a line, and one in 8 to 15 keys where a person is likely to stop. While typing the next
key is one key's time away, at the case's own state the user is idle for a second. Knows nothing of predictors,
suggestions or gates.

    python -m model.evaluation.replay CASES.jsonl --count 400 --out SAMPLE.jsonl
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from diffing.hunks import Hunk, change_groups, reverse_unified, unified_diff
from model.evaluation.cases import Case, Id, parse_line
from model.evaluation.keystrokes import KEY_S
from model.evaluation.output import encode
from model.protocol import Request

KEYS_BETWEEN = (8, 15)
IDLE_S = 1.0
MIX = {"jump": 0.35, "mid-typing": 0.25, "fim": 0.15, "done": 0.15, "idle": 0.10}
MAX_CHARS = 40_000
LONGEST_LINE = 60_000
LINE_END = 30.0
DRAWN = 12


@dataclass(frozen=True, slots=True)
class Pause:
    """A moment at which the editor asks. `keys` are those typed on the way so far; `expected` are right answers, the
    text itself where silence is right. The next key comes after `rest` seconds."""

    request: Request
    expected: tuple[str, ...]
    keys: int = 0
    rest: float = IDLE_S

    @property
    def wanted(self) -> bool:
        return any(answer != self.request.text for answer in self.expected)


@dataclass(frozen=True, slots=True)
class Trace:
    """All pauses of one edit, in order. `release` groups traces of one package's release."""

    id: Id
    kind: str
    package: str
    release: str
    linked: bool | None
    pauses: tuple[Pause, ...]


def trace_of(case: Case, most: int = 3) -> Trace:
    """At most `most` pauses for a case: first its own state, then those of typing towards its first answer.

    Where nothing is left to do, the editor asks for the next edit and for a completion.
    """
    meta: Mapping[str, Any] = case.row.get("meta") or {}
    kind = str(meta.get("kind", case.request.mode))
    package = str(meta.get("package", case.request.path))
    rng = random.Random(f"pauses of {case.id}")
    expected = case.expected or (case.request.text,)
    pauses = [Pause(case.request, expected)]
    if not pauses[0].wanted:
        pauses.append(Pause(replace(case.request, mode="fim"), expected))
    elif case.request.mode == "next_edit":
        pauses += typing_pauses(case.request, expected, rng)
    return Trace(
        case.id,
        kind,
        package,
        f"{package} {meta.get('to', '')}".strip(),
        meta.get("linked"),
        tuple(pauses[:most]),
    )


def typing_pauses(
    request: Request, expected: tuple[str, ...], rng: random.Random
) -> Iterator[Pause]:
    """The pauses while `request.text` is typed into the first of `expected`, the first change group of it.

    What is also to be done elsewhere, by the other answers, is right all the time.
    """
    target = expected[0]
    base, history = before_newest(request)
    lead: list[Moment] = []
    gap = rng.randint(4, KEYS_BETWEEN[1])
    for moment in typed(request.text, target):
        lead.append(moment)
        if len(lead) < gap and moment.weight < LINE_END:
            continue
        ready = lead[KEYS_BETWEEN[0] - 1 :] or lead[-1:]
        stop = max(ready, key=lambda one: (one.weight, one.keys))
        grown = unified_diff(base, stop.text, request.path)
        asked = replace(request, text=stop.text, cursor=stop.cursor, history=(*history, grown))
        others = elsewhere(request.text, target, expected[1:], stop.text)
        yield Pause(asked, (target, *others), stop.keys, KEY_S)
        lead = lead[lead.index(stop) + 1 :]
        gap = KEYS_BETWEEN[1]


def elsewhere(text: str, target: str, answers: tuple[str, ...], now: str) -> Iterator[str]:
    """`now`, on the way from `text` to `target`, with what each answer does to `text` in one other place."""
    own = change_groups(text, target)[0]
    grown = len(now.splitlines()) - len(text.splitlines())
    lines = now.splitlines(keepends=True)
    for answer in answers:
        group, *more = change_groups(text, answer)
        if more or touches(group, own):
            continue
        start = group.old_start + (grown if group.old_start > own.old_start else 0)
        end = start + len(group.old_lines)
        if tuple(lines[start:end]) == group.old_lines:
            yield "".join([*lines[:start], *group.new_lines, *lines[end:]])


def touches(left: Hunk, right: Hunk) -> bool:
    return left.old_start <= right.old_start + len(
        right.old_lines
    ) and right.old_start <= left.old_start + len(left.old_lines)


def before_newest(request: Request) -> tuple[str, tuple[str, ...]]:
    """The text before the edit that is being typed, and the history before it."""
    if request.history:
        try:
            base = reverse_unified(request.text, request.history[-1])
        except ValueError:
            return request.text, request.history
        row = request.text.count("\n", 0, request.cursor)
        group = change_groups(base, request.text)
        if any(g.new_start <= row < g.new_start + len(g.new_lines) for g in group[-1:]):
            return base, request.history[:-1]
    return request.text, request.history


@dataclass(frozen=True, slots=True)
class Moment:
    """A text on the way, the cursor in it (code points), the keys so far, and how likely one pauses there."""

    text: str
    cursor: int
    keys: int
    weight: float


def typed(text: str, target: str) -> Iterator[Moment]:
    """Every text on the way from `text` to `target` within the first change group, a key each, from top to bottom."""
    groups = change_groups(text, target)
    if not groups:
        return
    group = groups[0]
    lines = text.splitlines(keepends=True)
    head, rest = "".join(lines[: group.old_start]), lines[group.old_start + len(group.old_lines) :]
    keys = 0
    for number, line in enumerate(group.new_lines):
        done = head + "".join(group.new_lines[:number])
        bare = line.rstrip("\n")
        low, tail, below = way_of_line(group, number)
        after = tail + "\n" + "".join(below) + "".join(rest)
        high = len(bare) - len(tail)
        for column in range(low + 1, high + 1):
            keys += 1
            now = done + bare[:column] + after
            if now in (text, target):
                continue
            ends = column == high and number + 1 < len(group.new_lines)
            weight = LINE_END if ends else pause_weight(bare, column)
            yield Moment(now, len(done) + column, keys, weight)


def way_of_line(group: Hunk, number: int) -> tuple[int, str, list[str]]:
    """How line `number` is typed: the column at which typing begins, what stays behind it, and the old lines below."""
    bare = group.new_lines[number].rstrip("\n")
    old = group.old_lines[number].rstrip("\n") if number < len(group.old_lines) else ""
    alike = SequenceMatcher(None, old, bare, autojunk=False).ratio() > 0.5
    if old.strip() and (alike or bare.startswith(old)):
        low = shared(old, bare)
        room = min(len(old), len(bare)) - low
        same = shared(old[::-1][:room], bare[::-1][:room])
        return low, bare[len(bare) - same :], list(group.old_lines[number + 1 :])
    return len(bare) - len(bare.lstrip()), "", list(group.old_lines[number:])


def shared(left: str, right: str) -> int:
    """Length of the common beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))


def pause_weight(line: str, column: int) -> float:
    """How likely a person pauses after `line[:column]`, relative: after openers most, inside a word
    least."""
    if column == 0:
        return 0.5
    before, after = line[column - 1], line[column : column + 1]
    if before in ",;:([{":
        return 10.0
    if before in ")]}":
        return 8.0
    if before.isalnum() or before == "_":
        return 1.0 if after.isalnum() or after == "_" else 8.0
    return 6.0 if before.isspace() else 5.0


def sample(path: Path, count: int, per_package: int) -> Iterator[Mapping[str, Any]]:
    """A fixed random sample of a file of cases, mixed by kind as `MIX` says, in random order.

    One case an episode and at most `per_package` a package; kinds take packages in turn.
    """
    pools: dict[str, list[tuple[int, int, bytes]]] = {kind: [] for kind in MIX}
    with path.open("rb") as lines:
        for number, line in enumerate(lines):
            name = line.partition(b'", "mode"')[0].decode()
            kind = next((kind for kind in MIX if name.endswith("-" + kind)), None)
            if kind is None or len(line) > 2 * MAX_CHARS:
                continue
            full = len(pools[kind]) >= DRAWN * count * MIX[kind]
            keep = heapq.heappushpop if full else heapq.heappush
            keep(pools[kind], (-zlib.crc32(line), number, line))
    chosen: list[tuple[int, dict[str, Any]]] = []
    taken: dict[str, int] = {}
    episodes: set[str] = set()
    for kind, pool in pools.items():
        waiting: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for order, _, line in sorted(pool, reverse=True):
            row = json.loads(line)
            waiting.setdefault(row["meta"]["package"], []).append((-order, row))
        left = round(count * MIX[kind])
        while left and waiting:
            for package in sorted(waiting):
                order, row = waiting[package].pop(0)
                if not waiting[package]:
                    del waiting[package]
                new = row["meta"]["episode"] not in episodes
                if left and new and taken.get(package, 0) < per_package:
                    episodes.add(row["meta"]["episode"])
                    taken[package] = taken.get(package, 0) + 1
                    chosen.append((order, row))
                    left -= 1
    yield from (row for _, row in sorted(chosen, key=lambda one: one[0]))


def drawn(path: Path, count: int, per_package: int) -> Iterator[Case]:
    """A fixed random sample of the next-edit cases that have a history, in random order, of all kinds as they come."""
    heap: list[tuple[int, int, bytes]] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines):
            name = line.partition(b'", "mode"')[0]
            if name.endswith((b"-fim", b"-idle")) or len(line) > LONGEST_LINE:
                continue
            keep = heapq.heappushpop if len(heap) >= 2 * count else heapq.heappush
            keep(heap, (-zlib.crc32(b"drafts" + line), number, line))
    taken: dict[str, int] = {}
    for _, number, line in sorted(heap, reverse=True):
        case = parse_line(line, number)
        assert isinstance(case, Case)
        package = case.row["meta"]["package"]
        if taken.get(package, 0) < per_package and sum(taken.values()) < count:
            taken[package] = taken.get(package, 0) + 1
            yield case


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw a mixed sample of a file of cases.")
    parser.add_argument("cases", type=Path)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--per-package", type=int, default=30)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rows = list(sample(args.cases, args.count, args.per_package))
    args.out.write_bytes(b"".join(map(encode, rows)))
    print(f"{len(rows)} cases")


if __name__ == "__main__":
    main()
