"""The local predictor: where, what and whether, on a model in this process.

Responsible for the order of the three questions and for what each request may cost. FIM is the same pipeline with
"where" fixed to the cursor. Knows nothing of LSP, documents or files.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from diffing.edits import shrink
from diffing.history import ACCEPTED_PREDICTION
from model.bundle import EMBEDDED, Bundle, pick_device
from model.candidate import (
    COMPLETION,
    DRAFT,
    Candidate,
    best_of,
    described,
    distribution,
    judged,
    likeliest_lines,
)
from model.complete import Completer
from model.config import ModelError
from model.context import Context, ContextBuilder
from model.denoise import Decoding, Generation, prefill
from model.draft import Draft, drafts
from model.gate import Gate, load_for_user
from model.infill import Infiller
from model.linear import Compute
from model.locate import DraftJudge
from model.prompt import FimPrompt, PromptWriter
from model.protocol import Expired, Prediction, Request, Stop
from model.transformer import Transformer

CPU_CONTEXT = 512
GPU_CONTEXT = 8192
LEAST_CONTEXT, MOST_CONTEXT = 64, 32_768
ANSWER_ROOM = 512
JUDGED = 4
# While a line is being typed: as many are taken with the likeliest draft alone, and hardly any verdict is another when
# the last tokens of the newest edit were not seen (docs/LOG.md).
JUDGED_WHILE_TYPING = 1
SLACK_WHILE_TYPING = 4
JUDGE_HISTORY = 3
SURE = 0.5


@dataclass(slots=True)
class Work:
    """What a request has cost so far."""

    forwards: int = 0
    cached: int = 0
    prompt: int = 0
    denoising_steps: int = 0

    def read(self, prompt: int, cached: int, passes: int = 0) -> None:
        """A prompt of so many tokens was read, so many of them were encoded already, and what it took beyond that."""
        self.prompt += prompt
        self.cached += cached
        self.forwards += passes

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
        self.judge = DraftJudge(bundle, self.writer)
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
        tuned: Path | None = None,
    ) -> LocalPredictor:
        """Load a model folder (the embedded one by default).

        `context_tokens` bounds the prompt; by default 512 on a CPU and 8,192 on a GPU, at most 32,768 or the model's
        own limit. `tuned` is a folder that may hold a gate of the user's own. Raises `ModelError` with a reason a
        user can act on.
        """
        folder, where = path or EMBEDDED, pick_device(device)
        wanted = wanted_context(context_tokens, where)
        bundle = Bundle.load(
            folder,
            device=device,
            compute=compute,
            threads=threads,
            decoding=decoding,
            max_tokens=min(wanted, MOST_CONTEXT) + ANSWER_ROOM,
        )
        budget = min(wanted, bundle.prefixes.max_tokens - ANSWER_ROOM)
        return cls(bundle, load_for_user(folder, bundle.config.name, tuned), budget)

    def sibling(self) -> LocalPredictor:
        """The same model with caches of its own, for a request at the same time."""
        budget = self.contexts.budget
        return LocalPredictor(self.bundle.sibling(), self.gate, budget, drafting=self.drafting)

    @property
    def trunk(self) -> Transformer:
        return self.bundle.trunk

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
        best = best_of(found)
        lines = distribution((one.line, one.confidence) for one in found if one.source == DRAFT)
        return Prediction(
            edits=best.edits,
            confidence=best.confidence,
            latency_ms=(time.perf_counter() - started) * 1000,
            forwards=work.forwards,
            tokens=best.tokens,
            model=self.name,
            features={
                **best.features,
                "p_nowhere": lines[None],
                "prompt_tokens": float(work.prompt),
                "cached_tokens": float(work.cached),
                "denoising_steps": float(work.denoising_steps),
            },
            source=best.source,
            where=likeliest_lines(found) if request.mode == "next_edit" else (),
        )

    @torch.inference_mode()
    def propose(self, request: Request) -> list[Candidate]:
        """All suggestions of every source, whatever they take."""
        return self.candidates(request, Work(), Stop(), exhaustive=True)

    def candidates(
        self, request: Request, work: Work, stop: Stop, *, exhaustive: bool = False
    ) -> list[Candidate]:
        """All suggestions for a request; `exhaustive` asks every source, however sure another is."""
        if request.mode == "fim":
            return self._complete(request, work, stop)
        found = self._judged_drafts(request, work, stop, every=exhaustive) if self.drafting else []
        found = judged(self.gate, described(request, found))
        sure = any(candidate.confidence >= SURE for candidate in found)
        if mid_typing(request) and not stop.expired and (exhaustive or not sure):
            found += self._complete(request, work, stop)
        return found

    @torch.inference_mode()
    def prepare(self, request: Request, stop: Stop) -> None:
        """Encode the context of a completion at the cursor, for a request that may come."""
        tokens = self._completion_prompt(request).tokens
        prefill(self.bundle.trunk, self.bundle.prefixes.acquire(tokens), tokens, stop)

    def _completion_prompt(self, request: Request) -> FimPrompt:
        settled = replace(request, history=settled_history(request))
        return self.writer.fim(request.path, self.contexts.build(settled))

    def _complete(self, request: Request, work: Work, stop: Stop) -> list[Candidate]:
        """What goes at the cursor: beginnings of one continuation, the empty one left out."""
        if not request.text.strip():
            return []
        prompt = self._completion_prompt(request)
        work.read(len(prompt.tokens), self.bundle.prefixes.shared(prompt.tokens))
        found, made = self.completer.complete(
            prompt.tokens, prompt.required, request, stop, prompt.reference
        )
        work.add(made)
        line = request.text.count("\n", 0, request.cursor)
        candidates = [
            Candidate(
                COMPLETION,
                (completion.edit(request.cursor),),
                0.0,
                {**completion.features(), "denoising_steps": float(made.denoising_steps)},
                completion.tokens,
                line=line,
            )
            for completion in found
            if completion.text
        ]
        return judged(self.gate, described(request, candidates[:1]))

    def _judged_drafts(
        self, request: Request, work: Work, stop: Stop, *, every: bool = False
    ) -> list[Candidate]:
        """Drafts of the next edit, each judged against the present text; while a line is typed all only if `every`."""
        typing = mid_typing(request) and not every
        most, slack = (JUDGED_WHILE_TYPING, SLACK_WHILE_TYPING) if typing else (JUDGED, 0)
        proposals = wanted(request, drafts(request))[:most]
        if not proposals:
            return []
        context = self._history_only(request)
        found = self.judge.judge(
            request, context, proposals, self.contexts.budget, stop, slack, work.read
        )
        candidates = []
        for one in found:
            edit = shrink(request.text, one.draft.edit)
            if edit is not None:
                place = (one.draft.link, one.draft.distance, one.place.first)
                candidates.append(
                    Candidate(DRAFT, (edit,), 0.0, one.features(), one.tokens, *place)
                )
        return candidates

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


def wanted_context(tokens: int | None, device: torch.device) -> int:
    """The tokens of a prompt that were asked for, or that suit the device. Raises `ModelError` for too few."""
    wanted = tokens or (GPU_CONTEXT if device.type == "cuda" else CPU_CONTEXT)
    if wanted < LEAST_CONTEXT:
        raise ModelError(
            f"a context of {wanted} tokens is too short; at least {LEAST_CONTEXT} are needed"
        )
    return wanted


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


def wanted(request: Request, proposals: list[Draft]) -> list[Draft]:
    """The drafts that change something where the caller can use it."""
    if request.region is None:
        return proposals
    small = ((one, shrink(request.text, one.edit)) for one in proposals)
    return [one for one, edit in small if edit is not None and request.wants(edit)]


def mid_typing(request: Request) -> bool:
    """True when the user's newest change wrote the text before the cursor and nothing follows on its line."""
    text, cursor = request.text, request.cursor
    end = text.find("\n", cursor)
    rest = text[cursor : len(text) if end < 0 else end]
    line = text[text.rfind("\n", 0, cursor) + 1 : cursor].strip()
    if not request.history or not line or rest.strip():
        return False
    if request.history[-1].startswith(ACCEPTED_PREDICTION):
        return False
    return any(
        row[:1] == "+" and row[1:].strip() == line for row in request.history[-1].split("\n")
    )
