"""`redraft bench` in one process: which traces, who is asked, and what is told of it.

Responsible for the command's order of work. It knows nothing of how a figure is made.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from model.evaluation import bench, bench_llama, bench_picture
from model.evaluation.loading import (
    UsageError,
    check_targets,
    load_predictor,
    load_runs,
    settings_of,
)
from model.evaluation.progress import progress
from model.evaluation.report import write_json
from model.protocol import Predictor


def run(args: argparse.Namespace) -> int:
    check_targets(args.json, args.picture)
    traces = bench_traces(args)
    predictors = load_runs(args, None if args.no_baseline else "causal")
    if args.llama:
        predictors |= {one.name: one for one in load_llama(args, traces)}
    loaded = bench.peak_memory()
    deadline = settings_of(args).deadline
    total = len(predictors) * sum(len(trace.requests) for trace in traces)
    replayed = bench.replay(predictors, traces, deadline)
    samples = list(progress(replayed, "bench", total))
    summaries = bench.groups(samples)
    print(bench.bench_table(summaries))
    report = {
        "model": args.model,
        "names": {name: predictor.name for name, predictor in predictors.items()},
        "machine": bench.machine(),
        "keys": args.keys,
        "traces": args.limit,
        "groups": summaries,
    }
    if args.llama:
        report |= compare_llama(predictors, samples)
    peak = bench.peak_memory()
    if peak is not None and loaded is not None:
        runs = f"{len(predictors)} predictor{'s' if len(predictors) > 1 else ''}"
        print(f"peak memory {peak / 2**20:.0f} MiB ({loaded / 2**20:.0f} with {runs} loaded)")
    if args.picture:
        bench_picture.draw(args.picture, "redraft bench", bench.bars(summaries))
    if args.json:
        memory = {"peak_memory": peak, "loaded_memory": loaded}
        write_json({**report, **memory, "samples": [vars(one) for one in samples]}, args.json)
    return 0


def bench_traces(args: argparse.Namespace) -> list[bench.Typed]:
    """What the bench replays; with llama.cpp beside us, completions only."""
    modes = args.mode or (["fim"] if args.llama else bench.MODES)
    if args.llama and modes != ["fim"]:
        raise UsageError("--llama: llama.cpp makes completions only; use it with --mode fim")
    if args.llama:
        bench_llama.check(args.llama)
    return list(bench.typed(args.lines, modes, args.keys, args.limit))


def load_llama(
    args: argparse.Namespace, traces: Sequence[bench.Typed]
) -> list[bench_llama.LlamaPredictor]:
    """llama.cpp in both runs, told what we write in these traces; a predictor of its own is asked for that before."""
    import torch

    local = bench_llama.with_weights(load_predictor(args))
    requests = [request for trace in traces for request in trace.requests]
    jobs = bench_llama.rehearse(local, progress(requests, "what we write"))
    threads = torch.get_num_threads()
    return [
        bench_llama.LlamaPredictor(
            bench_llama.open_llama(args.llama, local, jobs, threads),
            jobs,
            local.bundle.tokenizer,
            name,
        )
        for name in (bench_llama.WRITTEN, bench_llama.OFFERED)
    ]


def compare_llama(
    predictors: Mapping[str, Predictor], samples: Sequence[bench.Sample]
) -> dict[str, Any]:
    """Print how both runs of llama.cpp compare with the first predictor; the same for the report."""
    ours = next(iter(predictors))
    theirs = [one for one in predictors.values() if isinstance(one, bench_llama.LlamaPredictor)]
    found = [
        row
        for one in theirs
        for row in bench_llama.compared(bench_llama.pairs(samples, ours, one.name), one.name)
    ]
    print(bench_llama.pairs_table(found, ours))
    same, asked = theirs[0].same, theirs[0].asked
    print(
        f"{theirs[0].name} wrote the same tokens as we in {same} of {asked} requests: "
        "it does not heal begun words, and rounds otherwise"
    )
    return {"pairs": found, "same_tokens": same, "asked": asked}
