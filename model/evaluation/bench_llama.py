"""The same weights in llama.cpp, as one more predictor of the bench.

Responsible for giving llama.cpp what our completer gave its own decoder (the tokens of the prompt and how many new ones
to write), for asking it greedily with its prompt cache on, and for comparing the times request by request. It knows
nothing of how our answers come about. Needs the `llama` extra and the weights as a GGUF file.

There are two runs of it: `llama.cpp` writes as many tokens as we do, `llama.cpp, offered` only as many as we offer of
them. The second is a lower bound of what any completion by plain decoding would take: it is told where to end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from diffing.edits import Edit
from model.cache import common_prefix
from model.evaluation.bench import Sample, number
from model.evaluation.bootstrap import clustered
from model.evaluation.gate_metrics import percentile
from model.evaluation.loading import UsageError
from model.evaluation.report import table
from model.protocol import Prediction, Predictor, Request, Stop

if TYPE_CHECKING:
    from model.denoise import Generation
    from model.local import LocalPredictor
    from model.tokenizer import Tokenizer

WRITTEN, OFFERED = "llama.cpp", "llama.cpp, offered"
EVALUATED_AT_ONCE = 512
QUANTILES = (50, 90)


class Llama(Protocol):
    """What is used of `llama_cpp.Llama`."""

    n_tokens: int
    input_ids: Any

    def n_vocab(self) -> int: ...
    def generate(self, tokens: Sequence[int], *, temp: float) -> Iterator[int]: ...


@dataclass(frozen=True, slots=True)
class Job:
    """One completion as llama.cpp is asked for it: the prompt up to the cursor, what we wrote behind it, and how many
    tokens of that we would offer."""

    prompt: tuple[int, ...]
    written: tuple[int, ...]
    offered: int


Jobs = Mapping[tuple[str, str, int], Job]
"""By path, text and cursor of the request."""


def key_of(request: Request) -> tuple[str, str, int]:
    return request.path, request.text, request.cursor


class _Recorder:
    """Stands before a completer and notes the last question and its answer."""

    def __init__(self, completer: Any, tokenizer: Tokenizer) -> None:
        self.completer, self.tokenizer = completer, tokenizer
        self.job: Job | None = None

    def complete(
        self, context: Sequence[int], required: bytes, *rest: Any, **named: Any
    ) -> tuple[Any, Generation]:
        found, made = self.completer.complete(context, required, *rest, **named)
        given = known(made.tokens, required, self.tokenizer)
        offered = next((one.tokens for one in found if one.text), 0)
        written = tuple(made.tokens[given:])
        end = min(len(written), max(0, offered - given))
        self.job = Job((*context, *made.tokens[:given]), written, end)
        return found, made


def known(tokens: Sequence[int], required: bytes, tokenizer: Tokenizer) -> int:
    """How many leading tokens lie within the bytes that stand before the cursor: they are prompt, not answer."""
    length = count = 0
    for token in tokens:
        length += len(tokenizer.token_bytes(token))
        if length > len(required):
            break
        count += 1
    return count


def check(path: Path) -> None:
    """Raises `UsageError` without the file and `ModuleNotFoundError` without the extra, before any work."""
    if not path.is_file():
        raise UsageError(f"--llama {path}: no such file")
    import llama_cpp  # noqa: F401


def rehearse(predictor: Predictor, requests: Iterable[Request]) -> dict[tuple[str, str, int], Job]:
    """Answer completions once, untimed, and keep what each asked of the weights.

    The predictor is used up: it remembers the answers. Raises `UsageError` for one that has no weights.
    """
    local = with_weights(predictor)
    recorder = _Recorder(local.completer, local.bundle.tokenizer)
    local.completer = recorder  # type: ignore[assignment]
    jobs: dict[tuple[str, str, int], Job] = {}
    for request in requests:
        recorder.job = None
        local.predict(request, Stop())
        if recorder.job is not None:
            jobs[key_of(request)] = recorder.job
    return jobs


def with_weights(predictor: Predictor) -> LocalPredictor:
    """The predictor, if llama.cpp can be compared with it."""
    from model.local import LocalPredictor

    if not isinstance(predictor, LocalPredictor):
        raise UsageError(f"--llama: {predictor.name} has no weights to compare llama.cpp with")
    return predictor


def open_llama(path: Path, predictor: Predictor, jobs: Jobs, threads: int) -> Llama:
    """The GGUF file on the CPU, ready for the longest of the jobs.

    Raises `UsageError` for a file that is not these weights.
    """
    import llama_cpp

    vocabulary = with_weights(predictor).bundle.config.vocab_size
    longest = max((len(job.prompt) + len(job.written) for job in jobs.values()), default=0)
    try:
        llama: Llama = llama_cpp.Llama(
            str(path),
            n_gpu_layers=0,
            n_ctx=longest + EVALUATED_AT_ONCE,
            n_batch=EVALUATED_AT_ONCE,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"--llama {path}: {error}") from error
    if llama.n_vocab() != vocabulary:
        raise UsageError(
            f"--llama {path}: {llama.n_vocab()} tokens, but {predictor.name} has {vocabulary}: "
            "these are not the same weights"
        )
    return llama


class LlamaPredictor:
    """Writes as many tokens as we wrote, or as many as we offered, greedily, behind the same prompt."""

    def __init__(self, llama: Llama, jobs: Jobs, tokenizer: Tokenizer, name: str = WRITTEN) -> None:
        self.llama, self.jobs, self.tokenizer, self.name = llama, jobs, tokenizer, name
        self.asked = self.same = 0

    def predict(self, request: Request, stop: Stop) -> Prediction:
        stop.check()
        job = self.jobs[key_of(request)]
        wanted = job.written if self.name == WRITTEN else job.written[: job.offered]
        cached = self._cached(job.prompt)
        written = self.llama.generate(list(job.prompt), temp=0.0)
        tokens = list(takewhile(lambda _: not stop.expired, islice(written, len(wanted))))
        self.asked += 1
        self.same += tokens == list(wanted)
        text = b"".join(map(self.tokenizer.token_bytes, tokens)).decode("utf-8", "ignore")
        return Prediction(
            edits=(Edit(request.cursor, request.cursor, text),) if text else (),
            forwards=len(tokens),
            tokens=len(tokens),
            features={"prompt_tokens": float(len(job.prompt)), "cached_tokens": float(cached)},
        )

    def _cached(self, prompt: Sequence[int]) -> int:
        """How much of the prompt llama.cpp has evaluated already."""
        return common_prefix(self.llama.input_ids[: self.llama.n_tokens], prompt)


@dataclass(frozen=True, slots=True)
class Pair:
    """The same request asked of both. `trace` numbers the line that was being typed. Milliseconds."""

    trace: int
    lines: int
    ours: float
    theirs: float


def pairs(samples: Sequence[Sample], ours: str, theirs: str) -> list[Pair]:
    """The warm requests of two runs, each with its counterpart; those that nothing was written for are left out."""
    sides = [[one for one in samples if one.run == run] for run in (ours, theirs)]
    found, trace = [], -1
    for mine, other in zip(*sides, strict=True):
        trace += not mine.warm
        if mine.warm and other.tokens:
            found.append(Pair(trace, mine.lines, mine.latency_ms, other.latency_ms))
    return found


def ratios(members: Sequence[Pair]) -> dict[str, float | None]:
    """How many times longer llama.cpp takes: of the percentiles, and the median of single pairs."""
    found: dict[str, float | None] = {}
    for q in QUANTILES:
        ours = percentile([pair.ours for pair in members], q)
        theirs = percentile([pair.theirs for pair in members], q)
        found[f"p{q}"] = theirs / ours if ours and theirs is not None else None
    found["pairs"] = percentile([pair.theirs / pair.ours for pair in members if pair.ours], 50)
    return found


def compared(found: Sequence[Pair], theirs: str) -> list[dict[str, Any]]:
    """Both sides for each size of the file, with the ratios and their 95 % intervals over the traces."""
    summaries = []
    for lines in dict.fromkeys(pair.lines for pair in found):
        members = [pair for pair in found if pair.lines == lines]
        traces: dict[str, list[Pair]] = {}
        for pair in members:
            traces.setdefault(str(pair.trace), []).append(pair)
        intervals = clustered(traces, lambda drawn: ratios([p for one in drawn for p in one]))
        summaries.append(
            {
                "against": theirs,
                "lines": lines,
                "requests": len(members),
                "traces": len(traces),
                "ours_ms": {f"p{q}": percentile([p.ours for p in members], q) for q in QUANTILES},
                "theirs_ms": {
                    f"p{q}": percentile([p.theirs for p in members], q) for q in QUANTILES
                },
                "ratios": ratios(members),
                "intervals": intervals,
            }
        )
    return summaries


def pairs_table(summaries: Sequence[Mapping[str, Any]], ours: str) -> str:
    """The comparison as plain text; a ratio of more than 1 means that we are faster."""
    header = ["warm completions against", "lines", "n", "", f"{ours} ms", "its ms", "ratio", "95 %"]
    rows = []
    for one in summaries:
        for name, ratio in one["ratios"].items():
            low, high = one["intervals"].get(name, (None, None))
            rows.append(
                [
                    one["against"],
                    str(one["lines"]),
                    str(one["requests"]),
                    "pair by pair" if name == "pairs" else name,
                    number(one["ours_ms"].get(name), ".1f"),
                    number(one["theirs_ms"].get(name), ".1f"),
                    number(ratio, ".2f"),
                    f"{number(low, '.2f')}-{number(high, '.2f')}",
                ]
            )
    return table(header, rows)
