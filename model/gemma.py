"""DiffusionGemma, run by transformers' own class for it.

Responsible for loading such a folder, for asking it in a chat, and for ending its work when a request is withdrawn or
late. It was made for chats, so it serves by instruction only. Knows nothing of how its canvas is denoised: it has
random tokens instead of masks, and experts, which Redraft's own network does not run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.bundle import pick_device
from model.chat import ChatTemplate, load_asking
from model.config import ModelError
from model.context import ContextBuilder
from model.families import GEMMA, as_ids
from model.gemma_tokenizer import GemmaTokenizer
from model.local import MOST_CONTEXT, wanted_context
from model.protocol import Expired, Mode, Prediction, Request, Stop
from model.published import read_json
from model.published_predictor import NOT_SERVED, REWRITTEN, SPARE
from model.published_prompt import rewriting

CLASS = "DiffusionGemmaForBlockDiffusion"
NEEDED = "5.11"
SEED = 0


def is_gemma(folder: Path) -> bool:
    """Whether a folder's configuration is DiffusionGemma's."""
    return read_json(folder / "config.json").get("model_type") == GEMMA


def model_class() -> Any:
    """Transformers' class. Raises `ModelError` where the installed version has none."""
    try:
        import transformers
    except ModuleNotFoundError:
        there = "which is not installed"
    else:
        if found := getattr(transformers, CLASS, None):
            return found
        there = f"and this is {transformers.__version__}"
    raise ModelError(
        f"DiffusionGemma needs transformers {NEEDED} or newer, {there}: "
        f"pip install 'transformers>={NEEDED}'"
    )


class GemmaPredictor:
    """Answers with one loaded checkpoint; one request at a time. Without `instruct` it is asked for nothing."""

    def __init__(
        self,
        name: str,
        model: Any,
        tokenizer: GemmaTokenizer,
        template: ChatTemplate,
        context_tokens: int,
        *,
        instruct: bool = False,
    ) -> None:
        self.name, self.model, self.tokenizer, self.template = name, model, tokenizer, template
        self.contexts = ContextBuilder(tokenizer.count, context_tokens)
        self.modes: tuple[Mode, ...] = ("fim", "next_edit") if instruct else ()

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        device: str = "auto",
        threads: int | None = None,
        context_tokens: int | None = None,
        instruct: bool = False,
    ) -> GemmaPredictor:
        """Load a checkpoint folder. Raises `ModelError` with a reason a user can act on."""
        kind = model_class()
        if threads is not None:
            torch.set_num_threads(threads)
        tokenizer = GemmaTokenizer(folder)
        template = load_asking(folder, tokenizer)
        if template is None:
            raise ModelError(f"{folder} has no chat template: it could not be asked for anything")
        where = pick_device(device)
        wanted = wanted_context(context_tokens, where)
        model = _load_weights(kind, folder, where)
        places = int(model.config.text_config.max_position_embeddings)
        budget = min(wanted, MOST_CONTEXT, places // 2)
        return cls(folder.name, model, tokenizer, template, budget, instruct=instruct)

    @property
    def places(self) -> int:
        """Tokens that the model reads, with its answer."""
        return int(self.model.config.text_config.max_position_embeddings)

    @property
    def device(self) -> str:
        return str(self.model.device)

    def predict(self, request: Request, stop: Stop) -> Prediction:
        """The lines around the cursor, asked for in a chat; the caller compares `confidence` with a threshold."""
        started = time.perf_counter()
        stop.check()
        if request.mode not in self.modes:
            return Prediction(suppressed=NOT_SERVED, model=self.name)
        try:
            found = self._rewrite(request, stop)
        except Expired:
            found = Prediction(model=self.name)
        return replace(found, latency_ms=(time.perf_counter() - started) * 1000)

    def _rewrite(self, request: Request, stop: Stop) -> Prediction:
        asked = rewriting(request, self.contexts)
        if asked is None:
            return Prediction(model=self.name)
        prompt = self.template.ask(self.tokenizer, asked.message)
        most = self.tokenizer.count(asked.region) + SPARE + request.max_tokens
        tokens, watched = self.generate(prompt, most, stop)
        edit = asked.edit(request.text, self.tokenizer.decode(tokens))
        log_probs = watched.log_probs[: len(tokens)] or [0.0]
        mean = sum(log_probs) / len(log_probs)
        return Prediction(
            edits=(edit,) if edit else (),
            confidence=math.exp(mean) if edit else 0.0,
            truncated=len(tokens) >= most,
            forwards=watched.steps,
            tokens=len(tokens),
            model=self.name,
            features={"mean": mean, "least": min(log_probs), "tokens": float(len(tokens))},
            source=REWRITTEN,
        )

    def generate(self, prompt: Sequence[int], most: int, stop: Stop) -> tuple[list[int], Watcher]:
        """An answer of at most `most` tokens, up to its end, and what it took. Equal prompts give equal answers.

        Raises `Cancelled`, and `Expired` at the deadline: a canvas that is not settled is no answer.
        """
        watcher = Watcher(stop)
        device = self.model.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(SEED)
            made = self.model.generate(
                torch.tensor([list(prompt)], device=device),
                max_new_tokens=most,
                logits_processor=_processors(watcher),
            )
        written = made.sequences[0, len(prompt) :].tolist()
        ends = frozenset(as_ids(self.model.generation_config.eos_token_id))
        length = next((at for at, token in enumerate(written) if token in ends), len(written))
        return written[: min(length, most)], watcher


class Watcher:
    """Sees the logits of every step: ends the work, counts the steps, and keeps how sure the last ones were."""

    def __init__(self, stop: Stop) -> None:
        self._stop, self._left, self.steps = stop, 0, 0
        self._canvases: list[list[float]] = []

    def __call__(self, input_ids: Tensor, scores: Tensor, cur_step: Any = 0) -> Tensor:
        """`scores [1, canvas, vocab]` come back as they are; `cur_step` counts down to 1 in each canvas."""
        self._stop.check()
        if self._stop.expired:
            raise Expired
        self.steps += 1
        if int(cur_step) >= self._left:
            self._canvases.append([])
        self._left = int(cur_step)
        self._canvases[-1] = scores[0].float().log_softmax(-1).amax(-1).tolist()
        return scores

    @property
    def log_probs(self) -> list[float]:
        """Of the likeliest token at each place of the answer, as its canvas's last step saw it."""
        return [one for canvas in self._canvases for one in canvas]


def _processors(watcher: Watcher) -> Any:
    from transformers import LogitsProcessor, LogitsProcessorList

    class Step(LogitsProcessor):
        def __call__(self, input_ids: Tensor, scores: Tensor, cur_step: Any = 0) -> Tensor:
            return watcher(input_ids, scores, cur_step)

    return LogitsProcessorList([Step()])


def _load_weights(kind: Any, folder: Path, device: torch.device) -> Any:
    """The model from safetensors alone, whole. Raises `ModelError`."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model, told = kind.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.bfloat16 if device.type == "cuda" else "auto",
            output_loading_info=True,
        )
    except Exception as error:
        raise ModelError(f"{folder} cannot be loaded as DiffusionGemma: {error}") from error
    finally:
        if shown:
            logging.enable_progress_bar()
    for wrong in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if names := sorted(map(str, told.get(wrong) or [])):
            raise ModelError(
                f"weights in {folder} do not fit DiffusionGemma: "
                f"{wrong.replace('_', ' ')} such as {', '.join(names[:3])}"
            )
    return model.eval().to(device)
