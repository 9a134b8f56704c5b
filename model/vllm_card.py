"""The README of a checkpoint that was written for vLLM.

Responsible for saying how to serve it, what it can do and what it lost. Knows nothing of how it is written.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from model.config import ModelConfig
from model.tokenizer import Tokenizer

CARD = """\
# {name}, for vLLM

A checkpoint of Redraft in the layout of NVIDIA's Nemotron-Labs-Diffusion, written by `redraft models export`. NVIDIA
has no part in it; the licence is that of the checkpoint it was made from. Weights are unpacked to {precision}, adapters
are merged, and the output head is written out even where it equals the embedding.

## Serve it

```sh
{command}
```

vLLM must know the architecture `NemotronLabsDiffusionModel`: its main branch does, releases up to 0.34.0 do not. This
was never run with vLLM; it was written after the main branch's code. `--trust-remote-code` is not needed.

```sh
curl http://localhost:8000/v1/completions -H 'Content-Type: application/json' \\
  -d {request}
```

## What it can do

- **Continue text, causally, one token at a time.** That is what this network was trained for.
  {fills}
- **Not block diffusion.** This network never saw a mask in training, so blocks of masks filled with it would be
  nonsense. For that reason `"ar_mode": true` stands in `config.json`, too: do not turn it off, and do not give
  `--diffusion-config`. `block_size` and `mask_token_id` are there because the layout asks for them.
  {denoiser}
- **Not Redraft's suggestions.** The gate, drafts from the context, the judging by the text after the cursor and the
  finding of the next place to edit are not part of this network. `redraft serve` offers them, this folder does not.
- Texts of {context} tokens at most.

Text of a prompt that looks like a control token is that token for vLLM; Redraft keeps it text. Give the prompt as token
ids where that matters.

## Control tokens

| meaning | written | id |
| --- | --- | ---: |
{tokens}
"""
FILLS = "It was also trained to fill in, in Redraft's own prompt format (the table has the tags)."
FILLS_NOT = "It was not trained to fill in: the text after the cursor has no place in a prompt."
DENOISER = """\
Redraft's own block denoiser is a small network beside this one, which reads its keys and values. The layout has no
  place for it, so it stayed behind."""
NO_DENOISER = "The checkpoint this was made from has no block denoiser of its own either."
PROMPT = "def area(radius):\n    return"


def serve_command(folder: Path | str, config: ModelConfig) -> str:
    """The command line that serves the folder with vLLM, causally."""
    return (
        f"VLLM_USE_V2_MODEL_RUNNER=1 vllm serve {shlex.quote(str(folder))} \\\n"
        f"  --served-model-name {shlex.quote(config.name)} --hf-overrides '{{\"ar_mode\": true}}' \\\n"
        f"  --max-model-len {config.max_positions}"
    )


def card(config: ModelConfig, tokenizer: Tokenizer, precision: str, denoises: bool) -> str:
    """The README; `denoises` tells that a block denoiser was left behind."""
    rows = [
        f"| {name} | {cell(str(tokenizer.control_name(id_)))} | {id_} |"
        for name, id_ in sorted(config.special.items(), key=lambda item: item[1])
    ]
    request = {"model": config.name, "prompt": PROMPT, "max_tokens": 32, "temperature": 0}
    return CARD.format(
        name=config.name,
        precision=precision,
        command=serve_command(".", config),
        request=shlex.quote(json.dumps(request)),
        fills=FILLS if config.infill else FILLS_NOT,
        denoiser=DENOISER if denoises else NO_DENOISER,
        context=f"{config.max_positions:,}",
        tokens="\n".join(rows),
    )


def cell(text: str) -> str:
    """Code in a cell of a table."""
    return "`" + text.replace("|", r"\|") + "`"
