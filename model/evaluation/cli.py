"""The commands `redraft predict`, `redraft eval` and `redraft bench`.

Responsible for carrying out the first two and for exit codes (0: done, 1: done, but some cases gave an error, 2: could
not begin). It knows nothing of LSP.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from model.evaluation import bench, bench_run, picture
from model.evaluation.benchmarks import benchmark_cases
from model.evaluation.cases import BadCase, Case, open_lines, read_cases
from model.evaluation.loading import (
    UsageError,
    check_targets,
    load_compared,
    load_predictor,
    load_runs,
    settings_of,
)
from model.evaluation.options import add_arguments as add_arguments
from model.evaluation.output import Output, RowError, read_row
from model.evaluation.predict import interleaved, predict_all
from model.evaluation.progress import progress
from model.evaluation.report import score_tables, write_json
from model.evaluation.score import Checker, Score, grouped, score
from model.evaluation.variants import VariantError
from model.protocol import Predictor
from model.targets import check_file

T = TypeVar("T")


def run(command: str, args: argparse.Namespace) -> int:
    """Carry a command out; returns the exit code."""
    commands = {"predict": run_predict, "eval": run_eval, "bench": bench_run.run}
    try:
        return commands[command](args)
    except BrokenPipeError:
        raise
    except (UsageError, RowError, VariantError, picture.PictureError, OSError) as error:
        print(f"redraft {command}: {error}", file=sys.stderr)
        return 2


def run_predict(args: argparse.Namespace) -> int:
    if args.cases != "-" and not Path(args.cases).is_file():
        raise UsageError(f"no such file: {args.cases}")
    if args.out not in ("-", None) and Path(args.out).resolve() == Path(args.cases).resolve():
        raise UsageError("--out is the file of cases")
    check_file(args.out)
    read = read_cases(args.cases)
    if (first := next(read, None)) is None:
        raise UsageError(f"no case in {source_of(args)}")
    asked = islice(chain([first], read), args.limit)
    predictor = load_predictor(args)
    started = time.monotonic()
    with Output(args.out, resume=args.resume) as output:
        cases = progress(asked, "predict")
        count, errors = predict_all(predictor, cases, output, settings_of(args))
    seconds = time.monotonic() - started
    print(f"{count} cases, {errors} errors, {seconds:.1f} s, {predictor.name}", file=sys.stderr)
    return 1 if errors else 0


def run_eval(args: argparse.Namespace) -> int:
    if args.predictions and args.compare is not None:
        raise UsageError("--predictions are made already: --compare cannot run beside them")
    cases, bad = cases_to_score(args)
    if not cases:
        raise UsageError(f"no case with `expected` in {source_of(args)}")
    check_file(args.out)
    check_targets(args.json, args.picture)
    runs = scored_file(args, cases) if args.predictions else scored_runs(args, cases)
    by = [label for label in args.by.split(",") if label]
    summaries = {name: grouped(scores, by) for name, scores in runs.items()}
    errors = bad + sum(one.error is not None for scores in runs.values() for one in scores)
    print(score_tables(summaries))
    if errors:
        print(f"{errors} errors, {bad} of them lines that are no cases with `expected`")
    if args.json:
        details = {name: [vars(one) for one in scores] for name, scores in runs.items()}
        write_json(
            {
                "source": args.benchmark or args.cases,
                "model": args.model,
                "threshold": args.threshold,
                "deadline_ms": args.deadline_ms,
                "executed": args.execute,
                "unreadable": bad,
                "machine": bench.machine(),
                "runs": summaries,
                "scores": details,
            },
            args.json,
        )
    if args.picture:
        picture.draw(args.picture, summaries, runs)
    return 1 if errors else 0


def source_of(args: argparse.Namespace) -> str:
    """Where the cases come from, for a message."""
    return "standard input" if args.cases == "-" else str(args.cases or args.benchmark)


def cases_to_score(args: argparse.Namespace) -> tuple[list[Case], int]:
    """The cases that have right answers, and how many lines could not be used."""
    if bool(args.benchmark) == bool(args.cases):
        raise UsageError("give either a file of cases or --benchmark")
    read: Iterable[Case | BadCase]
    if args.benchmark:
        read = benchmark_cases(args.benchmark, args.data, whole=args.whole)
    else:
        read = read_cases(args.cases)
    cases: list[Case] = []
    bad = 0
    for case in read:
        if isinstance(case, BadCase):
            print(f"redraft eval: {case.error}", file=sys.stderr)
            bad += 1
        elif not case.expected:
            print(f"redraft eval: case {case.id}: no `expected`", file=sys.stderr)
            bad += 1
        else:
            cases.append(case)
    return spread(cases, args.limit), bad


def spread(items: list[T], limit: int | None) -> list[T]:
    """At most `limit` items, evenly spread and in order."""
    if limit is None or limit >= len(items):
        return items
    return [items[number * len(items) // limit] for number in range(max(0, limit))]


def scored_file(args: argparse.Namespace, cases: list[Case]) -> dict[str, list[Score]]:
    """Scores of a predictions file; its rows are matched by `id`, equal ids in order."""
    import json

    rows: dict[str, list[Mapping[str, Any]]] = {}
    with open_lines(args.predictions) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = read_row(args.predictions, number, line)
            if "id" not in row:
                raise UsageError(f"{args.predictions}, line {number}: no `id`")
            rows.setdefault(json.dumps(row["id"]), []).append(row)
    checker = Checker() if args.execute else None
    scores = []
    for case in progress(cases, "score"):
        found = rows.get(json.dumps(case.id))
        scores.append(score(case, found.pop(0) if found else None, checker))
    return {Path(args.predictions).name: scores}


def scored_runs(args: argparse.Namespace, cases: list[Case]) -> dict[str, list[Score]]:
    """Predict and score with the model, or with all its variants that are to be compared."""
    first: Predictor | None = None
    if args.compare is None:
        predictors = load_runs(args, None)
    else:
        first, predictors = load_compared(args, [case.request.mode for case in cases])
    checker = Checker() if args.execute else None
    runs: dict[str, list[Score]] = {name: [] for name in predictors}
    outputs = [Output(target_of(args.out, name, number)) for number, name in enumerate(predictors)]
    shown = progress(cases, "eval")
    for case, rows in interleaved(list(predictors.values()), shown, settings_of(args), first):
        for name, output, row in zip(predictors, outputs, rows, strict=True):
            output.write(row)
            runs[name].append(score(case, row, checker))
    for output in outputs:
        output.close()
    return runs


def target_of(out: str | None, name: str, number: int) -> str | None:
    """Where a run's predictions go: the first to the file itself, the others to its neighbours."""
    if not out or number == 0:
        return out
    if out == "-":
        return None
    path, plain = Path(out), re.sub(r"[^\w.]+", "-", name)
    return str(path.with_name(f"{path.stem}.{plain}{path.suffix}"))
