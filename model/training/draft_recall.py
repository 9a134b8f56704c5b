"""How often the draft rules propose a right next edit: `python -m model.training.draft_recall
CASES.jsonl`.

Responsible for counting over cases with known answers, per kind of case and per rule. Looks at no
model.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from diffing.edits import Edit
from diffing.hunks import change_groups
from model.draft import Draft, drafts
from model.evaluation.cases import BadCase, Case, read_cases

Group = tuple[int, tuple[str, ...], tuple[str, ...]]


def groups_of(old: str, new: str, first_line: int = 0) -> Iterator[Group]:
    """Change groups of two texts as comparable values; line numbers begin at `first_line`."""
    for hunk in change_groups(old, new):
        yield hunk.old_start + first_line, tuple(hunk.old_lines), tuple(hunk.new_lines)


def groups_of_edit(text: str, edit: Edit) -> set[Group]:
    """Change groups that one edit makes, found without comparing the whole text."""
    start = text.rfind("\n", 0, edit.start) + 1
    end = text.find("\n", edit.end)
    end = len(text) if end < 0 else end + 1
    old = text[start:end]
    new = text[start : edit.start] + edit.new_text + text[edit.end : end]
    return set(groups_of(old, new, text.count("\n", 0, start)))


class Judge:
    """Tells right drafts from wrong ones by a case's `expected`.

    A draft is right when it gives an expected buffer, or when each of its change groups is a change
    group of one expected buffer.
    """

    def __init__(self, case: Case) -> None:
        self.text = case.request.text
        self.expected = [text for text in case.expected or () if text != self.text]
        self._groups: list[set[Group]] | None = None

    @property
    def positive(self) -> bool:
        return bool(self.expected)

    def right(self, draft: Draft) -> bool:
        if not self.expected:
            return False
        edit = draft.edit
        after = self.text[: edit.start] + edit.new_text + self.text[edit.end :]
        if after in self.expected:
            return True
        if self._groups is None:
            self._groups = [set(groups_of(self.text, text)) for text in self.expected]
        mine = groups_of_edit(self.text, edit)
        return any(mine <= groups for groups in self._groups)


class Tally:
    """Counts of one kind of case."""

    def __init__(self) -> None:
        self.cases = self.positive = self.drafted = self.right = self.nearest = self.drafts = 0
        self.ranks: list[int] = []

    def add(self, positive: bool, rights: list[bool]) -> None:
        self.cases += 1
        self.drafts += len(rights)
        self.positive += positive
        if positive and rights:
            self.drafted += 1
            self.nearest += rights[0]
            if any(rights):
                self.right += 1
                self.ranks.append(rights.index(True))

    def row(self) -> list[str]:
        def share(count: int, of: int) -> str:
            return f"{100 * count / of:.1f} %" if of else "-"

        ranks = sorted(self.ranks)
        return [
            str(self.cases),
            str(self.positive),
            share(self.drafted, self.positive),
            share(self.right, self.positive),
            share(self.nearest, self.drafted),
            f"{self.drafts / max(1, self.cases):.1f}",
            str(ranks[len(ranks) // 2]) if ranks else "-",
            str(ranks[int(len(ranks) * 0.9)]) if ranks else "-",
        ]


def measure(cases: Iterable[Case], limit: int) -> dict[str, Any]:
    """Run the rules over `cases`; returns tallies by kind, counts by rule and the time taken per
    request in ms.
    """
    kinds: dict[str, Tally] = defaultdict(Tally)
    made: Counter[str] = Counter()
    right: Counter[str] = Counter()
    only: Counter[str] = Counter()
    times: list[float] = []
    for case in cases:
        meta = case.row.get("meta", {})
        kind = meta.get("kind", "next edit")
        if meta.get("linked") is not None:
            kind += " linked" if meta["linked"] else " unlinked"
        began = time.perf_counter()
        found = drafts(case.request, limit)
        times.append(1e3 * (time.perf_counter() - began))
        judge = Judge(case)
        rights = [judge.right(draft) for draft in found]
        for name in (kind, "all"):
            kinds[name].add(judge.positive, rights)
        made.update(draft.rule for draft in found)
        rules = [draft.rule for draft, is_right in zip(found, rights, strict=True) if is_right]
        right.update(rules)
        if len(set(rules)) == 1:
            only[rules[0]] += 1
    times.sort()
    return {"kinds": kinds, "made": made, "right": right, "only": only, "times": times}


def print_table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print(
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
        )


def next_edit_cases(path: Path, first: int | None = None) -> Iterator[Case]:
    """The next-edit cases among the first lines of a file; ValueError for a line that is none."""
    for number, case in enumerate(read_cases(path)):
        if first is not None and number >= first:
            return
        if isinstance(case, BadCase):
            raise ValueError(case.error)
        if case.request.mode == "next_edit" and case.row.get("meta", {}).get("kind") != "fim":
            yield case


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m model.training.draft_recall", description=__doc__.split("\n")[0]
    )
    parser.add_argument("cases", type=Path, help="cases with `expected`, one JSON object a line")
    parser.add_argument("--first", type=int, default=None, help="look only at the first N cases")
    parser.add_argument("--limit", type=int, default=24, help="drafts per request (default 24)")
    args = parser.parse_args(arguments)
    result = measure(next_edit_cases(args.cases, args.first), args.limit)
    print_table(
        [
            "kind",
            "cases",
            "with edit",
            "drafted",
            "right draft",
            "first right",
            "drafts",
            "rank p50",
            "rank p90",
        ],
        [[kind, *tally.row()] for kind, tally in sorted(result["kinds"].items())],
    )
    print()
    made, right, only = result["made"], result["right"], result["only"]
    print_table(
        ["rule", "drafts", "right", "precision", "only one right"],
        [
            [
                rule,
                str(count),
                str(right[rule]),
                f"{100 * right[rule] / count:.1f} %",
                str(only[rule]),
            ]
            for rule, count in made.most_common()
        ],
    )
    times = result["times"]
    if times:
        p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
        print(f"\nms per request: p50 {p50:.1f}, p99 {p99:.1f}, max {times[-1]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
