"""How large the inputs of every product of a model become: what int8 needs to know of it.

    python -m model.training.peaks texts-train.jsonl [--model FOLDER]

Responsible for reading sample texts (rows with `text`, as `redraft data build` writes them) through a model in float32
and keeping the largest absolute input of each channel, in `peaks.safetensors` of the model's folder. Knows nothing of
how `model.linear` uses them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.bundle import EMBEDDED, Bundle
from model.linear import PEAKS, Linear
from model.transformer import Transformer

TEXTS = 24
EVERY = 40
TOKENS = 512
LEAST_CHARS = 3000
PARTS = ("qkv", "output", "gate_up", "down")


class Recorder:
    """A product that remembers the largest absolute input of each channel, `peak [in]`."""

    def __init__(self, product: Linear) -> None:
        self.product = product
        self.peak: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        peak = x.float().abs().amax(0)
        self.peak = peak if self.peak is None else torch.maximum(self.peak, peak)
        return self.product(x)


def measure(trunk: Transformer, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """The largest absolute inputs by product, `[in]` float16 each; `texts` are token ids."""
    recorders = {"lm_head": Recorder(trunk.unembed)}
    trunk.unembed = recorders["lm_head"]
    for number, layer in enumerate(trunk.layers):
        for part in PARTS:
            recorder = recorders[f"model.layers.{number}.{part}"] = Recorder(getattr(layer, part))
            setattr(layer, part, recorder)
    for ids in texts:
        trunk.head(trunk.forward(torch.tensor(ids), trunk.new_cache(len(ids))))
    return {name: one.peak.half() for name, one in recorders.items() if one.peak is not None}


def samples(path: Path) -> Iterator[str]:
    """Every some long text of a file, so that many packages take part."""
    with path.open(encoding="utf-8") as file:
        texts = (json.loads(line)["text"] for line in islice(file, None, None, EVERY))
        yield from (text for text in texts if len(text) >= LEAST_CHARS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path)
    parser.add_argument("--model", type=Path, default=EMBEDDED)
    args = parser.parse_args()
    bundle = Bundle.load(args.model, device="cpu", compute="float32", max_tokens=TOKENS)
    encode = bundle.tokenizer.encode
    with torch.inference_mode():
        texts = [encode(text)[:TOKENS] for text in islice(samples(args.texts), TEXTS)]
        peaks = measure(bundle.trunk, texts)
    save_file(peaks, args.model / f"{PEAKS}.safetensors")
    print(f"{len(peaks)} products over {sum(map(len, texts)):,} tokens of {len(texts)} texts")


if __name__ == "__main__":
    main()
