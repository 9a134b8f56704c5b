"""What a GPU makes of the embedded model: one command, one table.

    python -m model.evaluation.bench_gpu --minutes 8.5 --json gpu.json

Responsible for measuring `model.batched` (fixed shapes, CUDA graphs, one wait for the host a step) against plain
decoding of the same weights and against itself with more requests at once and longer contexts. What does not fit in
the time is left out, and said so. `--miniature` runs the same on a CPU with a tiny random model, without graphs: its
times mean nothing.

A key is what a person types: the last tokens of the prompt are new, all before them is cached. As in the server, drafts
are what stood in the text before, and the denoiser's where there is none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from model.batched import BatchedDecoder
from model.denoiser import Denoiser
from model.evaluation import bench
from model.evaluation.budget import Budget, Row, rows_table
from model.evaluation.gate_metrics import percentile
from model.evaluation.miniature import miniature
from model.evaluation.report import write_json
from model.repeats import Repeats
from model.transformer import Transformer

GREEDY = "greedy"
BLOCKS = (4, 8)
AT_ONCE = (1, 5, 15)
TAIL = 8
BACKENDS: Mapping[str, SDPBackend | None] = {
    "torch's choice": None,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of the contexts and of a suggestion; how often each is measured."""

    short: int = 2048
    long: int = 32_768
    written: int = 16
    chunk: int = 2048
    places: int = 12
    keys: int = 6
    rounds: int = 20


SMALL = Sizes(short=24, long=160, written=5, chunk=48, places=2, keys=2, rounds=2)


