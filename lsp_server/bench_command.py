"""The command `redraft bench`: speed, in one process or as an editor sees a server.

Responsible for the options that need a server; all others are those of `model.evaluation`. Exit codes: 0 done, 2 could
not begin or the server ended.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lsp_server import bench_client, bench_figures, bench_idle
from lsp_server.bench_client import BenchEditor, Sample
from lsp_server.bench_figures import mib
from lsp_server.process_client import ServerGone
from model import bounds
from model.evaluation import bench, bench_picture, cli, loading, picture
from model.evaluation.progress import progress
from model.evaluation.report import write_json
from model.evaluation.traces import JUMPS
from model.targets import TargetError

STARTS = 3
SOAK_EVERY = 200
THROUGH_KEYS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    cli.add_arguments("bench", parser)
    group = parser.add_argument_group("a server process")
    group.add_argument(
        "--client",
        action="store_true",
        help="drive a real server over its pipes: keys, deletions, jumps and edits above the cursor, each with the "
        "time from the key to the answer; typing through a suggestion; start-up; memory",
    )
    group.add_argument(
        "--memory",
        type=bounds.count,
        metavar="N",
        help=f"ask a real server N times in two documents; its memory every {SOAK_EVERY} requests",
    )
    group.add_argument("--gate", choices=("eager", "balanced", "quiet"), default="balanced")


def run(options: argparse.Namespace) -> int:
    if not (options.client or options.memory):
        return cli.run("bench", options)
    if options.llama:
        print(
            "redraft bench: --llama is measured in one process, without a server", file=sys.stderr
        )
        return 2
    try:
        loading.check_targets(options.json, options.picture)
        with tempfile.TemporaryDirectory(prefix="redraft-bench-") as name:
            measure = _memory if options.memory else _client
            measure(options, Path(name).resolve())
    except (ServerGone, picture.PictureError, TargetError) as error:
        print(f"redraft bench: {error}", file=sys.stderr)
        return 2
    return 0


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    deadline = options.deadline_ms
    return {
        "model": options.model,
        "device": options.device,
        "threads": options.threads or 0,
        "gate": options.gate,
        "deadlineMs": int(deadline) if deadline else bench_client.PATIENT_MS,
    }


def _client(options: argparse.Namespace, folder: Path) -> None:
    before, settings = _load(), _settings(options)
    start = bench_client.start_up(folder, settings, max(options.lines), STARTS)
    samples, server = _sampled(options, folder, settings)
    summaries = bench_figures.groups(samples)
    report = {
        **server,
        "settings": settings,
        "machine": bench.machine(),
        "load": {"before": before, "after": _load()},
        "keys": options.keys,
        "traces": options.limit,
        "start": start,
        "groups": summaries,
        "not_asked": bench_figures.others(samples),
        "samples": [vars(one) for one in samples],
    }
    print(bench_figures.client_table(summaries))
    print(_notes(report))
    if options.picture:
        bars = [
            (f"{s['mode']} {s['lines']} lines: {s['kind']}", s["latency_ms"]) for s in summaries
        ]
        bench_picture.draw(options.picture, f"redraft bench --client, {server['model']}", bars)
    if options.json:
        write_json(report, options.json)


def _sampled(
    options: argparse.Namespace, folder: Path, settings: dict[str, Any]
) -> tuple[list[Sample], dict[str, Any]]:
    """Every kind of key with one server, then typing through suggestions with another that shows more of them; the
    name and the memory of the first."""
    modes = options.mode or bench.MODES
    with BenchEditor(folder, settings) as editor:
        editor.wait_until_ready()
        loaded = editor.memory()
        keys = 2 * (options.keys + len(JUMPS)) * options.limit
        replayed = bench_client.replay(editor, options.lines, modes, options.keys, options.limit)
        samples = list(progress(replayed, "bench", len(options.lines) * len(modes) * keys))
        server = {"model": editor.status()["model"], "memory": (loaded, editor.memory())}
    if "fim" in modes:
        with BenchEditor(folder, {**settings, "gate": "eager"}) as editor:
            editor.wait_until_ready()
            for size in options.lines:
                samples += bench_client.type_through(editor, size, THROUGH_KEYS)
    samples += _idle(options, folder, {**settings, "gate": "eager"})
    return samples, server


def _idle(options: argparse.Namespace, folder: Path, settings: dict[str, Any]) -> Iterator[Sample]:
    with BenchEditor(folder, settings) as editor:
        editor.wait_until_ready()
        for size in options.lines:
            if "fim" in (options.mode or bench.MODES):
                yield from bench_idle.landing(editor, size)
            if "next_edit" in (options.mode or bench.MODES):
                yield from bench_idle.chain(editor, size)


def _notes(report: dict[str, Any]) -> str:
    """What the table does not say."""
    start, load = report["start"], report["load"]
    lines = [
        "Times run from the key (its change, then the request: automatic, no debounce) to the answer.",
        f"start, median of {STARTS}: initialize answered after {start['initialized_ms']:.0f} ms, the model loaded",
        f"  after {start['ready_ms']:.0f} ms, the first answer in a file of {start['lines']} lines after "
        f"{start['first_answer_ms']:.0f} ms",
    ]
    if report["not_asked"]:
        listed = ", ".join(f"{count} {reason}" for reason, count in report["not_asked"].items())
        lines.append(f"the model was not asked: {listed}")
    loaded, end = report["memory"]
    if loaded and end:
        now, most = mib(end[0]), mib(end[1])
        lines.append(f"server memory: {mib(loaded[0])} loaded, {now} at the end, {most} at most")
    averages = [bench_figures.load(load[when]) for when in ("before", "after")]
    lines.append(f"load average: {averages[0]} before, {averages[1]} after")
    return "\n".join(lines)


def _memory(options: argparse.Namespace, folder: Path) -> None:
    rows = []
    with BenchEditor(folder, _settings(options)) as editor:
        editor.wait_until_ready()
        if (loaded := editor.memory()) is None:
            raise ServerGone("this system does not tell the memory of a process")
        print(f"loaded: {mib(loaded[0])}")
        for asked, now, most in bench_client.soak(editor, options.memory, SOAK_EVERY):
            rows.append({"requests": asked, "resident": now, "most": most})
            print(f"after {asked} requests: {mib(now)}, at most {mib(most)}", flush=True)
        predictions = editor.status()["predictions"]
    print(bench_figures.memory_note(rows))
    print(f"the model was asked {predictions} times; load average {bench_figures.load(_load())}")
    if options.json:
        growth = {
            "all": bench_figures.growth(rows),
            "second_half": bench_figures.growth(rows[len(rows) // 2 :]),
        }
        report = {
            "loaded": loaded[0],
            "rows": rows,
            "bytes_per_request": growth,
            "predictions": predictions,
        }
        write_json(report, options.json)


def _load() -> tuple[float, ...] | None:
    try:
        return os.getloadavg()
    except (AttributeError, OSError):
        return None
