"""Public benchmarks as cases.

Responsible for converting HumanEval-Infilling and NEP rows to the headless contract, and for the
fixed sample of those that are too long to be run whole. It knows nothing of predictors or scores.
`python -m model.evaluation.benchmarks nep --out nep.jsonl` writes one out, whole.

The files are looked for under the folder given, `$REDRAFT_DATA`, or `../shared/data` beside the
repository.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from diffing.edits import Edit, shrink
from diffing.hunks import change_groups, unified_diff
from diffing.positions import LineIndex, split_lines, without_line_end
from model.evaluation.cases import Case, parse_row
from model.evaluation.languages import language_of
from model.evaluation.output import write_rows

FILES = {
    "random-span-light": "human-eval-infilling/HumanEval-RandomSpanInfillingLight.jsonl.gz",
    "random-span": "human-eval-infilling/HumanEval-RandomSpanInfilling.jsonl.gz",
    "single-line": "human-eval-infilling/HumanEval-SingleLineInfilling.jsonl.gz",
    "multi-line": "human-eval-infilling/HumanEval-MultiLineInfilling.jsonl.gz",
    "nep": "nep/test.jsonl.gz",
}


SAMPLES = {"multi-line": 500}
"""How many cases of a long benchmark are used unless all are asked for."""
SAMPLE_SEED = "redraft"


class MissingDataError(FileNotFoundError):
    """The benchmark's file is not there; the message says where it was looked for."""


def default_data() -> Path:
    """`$REDRAFT_DATA`, else `../shared/data` beside the repository."""
    given = os.environ.get("REDRAFT_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[3] / "shared" / "data"


def benchmark_rows(name: str, data: Path | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a benchmark in the contract's shape, in their own order. Raises
    `MissingDataError`."""
    path = (data or default_data()) / FILES[name]
    if not path.is_file():
        raise MissingDataError(
            f"benchmark {name}: {path} is not there; see --data and $REDRAFT_DATA"
        )
    convert: Callable[[Mapping[str, Any], int], dict[str, Any]]
    convert = next_edit_row if name == "nep" else infilling_row
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(filter(str.strip, lines)):
            yield convert(json.loads(line), number)


def benchmark_cases(name: str, data: Path | None = None, *, whole: bool = False) -> list[Case]:
    """The cases of a benchmark: its fixed sample if it has one and not the `whole` is asked for.

    Raises `MissingDataError`.
    """
    cases = [parse_row(row) for row in benchmark_rows(name, data)]
    return cases if whole or name not in SAMPLES else drawn(cases, SAMPLES[name])


def drawn(cases: Iterable[Case], count: int) -> list[Case]:
    """The same `count` cases every time, each equally likely to be among them, in drawn order.

    A hash of its id decides on a case: neither its place in the file nor the other cases do.
    """

    def lot(case: Case) -> str:
        return hashlib.sha256(f"{SAMPLE_SEED}:{case.id}".encode()).hexdigest()

    return sorted(cases, key=lot)[:count]


def infilling_row(source: Mapping[str, Any], number: int = 0) -> dict[str, Any]:
    """One HumanEval-Infilling row: the cursor stands where the middle is missing.

    What a run of the tests needs is kept under `check`.
    """
    prompt, suffix = source["prompt"], source["suffix"]
    return {
        "id": source.get("task_id", f"infilling/{number}"),
        "mode": "fim",
        "path": f"{source['entry_point']}.py",
        "language": "python",
        "text": prompt + suffix,
        "cursor": position(prompt + suffix, len(prompt)),
        "history": [],
        "expected": [prompt + source["canonical_solution"] + suffix],
        "check": {"test": source["test"], "entry_point": source["entry_point"]},
    }


def next_edit_row(source: Mapping[str, Any], number: int = 0) -> dict[str, Any]:
    """One NEP row: old to current is the history, current to new the right answer.

    NEP has no cursor; it is set to the end of the last change (`end_of_last_change`). Its texts are
    excerpts and may begin in the middle of a file.
    """
    old, current = source["old_contents"], source["current_contents"]
    path = source["old_file"]
    diff = unified_diff(old, current, path)
    return {
        "id": f"nep/{number}/{source['commit'][:12]}",
        "mode": "next_edit",
        "path": path,
        "language": language_of(path),
        "text": current,
        "cursor": position(current, end_of_last_change(old, current)),
        "history": [diff] if diff else [],
        "expected": [source["new_contents"]],
    }


def end_of_last_change(old: str, new: str) -> int:
    """Offset in `new` where typing its lowest change group would have left the cursor.

    That is the end of the group's last line, before what it has in common with the line that it
    replaces; for a deletion the start of the line that follows. The end of the text when nothing
    changed.
    """
    groups = change_groups(old, new)
    if not groups:
        return len(new)
    group = groups[-1]
    start = sum(map(len, split_lines(new)[: group.new_start]))
    if not group.new_lines:
        return start
    last = without_line_end(group.new_lines[-1])
    before_last = sum(map(len, group.new_lines[:-1]))
    if len(group.old_lines) != len(group.new_lines):
        return start + before_last + len(last)
    replaced = without_line_end(group.old_lines[-1])
    change = shrink(replaced, Edit(0, len(replaced), last))
    return start + before_last + (change.start + len(change.new_text) if change else len(last))


def position(text: str, offset: int) -> dict[str, int]:
    line, character = LineIndex(text).position_at(offset)
    return {"line": line, "character": character}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m model.evaluation.benchmarks")
    parser.add_argument("name", choices=sorted(FILES))
    parser.add_argument("--data", type=Path, help="folder of the public test data ($REDRAFT_DATA)")
    parser.add_argument("--out", default="-", help="where the cases go (- is standard output)")
    args = parser.parse_args(arguments)
    try:
        write_rows(benchmark_rows(args.name, args.data), args.out)
    except MissingDataError as error:
        parser.exit(2, f"{error}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
