"""Measures speed: editing traces on real files, replayed against predictors in one process.

Responsible for the traces, for asking predictors in turn and for summing up times. It knows nothing
of how predictions are made; what the cache did is read from `Prediction.features` (`cached_tokens`,
`prompt_tokens`) where a predictor tells it. Times are of `model.answer.answer`, without the editor
and the server.

A trace is a person typing the rest of a line in the middle of a file, one request for each key. The
first request of a trace is cold (no other trace shares the beginning of its context), the others
are warm.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from diffing.hunks import unified_diff
from diffing.positions import split_lines
from model.answer import answer
from model.evaluation.gate_metrics import mean, percentile, share
from model.evaluation.report import table
from model.protocol import Mode, Prediction, Predictor, Request, Stop

SOURCE = "_pydecimal"
"""A long module of the standard library, the same code in every Python that is supported."""

SIZES = (50, 500, 5000)
MODES: tuple[Mode, ...] = ("fim", "next_edit")


@dataclass(frozen=True)
class Sample:
    """One request's answer as measured. Times in milliseconds; tokens of the prompt are None where
    the predictor does not tell."""

    run: str
    lines: int
    mode: Mode
    warm: bool
    latency_ms: float
    forwards: int
    tokens: int
    shown: bool
    prompt_tokens: float | None
    cached_tokens: float | None


def source_lines() -> list[str]:
    """The lines of the standard library file that the traces edit."""
    spec = find_spec(SOURCE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the standard library's {SOURCE}.py is not installed")
    return split_lines(Path(spec.origin).read_text(encoding="utf-8"))


def excerpt(lines: Sequence[str], count: int) -> list[str]:
    """`count` lines of code in a row, from the start of a function where there is room; a longer
    file than there is repeats it."""
    repeated = list(lines) * (count // len(lines) + 1)
    latest = len(repeated) - count
    starts = [n for n, line in enumerate(repeated[: latest + 1]) if line.startswith("    def ")]
    middle = min(latest, len(lines) // 3)
    start = next((n for n in starts if n >= middle), 0)
    return repeated[start : start + count]


def typing_trace(
    lines: Sequence[str], mode: Mode, keys: int, label: str, place: float = 0.5
) -> list[Request]:
    """Requests of someone who types the end of a line in the middle of the file, key by key.

    `label` makes the path and the first line unlike those of other traces. The line is the first
    one after `place` (a share of the file) with `keys` characters to type.
    """
    lines = [f"# {label}\n", *lines[1:]]
    begin = int(len(lines) * place)
    row = next(
        number
        for number in [*range(begin, len(lines)), *range(begin)]
        if len(lines[number].strip()) >= keys
    )
    line = lines[row].rstrip("\n")
    before = "".join(lines[:row])
    after = "\n" + "".join(lines[row + 1 :])
    path = f"src/{label}.py"
    start = before + line[: len(line) - keys] + after
    requests = []
    for typed in range(len(line) - keys, len(line)):
        text = before + line[:typed] + after
        diff = unified_diff(start, text, path)
        requests.append(
            Request(
                mode=mode,
                path=path,
                text=text,
                cursor=len(before) + typed,
                language="python",
                history=(diff,) if diff else (),
            )
        )
    return requests


@dataclass(frozen=True)
class Typed:
    """One trace to be replayed: its requests, in order, and the `repeat` that it belongs to."""

    repeat: int
    lines: int
    mode: Mode
    requests: Sequence[Request]


def typed(
    sizes: Sequence[int] = SIZES, modes: Sequence[Mode] = MODES, keys: int = 12, repeats: int = 2
) -> Iterator[Typed]:
    """A typing trace for each size and mode, `repeats` times at different places."""
    lines = source_lines()
    for repeat in range(repeats):
        for size in sizes:
            for mode in modes:
                label = f"trace_{repeat}_{size}_{mode}"
                place = (repeat + 1) / (repeats + 1)
                requests = typing_trace(excerpt(lines, size), mode, keys, label, place)
                yield Typed(repeat, size, mode, requests)


def replay(
    predictors: Mapping[str, Predictor], traces: Iterable[Typed], deadline: float | None = None
) -> Iterator[Sample]:
    """Ask every predictor each request of every trace; who comes first alternates from key to key.

    `deadline` in seconds for each request.
    """
    for trace in traces:
        for number, request in enumerate(trace.requests):
            names = list(predictors)
            for name in names if number % 2 == trace.repeat % 2 else names[::-1]:
                prediction = answer(predictors[name], request, Stop(deadline), threshold=0.0)
                yield sample(name, trace.lines, trace.mode, number > 0, prediction)


def sample(run: str, lines: int, mode: Mode, warm: bool, prediction: Prediction) -> Sample:
    return Sample(
        run,
        lines,
        mode,
        warm,
        prediction.latency_ms,
        prediction.forwards,
        prediction.tokens,
        prediction.shown,
        prediction.features.get("prompt_tokens"),
        prediction.features.get("cached_tokens"),
    )


class Measured(Protocol):
    """What is known of one answer, whoever measured it."""

    @property
    def forwards(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def shown(self) -> bool: ...
    @property
    def prompt_tokens(self) -> float | None: ...
    @property
    def cached_tokens(self) -> float | None: ...


def work_of(samples: Sequence[Measured]) -> dict[str, Any]:
    """What answers took. `cache_hit` is the share of prompt tokens that were not encoded again; a prompt that is not
    told counts for nothing."""
    told = [one for one in samples if one.prompt_tokens]
    return {
        "forwards": mean([one.forwards for one in samples]),
        "tokens": mean([one.tokens for one in samples]),
        "tokens_per_forward": share(
            sum(one.tokens for one in samples), sum(one.forwards for one in samples)
        ),
        "shown": mean([float(one.shown) for one in samples]),
        "prompt_tokens": mean([one.prompt_tokens or 0.0 for one in told]),
        "cache_hit": share(
            sum(one.cached_tokens or 0.0 for one in told),
            sum(one.prompt_tokens or 0.0 for one in told),
        ),
    }


def summarise(samples: Sequence[Sample]) -> dict[str, Any]:
    """Figures of one group."""
    latencies = [one.latency_ms for one in samples]
    return {
        "requests": len(samples),
        "latency_ms": {f"p{q}": percentile(latencies, q) for q in (50, 90, 99)},
        **work_of(samples),
    }


def groups(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """A summary per run, size, mode and cold or warm, with the ratio of its median time to that of
    the first run over the same requests."""
    found: list[dict[str, Any]] = []
    runs = list(dict.fromkeys(one.run for one in samples))
    for key in dict.fromkeys((one.lines, one.mode, one.warm) for one in samples):
        first: float | None = None
        for run in runs:
            members = [one for one in samples if (one.lines, one.mode, one.warm) == key]
            members = [one for one in members if one.run == run]
            if not members:
                continue
            summary = summarise(members)
            median = summary["latency_ms"]["p50"]
            first = median if first is None else first
            ratio = share(median, first)
            head = {"run": run, "lines": key[0], "mode": key[1], "warm": key[2]}
            found.append(head | summary | {"times_slower": ratio})
    return found


def peak_memory() -> int | None:
    """Largest resident set of this process so far, in bytes; None where the system does not
    tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def machine() -> dict[str, Any]:
    """What the figures were measured on, as far as the standard library tells."""
    import os

    usable = getattr(os, "sched_getaffinity", None)
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": len(usable(0)) if usable else os.cpu_count(),
        "python": platform.python_version(),
    }


