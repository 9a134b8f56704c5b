"""The predictor: which one, loading it, and asking it.

Responsible for turning the settings into a predictor and for how sure an answer must be. Runs in
the worker thread; torch is imported here and no earlier. Knows nothing of LSP.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsp_server.settings import RemoteChoice, Settings
from model.answer import answer
from model.feedback import data_folder
from model.library import EMBEDDED, Choice, chosen, load
from model.protocol import Mode, Prediction, Predictor, Request, Stop

SCRIPT_VARIABLE = "REDRAFT_SCRIPT"
_SCRIPTED = "scripted:"

THRESHOLDS = {"eager": 0.25, "balanced": 0.5, "quiet": 0.75}
"""Least confidence per `gate`, for a predictor that does not bring its own."""
_EXPLICIT_SHARE = 0.25
"""An explicit request is content with this share of the threshold."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The settings that decide which predictor is loaded."""

    model: str = EMBEDDED
    device: str = "auto"
    threads: int = 0
    context_tokens: int = 0
    remote: RemoteChoice | None = None

    @classmethod
    def of(cls, settings: Settings) -> ModelChoice:
        if settings.backend == "remote":
            return cls(context_tokens=settings.context_tokens, remote=settings.remote)
        return cls(settings.model, settings.device, settings.threads, settings.context_tokens)


def load_predictor(choice: ModelChoice) -> Predictor:
    """Load what the settings ask for. Raises whatever is wrong with it, in words for the user."""
    if choice.remote is not None:
        from lsp_server.remote import load_remote

        return load_remote(choice.remote, choice.context_tokens)
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
        quantize=wanted.quantize,
    )


def describe_backend(predictor: Predictor) -> dict[str, Any]:
    """Who answers, for the status. A predictor that asks others brings `backend`."""
    own = getattr(predictor, "backend", None)
    return dict(own) if isinstance(own, dict) else {"kind": "local"}


def chosen_backend(choice: ModelChoice, state: str, problem: str) -> dict[str, Any]:
    """What the settings choose while there is no predictor, and why it is not used."""
    if choice.remote is None:
        return {"kind": "local"}
    asked = {"kind": "remote", "url": choice.remote.url, "protocol": choice.remote.protocol}
    return {**asked, "state": state, "problem": problem}


def trouble(predictor: Predictor) -> str:
    """What keeps a predictor from answering for now, empty when nothing does."""
    backend = describe_backend(predictor)
    return "" if backend.get("state", "closed") == "closed" else str(backend.get("problem", ""))


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
