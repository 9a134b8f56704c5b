"""What the user can ask the server about itself.

Responsible for counting, for the last reason for silence, and for the two messages that carry it:
the answer to `redraft/status` and the notification `redraft/didChangeStatus`. Knows nothing of how
predictions are made.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lsp_server import __version__
from model.protocol import Mode, Prediction

REQUEST = "redraft/status"
NOTIFICATION = "redraft/didChangeStatus"

_KIND = {"loading": "Normal", "ready": "Normal", "error": "Error", "disabled": "Inactive"}


@dataclass
class Status:
    """Counters and the state of the model: loading, ready, error or disabled.

    `trouble` is what keeps a model that is ready from answering for now. `loaded` is set while nothing is loading,
    whatever came of it.
    """

    notify: Callable[[str, Any], None]
    state: str = "loading"
    message: str = ""
    trouble: str = ""
    model: str = ""
    device: str = ""
    busy: bool = False
    last_reason: str | None = None
    last_prediction: dict[str, Any] | None = None
    requests: int = 0
    predictions: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _sent: tuple[bool, str, str] | None = None

    def silent(self, reason: str) -> None:
        """A request ended without a suggestion."""
        self.last_reason = reason
        self.reasons[reason] += 1

    def spoke(self, source: str) -> None:
        """A request ended with a suggestion, from the model or a live one."""
        self.last_reason = None
        self.reasons[source] += 1

    def predicted(self, prediction: Prediction, mode: Mode) -> None:
        """The model has answered, whatever becomes of it."""
        self.last_prediction = {
            "mode": mode,
            "confidence": round(prediction.confidence, 4),
            "latencyMs": round(prediction.latency_ms, 2),
            "forwards": prediction.forwards,
            "tokens": prediction.tokens,
            "promptTokens": prediction.features.get("prompt_tokens"),
            "cachedTokens": prediction.features.get("cached_tokens"),
            "model": prediction.model,
            "suppressed": prediction.suppressed,
        }

    def change(self, state: str, message: str = "", model: str = "", device: str = "") -> None:
        self.state, self.message, self.trouble = state, message, ""
        if state != "disabled":
            self.model, self.device = model, device
        self.busy = state == "loading"
        if self.busy:
            self.loaded.clear()
        else:
            self.loaded.set()
        self.publish()

    def set_busy(self, busy: bool) -> None:
        self.busy = busy
        self.publish()

    def set_trouble(self, words: str) -> None:
        self.trouble = words if self.state == "ready" else ""
        self.publish()

    def publish(self) -> None:
        """Tell the client, if there is anything new to tell."""
        kind = "Warning" if self.trouble else _KIND[self.state]
        now = (self.busy, kind, self.trouble or self.message)
        if now != self._sent:
            self._sent = now
            busy, kind, message = now
            self.notify(NOTIFICATION, {"busy": busy, "kind": kind, "message": message})

    def report(
        self, *, pending: int, superseded: int, feedback: str, backend: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The answer to `redraft/status`."""
        last = self.last_prediction or {"latencyMs": None}
        return {
            "version": __version__,
            "state": self.state,
            "message": self.trouble or self.message,
            "model": self.model,
            "device": self.device,
            "backend": dict(backend),
            "busy": self.busy,
            "pending": pending,
            "superseded": superseded,
            "lastReason": self.last_reason,
            "lastLatencyMs": last["latencyMs"],
            "lastPrediction": self.last_prediction,
            "requests": self.requests,
            "predictions": self.predictions,
            "counts": dict(self.reasons),
            "outcomes": dict(self.outcomes),
            "feedback": feedback,
        }