def bench_table(summaries: Sequence[Mapping[str, Any]]) -> str:
    """The groups as plain text; `x` is how many times slower than the first run."""
    header = ["", "lines", "n", "p50 ms", "p90 ms", "p99 ms", "x"]
    header += WORK
    rows = []
    for one in summaries:
        times = one["latency_ms"]
        rows.append(
            [
                f"{one['mode']} {'warm' if one['warm'] else 'cold'} {one['run']}",
                str(one["lines"]),
                str(one["requests"]),
                *(number(times[name], ".1f") for name in ("p50", "p90", "p99")),
                number(one["times_slower"], ".2f"),
                *work_cells(one),
            ]
        )
    return table(header, rows)


WORK = ["forwards", "tokens", "tok/fwd", "prompt", "cached"]


def work_cells(summary: Mapping[str, Any]) -> list[str]:
    """A group's cells under `WORK`."""
    return [
        number(summary["forwards"], ".1f"),
        number(summary["tokens"], ".1f"),
        number(summary["tokens_per_forward"], ".2f"),
        number(summary["prompt_tokens"], ".0f"),
        number(summary["cache_hit"], ".0%"),
    ]


def bars(summaries: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, float]]]:
    """The groups' names and times, for a picture."""
    return [
        (
            f"{one['mode']} {one['lines']} lines, {'warm' if one['warm'] else 'cold'}: {one['run']}",
            one["latency_ms"],
        )
        for one in summaries
    ]


def number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
