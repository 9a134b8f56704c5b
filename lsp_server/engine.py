"""The predictor: which one, loading it, and asking it.

Responsible for turning the settings into a predictor and for how sure an answer must be. Runs in
the worker thread; torch is imported here and no earlier. Knows nothing of LSP.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lsp_server.settings import Settings
from model.answer import answer
from model.feedback import data_folder
from model.library import EMBEDDED, Choice, chosen, load
from model.protocol import Mode, Prediction, Predictor, Request, Stop

SCRIPT_VARIABLE = "REDRAFT_SCRIPT"
_SCRIPTED = "scripted:"

THRESHOLDS = {"eager": 0.25, "balanced": 0.5, "quiet": 0.75}
"""Least confidence per `gate`, for a predictor that does not bring its own."""
_EXPLICIT_SHARE = 0.5
"""An explicit request is content with this share of the threshold."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The settings that decide which predictor is loaded."""

    model: str = EMBEDDED
    device: str = "auto"
    threads: int = 0
    context_tokens: int = 0

    @classmethod
    def of(cls, settings: Settings) -> ModelChoice:
        return cls(settings.model, settings.device, settings.threads, settings.context_tokens)


def load_predictor(choice: ModelChoice) -> Predictor:
    """Load what the settings ask for. Raises whatever is wrong with it, in words for the user."""
    name = choice.model
    if name == EMBEDDED and (script := os.environ.get(SCRIPT_VARIABLE)):
        name = _SCRIPTED + script
    if name.startswith(_SCRIPTED):
        from model.scripted import ScriptedPredictor

        return ScriptedPredictor.load(Path(name.removeprefix(_SCRIPTED)).expanduser())
    wanted = chosen() if name == EMBEDDED else Choice(name)
    return load(
        wanted.model,
        device=choice.device,
        threads=choice.threads or None,
        context_tokens=choice.context_tokens or None,
        tuned=data_folder(),
        instruct=wanted.instruct,
    )


def threshold(predictor: Predictor, mode: Mode, gate: str, *, invoked: bool) -> float:
    """How sure an answer must be to be shown.

    A predictor may bring `threshold(mode, gate)`, tuned for its own confidence.
    """
    own = getattr(predictor, "threshold", None)
    least = float(own(mode, gate)) if callable(own) else THRESHOLDS[gate]
    return least * _EXPLICIT_SHARE if invoked else least


def ask(
    predictor: Predictor,
    make_request: Callable[[], Request],
    stop: Stop,
    *,
    least: float,
) -> Prediction:
    """Build the request and answer it, here in the worker. Raises `Cancelled` when withdrawn."""
    stop.check()
    return answer(predictor, make_request(), stop, threshold=least)
