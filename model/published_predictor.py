"""A predictor over an open diffusion model of someone else.

Responsible for which modes such a model serves and for turning its answers into edits. A hole is filled by models that
were trained to fill holes; no open model was trained on next edits, so these are asked for in a chat only, and only
where the user has said so. Nothing here is calibrated: the confidence is what the model says of its own tokens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from diffing.edits import Edit
from model.bundle import pick_compute, pick_device
from model.cache import PrefixCache
from model.candidate import COMPLETION
from model.canvas import Answer, CanvasDecoder
from model.chat import load_asking
from model.config import Quantize
from model.context import ContextBuilder
from model.continuing import Continuer
from model.families import Published, Reuse, open_published
from model.infill import offered
from model.linear import Compute
from model.local import MOST_CONTEXT, wanted_context
from model.protocol import Expired, Prediction, Request, Stop
from model.published_prompt import Hole, infill_prompt, missing_tags, rewriting
from model.transformer import Transformer
from model.windows import Windows

NOT_SERVED = "mode-not-served"
REWRITTEN = "rewrite"
NO_TEXT = "\ufffd"
SPARE = 32


class PublishedPredictor:
    """Answers with one loaded checkpoint of a known family; one request at a time.

    `instruct` lets a model that follows instructions be asked for what it was not trained to do.
    """

    def __init__(
        self,
        published: Published,
        trunk: Transformer,
        context_tokens: int,
        *,
        instruct: bool = False,
        reuse: Reuse | None = None,
    ) -> None:
        self.published, self.trunk = published, trunk
        self.sibling = lambda: PublishedPredictor(
            published, trunk, context_tokens, instruct=instruct, reuse=reuse
        )
        """The same model with caches of its own, for a request at the same time."""
        self.name = published.config.name
        self.contexts = ContextBuilder(published.tokenizer.count, context_tokens)
        prefixes = PrefixCache(
            published.config,
            max_tokens=published.config.max_positions,
            device=trunk.device,
            dtype=torch.bfloat16 if trunk.device.type == "cuda" else torch.float32,
        )
        self.windows = Windows(published, trunk, prefixes, reuse)
        self.decoder = CanvasDecoder(published)
        self.infills = published.family.infill is not None and not missing_tags(published)
        self.continuer: Continuer | None = None
        if published.family.infill == "continue":
            self.continuer = Continuer(published, trunk, prefixes, context_tokens)
        self.chat = load_asking(published.folder, published.tokenizer) if instruct else None

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        device: str = "auto",
        compute: Compute | Literal["auto"] = "auto",
        threads: int | None = None,
        context_tokens: int | None = None,
        instruct: bool = False,
        reuse: Reuse | None = None,
        quantize: Quantize | None = None,
    ) -> PublishedPredictor:
        """Load a checkpoint folder. Raises `ModelError` with a reason a user can act on.

        `quantize` rounds the weights of its layers to fewer bits.
        """
        if threads is not None:
            torch.set_num_threads(threads)
        published = open_published(folder)
        where = pick_device(device)
        how: Compute = pick_compute(where) if compute == "auto" else compute
        wanted = wanted_context(context_tokens, where)
        budget = min(wanted, MOST_CONTEXT, published.config.max_positions // 2)
        with torch.inference_mode():
            trunk = Transformer.load(
                published.weights(), published.config, how, where, quantize=quantize
            )
        return cls(published, trunk, budget, instruct=instruct, reuse=reuse)

    @property
    def device(self) -> str:
        return str(self.trunk.device)

    @property
    def modes(self) -> tuple[str, ...]:
        """What it can be asked for."""
        return ("fim", "next_edit") if self.chat else ("fim",) if self.infills else ()

    @torch.inference_mode()
    def predict(self, request: Request, stop: Stop) -> Prediction:
        """One suggestion, however unsure; the caller compares `confidence` with a threshold."""
        started = time.perf_counter()
        stop.check()
        if request.mode not in self.modes:
            return Prediction(suppressed=NOT_SERVED, model=self.name)
        try:
            if request.mode == "fim" and self.continuer:
                found = self._continue(self.continuer, request, stop)
            elif request.mode == "fim" and self.infills:
                found = self._fill(request, stop)
            else:
                found = self._rewrite(request, stop)
        except Expired:
            found = Prediction(model=self.name)
        return replace(found, latency_ms=(time.perf_counter() - started) * 1000)

    def _fill(self, request: Request, stop: Stop) -> Prediction:
        """What goes at the cursor, as a model that fills holes sees it: the file alone."""
        if not request.text.strip():
            return Prediction(model=self.name)
        context = self.contexts.build(replace(request, history=(), related=()))
        hole = infill_prompt(self.published, context)
        answer, text = self._write(hole, stop, request.max_tokens, None)
        prefix, suffix = request.text[: request.cursor], request.text[request.cursor :]
        required = hole.required.decode("utf-8", "replace")
        if not text.startswith(required):
            return self._prediction((), answer)
        written = whole_lines(text.removeprefix(required), request.max_lines, ended=answer.ended)
        (kept,) = offered({written: (0.0, 0)}, prefix, suffix) or ("",)
        at = request.cursor
        return self._prediction((Edit(at, at, kept),) if kept else (), answer)

    def _continue(self, continuer: Continuer, request: Request, stop: Stop) -> Prediction:
        """What goes at the cursor, as a model that goes on sees it; sure is what the text after it makes likely."""
        if not request.text.strip():
            return Prediction(model=self.name)
        best, made = continuer.complete(request, stop)
        if best is None:
            return Prediction(model=self.name, forwards=made.forwards)
        return Prediction(
            edits=(best.edit(request.cursor),),
            confidence=best.share,
            truncated=not made.ended,
            forwards=made.forwards,
            tokens=best.tokens,
            model=self.name,
            features={**best.features(), "denoising_steps": float(made.denoising_steps)},
            source=COMPLETION,
        )

    def _rewrite(self, request: Request, stop: Stop) -> Prediction:
        """The lines around the cursor, asked for in a chat."""
        assert self.chat is not None
        asked = rewriting(request, self.contexts)
        if asked is None:
            return Prediction(model=self.name)
        size = self.contexts.count(asked.region) + SPARE
        hole = Hole(self.chat.ask(self.published.tokenizer, asked.message), [])
        answer, text = self._write(hole, stop, size + request.max_tokens, size)
        edit = asked.edit(request.text, text)
        return self._prediction((edit,) if edit else (), answer, REWRITTEN)

    def _write(
        self, hole: Hole, stop: Stop, max_tokens: int, length: int | None
    ) -> tuple[Answer, str]:
        """An answer and its text up to bytes that are none, as long as the model's places allow; maybe empty."""
        before = hole.before or self._begin()
        room = self.room([*before, *hole.after])
        if room < 1:
            return Answer(), ""
        window = self.windows.open(before, hole.after, stop)
        answer = self.decoder.write(
            window, stop, required=hole.required, max_tokens=min(max_tokens, room), length=length
        )
        text = self.published.tokenizer.decode(answer.tokens)
        return answer, text.partition(NO_TEXT)[0]

    def room(self, around: Sequence[int]) -> int:
        """How many tokens an answer among these may have."""
        return self.published.config.max_positions - self.published.block - len(around)

    def _begin(self) -> list[int]:
        """A token to begin an empty text with."""
        found = self.published.begin if self.published.begin is not None else self.published.end
        return [0 if found is None else found]

    def _prediction(
        self, edits: tuple[Edit, ...], answer: Answer, source: str = COMPLETION
    ) -> Prediction:
        log_probs = answer.log_probs or [0.0]
        mean = sum(log_probs) / len(log_probs)
        return Prediction(
            edits=edits,
            confidence=math.exp(mean) if edits else 0.0,
            truncated=not answer.ended,
            forwards=answer.forwards,
            tokens=len(answer.tokens),
            model=self.name,
            features={
                "mean": mean,
                "least": min(log_probs),
                "tokens": float(len(answer.tokens)),
                "ended": float(answer.ended),
                "denoising_steps": float(answer.steps),
            },
            source=source,
        )


def whole_lines(text: str, most: int, *, ended: bool) -> str:
    """At most so many lines; a last line that was cut off is left out if another stands before it."""
    lines = text.split("\n")
    if len(lines) > most:
        return "\n".join(lines[:most])
    if not ended and len(lines) > 1:
        return "\n".join(lines[:-1])
    return text