@dataclass
class Setup:
    """The model, the text as tokens, and what has been found out on the way."""

    trunk: Transformer
    denoiser: Denoiser
    text: Sequence[int]
    sizes: Sizes
    backends: dict[int, str] = field(default_factory=dict)
    best: int = max(BLOCKS)

    def decoder(self, context: int, slots: int, size: int) -> BatchedDecoder:
        """For contexts of so many tokens, with the attention that was found to be fastest there."""
        s = self.sizes
        room = TAIL + s.keys + s.written + 2 * max(BLOCKS)
        with attention(self.backends.get(context)):
            return BatchedDecoder(
                self.trunk,
                self.denoiser,
                slots=slots,
                capacity=-(-(context + room) // 64) * 64,
                size=size,
                rows=TAIL,
            )

    def place(self, index: int, context: int) -> Sequence[int]:
        """A stretch of the text with a context and the keys that are typed behind it."""
        length = context + TAIL + self.sizes.keys
        start = index * 997 % max(1, len(self.text) - length)
        return self.text[start : start + length]


def attention(name: str | None) -> AbstractContextManager[Any]:
    backend = BACKENDS[name] if name else None
    return sdpa_kernel(backend) if backend is not None else nullcontext()


def suggest(
    decoder: BatchedDecoder,
    tails: Sequence[Sequence[int]],
    written: int,
    repeats: Sequence[Repeats] | None = None,
) -> tuple[list[float], list[list[int]], int]:
    """Answer one key in every slot: seconds until each had `written` tokens, the tokens, and the steps taken.

    `repeats` hold each slot's sequence up to the key and give drafts of what stood there before.
    """
    began = time.perf_counter()
    decoder.encode(tails)
    for index, tail in zip(repeats or (), tails, strict=bool(repeats)):
        index.extend(tail)
    texts: list[list[int]] = [[] for _ in tails]
    ended: dict[int, float] = {}
    steps = 0
    while len(ended) < len(texts):
        drafts = [
            [] if last is None else index.draft(last)
            for index, last in zip(repeats or (), decoder.next, strict=bool(repeats))
        ]
        for slot, tokens in enumerate(decoder.step(drafts or None)):
            texts[slot] += tokens
            if repeats:
                repeats[slot].extend(tokens)
            if len(texts[slot]) >= written:
                ended.setdefault(slot, time.perf_counter() - began)
        steps += 1
    return [ended[slot] for slot in range(len(tails))], [t[:written] for t in texts], steps


@dataclass(frozen=True, slots=True)
class Key:
    """What a key brings in every slot: the tail, and an index of what stands before it."""

    tails: list[Sequence[int]]
    repeats: list[Repeats]


def at_key(decoder: BatchedDecoder, places: Sequence[Sequence[int]], context: int, key: int) -> Key:
    """Go back to what was cached before a key; what it brings."""
    kept = context + key
    decoder.rewind([kept] * len(places))
    tails = [place[kept : kept + TAIL] for place in places]
    return Key(tails, [Repeats(place[:kept]) for place in places])


def of_attention(setup: Setup, budget: Budget) -> Iterator[Row]:
    """Which kernel of scaled dot product attention suits the shapes of a step, with short and with long contexts."""
    device = setup.trunk.device.type
    for context in (setup.sizes.short, setup.sizes.long):
        medians: dict[str, float] = {}
        for name in BACKENDS if device == "cuda" else ("torch's choice", "math"):
            what = f"one step, {context} tokens, attention {name}"
            setup.backends[context] = name
            try:
                decoder = setup.decoder(context, 1, max(BLOCKS))
                times = []
                for _ in budget.rounds(setup.sizes.rounds, 0.02):
                    decoder.rewind([context])
                    began = time.perf_counter()
                    decoder.step()
                    times.append(time.perf_counter() - began)
            except RuntimeError as error:
                yield Row(what, (), note=f"not available: {str(error).splitlines()[0][:60]}")
                continue
            medians[name] = percentile(times, 50) or 0.0
            yield Row(what, times)
        setup.backends[context] = min(medians, key=medians.__getitem__)


def of_single(setup: Setup, budget: Budget, context: int | None = None) -> Iterator[Row]:
    """One suggestion at a time: blocks of several sizes against plain decoding, key by key in turn."""
    s = setup.sizes
    context = context or s.short
    decoders = {GREEDY: setup.decoder(context, 1, 1)}
    decoders |= {f"blocks of {size}": setup.decoder(context, 1, size) for size in BLOCKS}
    times: dict[str, list[float]] = {name: [] for name in decoders}
    prefills: list[float] = []
    steps, same = dict.fromkeys(decoders, 0), dict.fromkeys(decoders, 0)
    for index in budget.rounds(s.places if context == s.short else 2, 0.4):
        place = setup.place(index, context)
        for decoder in decoders.values():
            prefills.append(timed_prefill(decoder, 0, place[:context], s.chunk))
        for key in range(s.keys):
            names = list(decoders)
            texts = {}
            for name in names if key % 2 else names[::-1]:
                at = at_key(decoders[name], [place], context, key)
                drafts = None if name == GREEDY else at.repeats
                found, (texts[name],), taken = suggest(decoders[name], at.tails, s.written, drafts)
                times[name] += found
                steps[name] += taken
            for name in names:
                same[name] += texts[name] == texts[GREEDY]
    setup.best = min(BLOCKS, key=lambda size: percentile(times[f"blocks of {size}"], 50) or 0.0)
    yield Row(f"prompt of {context} tokens, chunks of {s.chunk}", prefills)
    for name, found in times.items():
        ratios = [g / t for g, t in zip(times[GREEDY], found, strict=True)]
        note = "" if name == GREEDY else f"{percentile(ratios, 50):.2f}x against greedy, "
        note += f"the same text in {same[name]} of {len(found)}"
        what = f"{s.written} tokens, context {context}, {name}"
        yield Row(what, found, len(found) * s.written, steps[name], note)


def timed_prefill(decoder: BatchedDecoder, slot: int, tokens: Sequence[int], chunk: int) -> float:
    began = time.perf_counter()
    decoder.prefill(slot, tokens, chunk)
    int(decoder.anchor[slot])
    return time.perf_counter() - began


def of_many(setup: Setup, budget: Budget) -> Iterator[Row]:
    """Several requests at once, as many slots as requests, the numbers in turn."""
    s = setup.sizes
    decoders = {slots: setup.decoder(s.short, slots, setup.best) for slots in AT_ONCE}
    places = {n: [setup.place(i, s.short) for i in range(n)] for n in AT_ONCE}
    for slots, decoder in decoders.items():
        for slot, place in enumerate(places[slots]):
            decoder.prefill(slot, place[: s.short], s.chunk)
    times: dict[int, list[float]] = {slots: [] for slots in AT_ONCE}
    steps = dict.fromkeys(AT_ONCE, 0)
    for index in budget.rounds(s.rounds, 0.5):
        for slots, decoder in decoders.items():
            at = at_key(decoder, places[slots], s.short, index % s.keys)
            found, _, taken = suggest(decoder, at.tails, s.written, at.repeats)
            times[slots] += found
            steps[slots] += taken * slots
    means = {slots: sum(found) / len(found) for slots, found in times.items()}
    for slots, found in times.items():
        note = f"mean {1000 * means[slots]:.1f} ms"
        if slots == AT_ONCE[-1]:
            note += f", {means[slots] / means[AT_ONCE[1]]:.2f} times that of {AT_ONCE[1]}"
        what = (
            f"{slots} at once, {s.written} tokens each, context {s.short}, blocks of {setup.best}"
        )
        yield Row(what, found, len(found) * s.written, steps[slots], note)


def of_long(setup: Setup, budget: Budget) -> Iterator[Row]:
    """One suggestion behind a long context."""
    yield from of_single(setup, budget, setup.sizes.long)


def of_server(setup: Setup, budget: Budget) -> Iterator[Row]:
    """What `redraft lsp` does today on this device, a key of the bench's traces at a time, context warm."""
    if setup.trunk.config.vocab_size < 1000:
        yield Row("the server's own predictor", (), note="not in miniature")
        return
    from model.library import load

    predictor = load("embedded", device=str(setup.trunk.device))
    traces = list(bench.typed([500], keys=8, repeats=4))
    found: dict[str, list[bench.Sample]] = {mode: [] for mode in bench.MODES}
    for index in budget.rounds(len(traces), 0.8):
        for one in bench.replay({"today": predictor}, [traces[index]]):
            if one.warm:
                found[one.mode].append(one)
    for mode, samples in found.items():
        tokens, forwards = (sum(getattr(s, n) for s in samples) for n in ("tokens", "forwards"))
        times = [s.latency_ms / 1000 for s in samples]
        yield Row(f"the server's own predictor, {mode}, 500 lines", times, tokens, forwards)


Section = Callable[[Setup, Budget], Iterator[Row]]
SECTIONS: Mapping[str, tuple[Section, float]] = {
    "attention": (of_attention, 60),
    "single": (of_single, 30),
    "many": (of_many, 30),
    "long": (of_long, 45),
    "server": (of_server, 40),
}
"""What is measured, in order, and the seconds that it needs at least."""


def measure(setup: Setup, budget: Budget, least: float = 1.0) -> tuple[list[Row], list[str]]:
    """The rows of every section that fits, and what was left out and why. `least` scales the seconds needed."""
    rows: list[Row] = []
    left_out: list[str] = []
    for name, (section, seconds) in SECTIONS.items():
        if budget.left < least * seconds:
            left_out.append(f"{name}: {budget.left:.0f} s left, {least * seconds:.0f} needed")
            continue
        print(f"{name}, {budget.left:.0f} s left", file=sys.stderr, flush=True)
        try:
            rows += section(setup, budget)
        except RuntimeError as error:
            left_out.append(f"{name}: {str(error).splitlines()[0][:200]}")
    return rows, left_out


def embedded(device: torch.device, sizes: Sizes) -> Setup:
    """The embedded model in bfloat16, with positions for the long context, over the standard library's longest file.

    It was trained for 8,192 positions; what it says behind more is of no use, only its time is.
    """
    from model.adapter import AdaptedCheckpoint
    from model.bundle import EMBEDDED, control_ids
    from model.config import ModelConfig
    from model.prompt import PromptWriter
    from model.tokenizer import Tokenizer

    config = ModelConfig.load(EMBEDDED)
    tokenizer = Tokenizer(EMBEDDED / "tokenizer.json", control_ids(config))
    text = PromptWriter(tokenizer, config).encode("".join(bench.source_lines()))
    longer = replace(config, max_positions=max(config.max_positions, sizes.long + 1024))
    with torch.inference_mode():
        trunk = Transformer.load(AdaptedCheckpoint(EMBEDDED), longer, "bfloat16", device)
        denoiser = Denoiser.load(trunk, EMBEDDED, "bfloat16")
    assert denoiser is not None
    return Setup(trunk, denoiser, text, sizes)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=8.5, help="time for all of it")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--miniature", action="store_true", help="a tiny random model on the CPU")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    args = parser.parse_args(argv)
    budget = Budget(60 * args.minutes)
    if args.miniature:
        trunk, denoiser, text = miniature()
        setup, where = Setup(trunk, denoiser, text, SMALL), "cpu, miniature: times mean nothing"
    elif not torch.cuda.is_available():
        print("bench_gpu: torch sees no CUDA device; --miniature runs without", file=sys.stderr)
        return 2
    else:
        setup, where = embedded(torch.device(args.device), Sizes()), torch.cuda.get_device_name()
    rows, left_out = measure(setup, budget, 0.0 if args.miniature else 1.0)
    spent = budget.seconds - budget.left
    peak = None if args.miniature else torch.cuda.max_memory_allocated()
    if args.json:
        report = {"device": where, "torch": torch.__version__, "seconds": spent, "peak": peak}
        figures = [row.figures() for row in rows]
        write_json({**report, "left_out": left_out, "rows": figures}, args.json)
    print(f"{where}, torch {torch.__version__}, {spent:.0f} s")
    for line in left_out:
        print(f"left out: {line}")
    print(rows_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
