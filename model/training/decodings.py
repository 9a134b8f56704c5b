"""Which decoding is the default: tokens per forward pass and time of each, on text that was not trained on.

    python -m model.training.decodings CASES-dev.jsonl --places 30

Responsible for one table. Every decoding continues the same places of the same files by the same number of tokens, in
turn, so that their ratios hold on a noisy machine; all give the greedy text of the trunk.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from model.bundle import EMBEDDED, Bundle
from model.denoise import Decoder, Decoding, prefill
from model.prompt import PromptWriter
from model.protocol import Stop

DECODINGS: tuple[Decoding, ...] = ("causal", "refine", "block")
CONTEXT = 400


@dataclass(slots=True)
class Tally:
    tokens: int = 0
    forwards: int = 0
    steps: int = 0
    drafted: int = 0
    kept: int = 0
    seconds: list[float] = field(default_factory=list)


def places(path: Path, count: int, rng: random.Random) -> list[tuple[str, str]]:
    """(path, text before a random line) of random texts of a file of cases or texts."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if rng.random() < 0.05]
    rng.shuffle(rows)
    found = []
    for row in rows[:count]:
        lines_ = row["text"].split("\n")
        at = rng.randrange(len(lines_) // 2, len(lines_))
        found.append((row["path"], "\n".join(lines_[:at])))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path)
    parser.add_argument("--model", type=Path, default=EMBEDDED)
    parser.add_argument("--places", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--compute", default="auto", help="float32, bfloat16, int8 or auto")
    parser.add_argument("--steps", type=int, default=1, help="denoising steps a block")
    parser.add_argument("--block", type=int, help="rows of a block with its anchor")
    args = parser.parse_args()
    bundle = Bundle.load(args.model, threads=args.threads, compute=args.compute)
    writer = PromptWriter(bundle.tokenizer, bundle.config)
    decoders = {
        name: Decoder(
            bundle.trunk,
            bundle.tokenizer,
            bundle.denoiser,
            name,
            steps=args.steps,
            block=args.block,
        )
        for name in DECODINGS
    }
    tallies = {name: Tally() for name in DECODINGS}
    same = 0
    work = places(args.texts, args.places, random.Random(0))
    with torch.inference_mode():
        for path, text in work:
            ids = writer.file(path, text)[-CONTEXT:]
            slot = bundle.prefixes.acquire(ids)
            hidden, _ = prefill(bundle.trunk, slot, ids, Stop())
            answers = []
            for name, decoder in decoders.items():
                slot.rewind(len(ids))
                began = time.perf_counter()
                made = decoder.generate(slot, ids, hidden, max_tokens=args.tokens)
                tally = tallies[name]
                tally.seconds.append(time.perf_counter() - began)
                tally.tokens += len(made.tokens)
                tally.forwards += made.forwards
                tally.steps += made.denoising_steps
                tally.drafted += made.drafted
                tally.kept += made.kept
                answers.append(made.tokens)
            same += answers[0] == answers[1] == answers[2]
    base = sum(tallies["causal"].seconds)
    print(
        "| decoding | tokens a forward | denoising steps | drafted tokens kept | time against causal |"
    )
    print("| --- | --- | --- | --- | --- |")
    for name, t in tallies.items():
        print(
            f"| {name} | {t.tokens / max(1, t.forwards):.2f} | {t.steps} | {t.kept} of {t.drafted} "
            f"| {sum(t.seconds) / base:.2f} |"
        )
    print(f"{len(work)} places, {args.tokens} tokens each; the same text in {same} of {len(work)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
