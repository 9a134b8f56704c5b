"""The commands `redraft predict`, `redraft eval` and `redraft bench`.

Responsible for their options, for loading the predictor that they name and for exit codes (0: done,
1: done, but some cases gave an error, 2: could not begin). It knows nothing of LSP.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from model import bounds
from model.evaluation import bench, bench_picture, picture
from model.evaluation.baseline import PropagateLastSubstitution
from model.evaluation.benchmarks import FILES, SAMPLES, benchmark_cases
from model.evaluation.cases import BadCase, Case, open_lines, read_cases
from model.evaluation.output import Output
from model.evaluation.predict import Settings, interleaved, predict_all
from model.evaluation.progress import progress
from model.evaluation.report import score_tables, write_json
from model.evaluation.score import Checker, Score, grouped, score
from model.evaluation.variants import VariantError, build, ladder, parse_variant
from model.library import load
from model.protocol import Predictor

if TYPE_CHECKING:
    from model.denoise import Decoding
    from model.local import LocalPredictor

COMMANDS = {
    "predict": "answer headless cases, one JSON object a line",
    "eval": "score predictions against the right answers",
    "bench": "measure speed over editing traces",
}

PROPAGATE = "propagate"

T = TypeVar("T")


class UsageError(Exception):
    """The command cannot begin; the message is for the user."""


def add_arguments(command: str, parser: argparse.ArgumentParser) -> None:
    """Add the options of `predict`, `eval` or `bench` to a parser."""
    if command not in COMMANDS:
        raise ValueError(f"unknown command {command!r}")
    _add_predictor(parser)
    if command == "predict":
        parser.add_argument("cases", nargs="?", default="-", help="JSONL file (.gz, - for stdin)")
        parser.add_argument("--out", default="-", help="predictions file (.gz, - for stdout)")
        parser.add_argument("--resume", action="store_true", help="keep answers that --out has")
        parser.add_argument(
            "--limit", type=bounds.count, metavar="N", help="the first N cases only"
        )
    elif command == "eval":
        _add_eval(parser)
    else:
        _add_bench(parser)


def _add_predictor(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("predictor")
    group.add_argument(
        "--model",
        default="embedded",
        help="embedded, a model folder, a pulled model, scripted:FILE, or propagate: no model, the last edit's "
        "substitution at the nearest place (default: embedded)",
    )
    group.add_argument(
        "--instruct",
        action="store_true",
        help="ask a model that follows instructions for what it was not trained to do",
    )
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    group.add_argument(
        "--threads", type=bounds.threads, metavar="N", help="processor threads of the model"
    )
    group.add_argument("--decoding", choices=("auto", "causal", "refine", "block"), default="auto")
    group.add_argument(
        "--threshold",
        type=bounds.real(0, 1),
        metavar="P",
        help="least confidence to show (default: model's)",
    )
    group.add_argument(
        "--deadline-ms",
        type=bounds.real(0),
        metavar="MS",
        help="time limit for each case (default: none)",
    )


def _add_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", nargs="?", help="JSONL file with `expected` (.gz, - for stdin)")
    parser.add_argument("--benchmark", choices=sorted(FILES), help="a public benchmark instead")
    parser.add_argument("--data", type=Path, help="folder of the benchmarks ($REDRAFT_DATA)")
    parser.add_argument("--predictions", metavar="FILE", help="score these instead of predicting")
    parser.add_argument(
        "--compare",
        nargs="*",
        metavar="VARIANT",
        help="the same weights decoded in several ways, case by case, the context warm: auto, causal, refine or block, "
        "with options as in block:bound=0.5 or refine:accept=0.8:drafts=off, and propagate; "
        "all of a fixed list if none is named",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="draw quality against forward passes, and accept rate against show rate (.svg, .png)",
    )
    sampled = ", ".join(f"{count} of {name}" for name, count in SAMPLES.items())
    parser.add_argument(
        "--whole", action="store_true", help=f"all of a benchmark, not its fixed sample ({sampled})"
    )
    parser.add_argument(
        "--execute",
        action="store_true",
        help="run the tests of infilling cases: executes generated code on this machine",
    )
    parser.add_argument("--limit", type=bounds.count, metavar="N", help="N cases, evenly spread")
    parser.add_argument(
        "--by",
        default="",
        metavar="LABELS",
        help="split by language or by keys of `meta`: kind,linked splits twice, kind+linked by both",
    )
    parser.add_argument("--out", metavar="FILE", help="write the predictions too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")


def _add_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lines",
        type=bounds.count,
        nargs="+",
        default=list(bench.SIZES),
        help="sizes of the edited file",
    )
    parser.add_argument("--mode", choices=bench.MODES, action="append", help="one mode only")
    parser.add_argument("--keys", type=bounds.count, default=12, help="keys typed in each trace")
    parser.add_argument(
        "--limit", type=bounds.count, default=2, metavar="N", help="traces of each kind"
    )
    parser.add_argument("--no-baseline", action="store_true", help="leave causal decoding out")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw how long answers took (.svg, .png)"
    )
    parser.add_argument("--json", "--out", type=Path, metavar="FILE", help="write the figures")


def run(command: str, args: argparse.Namespace) -> int:
    """Carry a command out; returns the exit code."""
    commands = {"predict": run_predict, "eval": run_eval, "bench": run_bench}
    try:
        return commands[command](args)
    except BrokenPipeError:
        raise
    except (UsageError, VariantError, picture.PictureError, OSError) as error:
        print(f"redraft {command}: {error}", file=sys.stderr)
        return 2


def load_predictor(args: argparse.Namespace, decoding: Decoding | None = None) -> Predictor:
    """Load what `--model` names; UsageError in words for the user when that fails."""
    name: str = args.model
    try:
        if name.startswith("scripted:"):
            from model.scripted import ScriptedPredictor

            return ScriptedPredictor.load(Path(name.removeprefix("scripted:")).expanduser())
        if name == PROPAGATE:
            return PropagateLastSubstitution()
        return load(
            name,
            device=args.device,
            threads=args.threads or None,
            decoding=decoding or args.decoding,
            instruct=args.instruct,
        )
    except Exception as error:  # whatever is wrong with a model is the user's to read
        raise UsageError(f"cannot load model {name}: {error}") from error


def settings_of(args: argparse.Namespace) -> Settings:
    deadline = None if args.deadline_ms is None else args.deadline_ms / 1000
    return Settings(threshold=args.threshold, deadline=deadline)


def run_predict(args: argparse.Namespace) -> int:
    if args.cases != "-" and not Path(args.cases).is_file():
        raise UsageError(f"no such file: {args.cases}")
    if args.out not in ("-", None) and Path(args.out).resolve() == Path(args.cases).resolve():
        raise UsageError("--out is the file of cases")
    predictor = load_predictor(args)
    started = time.monotonic()
    with Output(args.out, resume=args.resume) as output:
        cases = progress(islice(read_cases(args.cases), args.limit), "predict")
        count, errors = predict_all(predictor, cases, output, settings_of(args))
    seconds = time.monotonic() - started
    print(f"{count} cases, {errors} errors, {seconds:.1f} s, {predictor.name}", file=sys.stderr)
    return 1 if errors else 0


def run_eval(args: argparse.Namespace) -> int:
    if args.picture:
        picture.check(args.picture)
    if args.predictions and args.compare is not None:
        raise UsageError("--predictions are made already: --compare cannot run beside them")
    cases, bad = cases_to_score(args)
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
            try:
                row = json.loads(line)
                rows.setdefault(json.dumps(row["id"]), []).append(row)
            except (ValueError, KeyError, TypeError) as error:
                raise UsageError(f"{args.predictions}, line {number}: {error!r}") from error
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
        first, predictors = load_compared(args, cases)
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


def load_compared(
    args: argparse.Namespace, cases: list[Case]
) -> tuple[Predictor | None, dict[str, Predictor]]:
    """The checkpoint, if one is needed, and the variants of it that `--compare` names."""
    names = args.compare or ladder([case.request.mode for case in cases])
    variants = {name: parse_variant(name) for name in names if name != PROPAGATE}
    runs: dict[str, Predictor] = {}
    base = load_predictor(args) if variants else None
    for name in names:
        if name == PROPAGATE:
            runs[name] = PropagateLastSubstitution()
        elif hasattr(base, "bundle"):
            runs[name] = build(variants[name], cast("LocalPredictor", base))
        else:
            raise UsageError(f"--compare {name}: {args.model} has no weights to decode with")
    return base, runs


def load_runs(args: argparse.Namespace, baseline: Decoding | None) -> dict[str, Predictor]:
    """The predictors to measure, by the name of their run; the one asked about is first."""
    name = "redraft" if args.decoding == "auto" else args.decoding
    if args.model == PROPAGATE:
        name = PROPAGATE
    runs = {name: load_predictor(args)}
    if baseline and baseline not in runs:
        runs[baseline] = load_predictor(args, decoding=baseline)
    return runs


def run_bench(args: argparse.Namespace) -> int:
    if args.picture:
        picture.check(args.picture)
    predictors = load_runs(args, None if args.no_baseline else "causal")
    loaded = bench.peak_memory()
    deadline = settings_of(args).deadline
    modes = args.mode or bench.MODES
    total = len(predictors) * len(args.lines) * len(modes) * args.keys * args.limit
    replayed = bench.replay(predictors, args.lines, modes, args.keys, args.limit, deadline)
    samples = list(progress(replayed, "bench", total))
    summaries = bench.groups(samples)
    print(bench.bench_table(summaries))
    peak = bench.peak_memory()
    if peak is not None and loaded is not None:
        runs = f"{len(predictors)} predictor{'s' if len(predictors) > 1 else ''}"
        print(f"peak memory {peak / 2**20:.0f} MiB ({loaded / 2**20:.0f} with {runs} loaded)")
    if args.picture:
        bench_picture.draw(args.picture, "redraft bench", bench.bars(summaries))
    if args.json:
        report = {
            "model": args.model,
            "names": {name: predictor.name for name, predictor in predictors.items()},
            "machine": bench.machine(),
            "keys": args.keys,
            "traces": args.limit,
            "groups": summaries,
            "peak_memory": peak,
            "loaded_memory": loaded,
            "samples": [vars(one) for one in samples],
        }
        write_json(report, args.json)
    return 0
