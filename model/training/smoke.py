"""The whole factory in a few minutes: pack, train, interrupt, resume, export, evaluate.

    python -m model.training.smoke --data build/data --out build/smoke

Responsible for showing that a resumed training is the same as one that was not interrupted, and that what it made loads
and answers. Says nothing of how good it is.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from itertools import islice
from pathlib import Path

from model.evaluation.cases import Case, read_cases
from model.training import export, pack, train
from model.training.recipe import read_recipe

TOLERANCE = 1e-6
CASES = 6


def options(module: object, words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)  # type: ignore[attr-defined]
    return parser.parse_args(words)


def logged(run: Path) -> dict[int, dict[str, float]]:
    """Mean training losses by step, from a run's log."""
    rows = [json.loads(line) for line in (run / train.LOG).read_text().splitlines()]
    return {row["step"]: row["exact"] for row in rows}


def differences(left: Path, right: Path) -> tuple[int, float]:
    """Steps that both logs have, and the largest difference of a loss there."""
    ours, theirs = logged(left), logged(right)
    common = sorted(ours.keys() & theirs.keys())
    worst = [
        abs(ours[step].get(name, math.inf) - theirs[step].get(name, -math.inf))
        for step in common
        for name in ours[step].keys() | theirs[step].keys()
    ]
    return len(common), max(worst, default=float("inf"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    shards, whole, halves, made = (args.out / n for n in ("shards", "whole", "halves", "model"))
    words = ["--data", str(args.data), "--out", str(shards), "--gaps", "150", "--cases", "60"]
    if pack.run(options(pack, [*words, "--gap-room", "96", "--case-room", "160"])):
        return 2
    steps = read_recipe("smoke").loop.steps
    for run, stop in ((whole, None), (halves, steps // 2), (halves, None)):
        words = ["--recipe", "smoke", "--shards", str(shards), "--run", str(run)]
        until = ["--until", str(stop)] if stop else []
        if train.run(options(train, [*words, *until])):
            return 2
    count, worst = differences(whole, halves)
    print(
        f"resumed after step {steps // 2}: largest difference of a loss {worst:.1e}, {count} steps logged"
    )
    words = ["--run", str(halves), "--recipe", "smoke", "--out", str(made)]
    if export.run(options(export, words)):
        return 2
    cases = next(iter(sorted(args.data.glob("cases-*.jsonl"))))
    answered = answer(made, cases)
    print(f"the exported model answered {answered} of {CASES} cases")
    return 0 if worst <= TOLERANCE and count >= 2 and answered == CASES else 1


def answer(folder: Path, cases: Path) -> int:
    """How many of the first cases a model folder answers."""
    from model.local import LocalPredictor
    from model.protocol import Stop

    predictor = LocalPredictor.load(folder, compute="float32")
    chosen = list(islice(read_cases(cases), CASES))
    answers = [predictor.predict(c.request, Stop()) for c in chosen if isinstance(c, Case)]
    return sum(answer.model == predictor.name for answer in answers)


if __name__ == "__main__":
    sys.exit(main())
