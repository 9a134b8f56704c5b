"""The local predictor: where, what and whether, on a model in this process.

Responsible for the order of the three questions and for what each request may cost. FIM is the same pipeline with
"where" fixed to the cursor. Knows nothing of LSP, documents or files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from diffing.edits import Edit, shrink
from model.bundle import EMBEDDED, Bundle, pick_device
from model.complete import Completer
from model.config import ModelError
from model.context import Context, ContextBuilder
from model.denoise import Decoding, Generation
from model.draft import drafts
from model.gate import Gate
from model.infill import Infiller
from model.locate import distribution, judge_drafts
from model.prompt import PromptWriter
from model.protocol import Expired, Prediction, Request, Stop
from model.transformer import Compute

CPU_CONTEXT = 512
GPU_CONTEXT = 8192
LEAST_CONTEXT, MOST_CONTEXT = 64, 32_768
ANSWER_ROOM = 512
JUDGED = 4
PLACES = 5
JUDGE_HISTORY = 3
SURE = 0.5
NEARLY = 0.6


@dataclass(frozen=True, slots=True)
class Candidate:
    """One suggestion: who made it (`draft` or `completion`), and the probability that the gate gives it.

    `line` is the line that it begins on, from 0. A draft has the substitution that led to it, if any, and its signed
    distance from the cursor in lines.
    """

    source: str
    edits: tuple[Edit, ...]
    confidence: float
    features: Mapping[str, float]
    tokens: int
    link: tuple[str, str] | None = None
    distance: int = 0
    line: int = 0


NOTHING = Candidate("", (), 0.0, {}, 0)


@dataclass(slots=True)
class Work:
    """What a request has cost so far."""

    forwards: int = 0
    cached: int = 0
    prompt: int = 0
    denoising_steps: int = 0

    def add(self, made: Generation) -> None:
        self.forwards += made.forwards
        self.denoising_steps += made.denoising_steps


class LocalPredictor:
    """Answers FIM and next-edit requests with one loaded checkpoint; one request at a time."""

    def __init__(
        self, bundle: Bundle, gate: Gate, context_tokens: int, *, drafting: bool = True
    ) -> None:
        self.bundle, self.gate, self.drafting = bundle, gate, drafting
        self.name = bundle.config.name
        self.writer = PromptWriter(bundle.tokenizer, bundle.config)
        self.contexts = ContextBuilder(self.writer.count, context_tokens)
        self.completer = Infiller(bundle) if bundle.config.infill else Completer(bundle)

    @classmethod
    def load(
        cls,
        path: Path | None = None,
        *,
        device: str = "auto",
        compute: Compute | Literal["auto"] = "auto",
        threads: int | None = None,
        decoding: Decoding | Literal["auto"] = "auto",
        context_tokens: int | None = None,
    ) -> LocalPredictor:
        """Load a model folder (the embedded one by default).

        `context_tokens` bounds the prompt; by default 512 on a CPU and 8,192 on a GPU, at most 32,768 or the model's
        own limit. Raises `ModelError` with a reason a user can act on.
        """
        folder, where = path or EMBEDDED, pick_device(device)
        wanted = context_tokens or (GPU_CONTEXT if where.type == "cuda" else CPU_CONTEXT)
        if wanted < LEAST_CONTEXT:
            raise ModelError(
                f"a context of {wanted} tokens is too short; at least {LEAST_CONTEXT} are needed"
            )
        bundle = Bundle.load(
            folder,
            device=device,
            compute=compute,
            threads=threads,
            decoding=decoding,
            max_tokens=min(wanted, MOST_CONTEXT) + ANSWER_ROOM,
        )
        budget = min(wanted, bundle.prefixes.max_tokens - ANSWER_ROOM)
        return cls(bundle, Gate.load(folder), budget)

    @property
    def device(self) -> str:
        return self.bundle.device

    def threshold(self, mode: str, setting: str) -> float:
        """The least confidence to show under `eager`, `balanced` or `quiet`."""
        return self.gate.threshold(mode, setting)

    @torch.inference_mode()
    def predict(self, request: Request, stop: Stop) -> Prediction:
        """The best suggestion, however unsure; the caller compares `confidence` with a threshold."""
        started = time.perf_counter()
        work = Work()
        stop.check()
        try:
            found = self.candidates(request, work, stop)
        except Expired:
            found = []
        best = nearest_of(found, max(found, key=lambda one: one.confidence, default=NOTHING))
        return Prediction(
            edits=best.edits,
            confidence=best.confidence,
            latency_ms=(time.perf_counter() - started) * 1000,
            forwards=work.forwards,
            tokens=best.tokens,
            model=self.name,
            features={
                **best.features,
                "prompt_tokens": float(work.prompt),
                "cached_tokens": float(work.cached),
                "denoising_steps": float(work.denoising_steps),
            },
            source=best.source,
            where=likeliest_lines(found) if request.mode == "next_edit" else (),
        )

    def candidates(
        self, request: Request, work: Work, stop: Stop, *, exhaustive: bool = False
    ) -> list[Candidate]:
        """All suggestions for a request; `exhaustive` asks every source, however sure another is."""
        if request.mode == "fim":
            return self._complete(request, work, stop)
        found = self._judged_drafts(request, work, stop) if self.drafting else []
        sure = any(candidate.confidence >= SURE for candidate in found)
        if mid_typing(request) and not stop.expired and (exhaustive or not sure):
            found += self._complete(request, work, stop)
        return found

    def _complete(self, request: Request, work: Work, stop: Stop) -> list[Candidate]:
        """What goes at the cursor: beginnings of one continuation, the empty one left out."""
        if not request.text.strip():
            return []
        settled = replace(request, history=settled_history(request))
        prompt = self.writer.fim(request.path, self.contexts.build(settled))
        self._account(work, prompt.tokens)
        found, made = self.completer.complete(
            prompt.tokens, prompt.required, request, stop, prompt.reference
        )
        work.add(made)
        return [
            Candidate(
                "completion",
                (completion.edit(request.cursor),),
                self.gate.probability("completion", completion.features()),
                completion.features(),
                completion.tokens,
                line=request.text.count("\n", 0, request.cursor),
            )
            for completion in found
            if completion.text
        ][:1]

    def _judged_drafts(self, request: Request, work: Work, stop: Stop) -> list[Candidate]:
        """Drafts of the next edit, each judged against the present text."""
        proposals = drafts(request)[:JUDGED]
        if not proposals:
            return []
        context = self._history_only(request)
        judged = judge_drafts(
            self.bundle, self.writer, request, context, proposals, self.contexts.budget, stop
        )
        work.forwards += bool(judged)
        chances = [self.gate.probability("draft", j.features()) for j in judged]
        where = distribution((j.place.first, p) for j, p in zip(judged, chances, strict=True))
        found = []
        for j, p in zip(judged, chances, strict=True):
            edit = shrink(request.text, j.draft.edit)
            if edit is not None:
                places = {"p_line": where[j.place.first], "p_nowhere": where[None]}
                features = {**j.features(), **places}
                link, distance = j.draft.link, j.draft.distance
                place = (link, distance, j.place.first)
                found.append(Candidate("draft", (edit,), p, features, j.tokens, *place))
        return found

    def _history_only(self, request: Request) -> Context:
        """The recent edits that fit a third of the budget, oldest first."""
        kept: list[str] = []
        left = self.contexts.budget // 3
        for diff in reversed(request.history[-JUDGE_HISTORY:]):
            left -= self.contexts.count(diff)
            if left < 0 and kept:
                break
            kept.append(diff)
        return Context((), "", tuple(reversed(kept)), "", "", 0, 0, 0, {})

    def _account(self, work: Work, tokens: list[int]) -> None:
        work.prompt = len(tokens)
        work.cached = self.bundle.prefixes.shared(tokens)


def likeliest_lines(found: Sequence[Candidate]) -> tuple[tuple[int, float], ...]:
    """The likeliest lines of the next edit with their probabilities, as the candidates tell."""
    lines = distribution((one.line, one.confidence) for one in found)
    named = [(line, chance) for line, chance in lines.items() if line is not None]
    return tuple(sorted(named, key=lambda one: -one[1])[:PLACES])


def nearest_of(found: Sequence[Candidate], best: Candidate) -> Candidate:
    """Of the places where the best one's substitution applies the nearest that is not much less sure, those below the
    cursor first: someone who renames goes from place to place, and what he jumps over stays broken."""
    if not best.link or not best.distance:
        return best
    alike = [c for c in found if c.link == best.link and c.distance]
    sure = [c for c in alike if c.confidence >= NEARLY * best.confidence]
    return min(sure, key=lambda c: (c.distance < 0, abs(c.distance)), default=best)


def settled_history(request: Request) -> tuple[str, ...]:
    """The history without the change under the cursor: it stands in the prefix, and it grows with every key."""
    if not request.history:
        return ()
    line = request.text[request.text.rfind("\n", 0, request.cursor) + 1 : request.cursor].strip()
    newest = request.history[-1]
    growing = bool(line) and any(
        row[:1] == "+" and row[1:].strip().startswith(line) for row in newest.split("\n")
    )
    return request.history[:-1] if growing else request.history


def mid_typing(request: Request) -> bool:
    """True when the newest change wrote the text before the cursor and nothing follows on its line."""
    text, cursor = request.text, request.cursor
    end = text.find("\n", cursor)
    rest = text[cursor : len(text) if end < 0 else end]
    line = text[text.rfind("\n", 0, cursor) + 1 : cursor].strip()
    if not request.history or not line or rest.strip():
        return False
    return any(
        row[:1] == "+" and row[1:].strip() == line for row in request.history[-1].split("\n")
    )
