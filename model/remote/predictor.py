"""The remote predictor: a service elsewhere answers, and a troubled one is left alone.

Responsible for one request from question to prediction: the breaker, one more attempt where it may help, and what a
failure means for the user. Knows nothing of settings, of consent or of documents.
"""

from __future__ import annotations

import logging
import random
import time
from pathlib import Path
from typing import Any

from model.features import describe
from model.gate import Gate, load_for_user
from model.protocol import Cancelled, Prediction, Request, Stop, Unavailable
from model.remote.link import Link, RemoteError
from model.remote.pacing import Breaker, RetryBudget
from model.remote.wire import AnswerError, Asked, Read, Wire

logger = logging.getLogger(__name__)

SOURCE = "remote"
GATE = Path(__file__).parent
"""Holds the gate of services. It knows nothing, and shows all, until it is tuned by feedback: a service tells no
probabilities, and the gate of the embedded model was fitted on that model's."""
LEAST_ATTEMPT_S, MOST_PAUSE_S = 0.1, 5.0
JITTER_S = 0.05


def gate_for(model: str, tuned: Path | None) -> Gate:
    """The gate for a service's model; `tuned` is a folder that may hold one of the user's own."""
    return load_for_user(GATE, gate_name(model), tuned)


def gate_name(model: str) -> str:
    """How a tuned gate of a service's model is filed, apart from those of local models."""
    return f"{SOURCE} {model}"


class RemotePredictor:
    """Answers by asking a service. The gate judges by what the text tells of an answer."""

    def __init__(
        self,
        link: Link,
        wire: Wire,
        gate: Gate | None = None,
        breaker: Breaker | None = None,
        budget: RetryBudget | None = None,
    ) -> None:
        self.link, self.wire = link, wire
        self.gate = gate or gate_for(wire.model, None)
        self.breaker, self.retries = breaker or Breaker(), budget or RetryBudget()
        self.name = wire.model
        self.device = link.url

    def threshold(self, mode: str, setting: str) -> float:
        """The least confidence to show under `eager`, `balanced` or `quiet`."""
        return self.gate.threshold(mode, setting)

    @property
    def backend(self) -> dict[str, Any]:
        """Where requests go and how the service is doing, for the status."""
        return {
            "kind": "remote",
            "url": self.link.url,
            "protocol": self.wire.protocol,
            "state": self.breaker.state,
            "problem": self.breaker.problem,
            "pauseS": round(self.breaker.pause_s, 1),
        }

    def predict(self, request: Request, stop: Stop) -> Prediction:
        """The service's answer. Raises `Cancelled`, and `Unavailable` once for each episode of trouble."""
        started = time.perf_counter()
        stop.check()
        asked = self.wire.ask(request)
        if asked is None:
            return self._silence("not-offered")
        if not self.breaker.admits():
            return self._silence("remote-resting")
        try:
            read = self._answered(asked, stop)
        except Cancelled:
            self.breaker.withdrawn()
            raise
        except RemoteError as error:
            return self._failed(error, stop)
        except BaseException:
            self.breaker.withdrawn()
            raise
        self.breaker.succeeded()
        return self._prediction(request, read, (time.perf_counter() - started) * 1000)

    def close(self) -> None:
        self.link.close()

    def _answered(self, asked: Asked, stop: Stop) -> Read:
        """What the service says, after a second attempt where that may help, the budget allows it and time is left."""
        self.retries.asked()
        try:
            return self._once(asked, stop)
        except RemoteError as error:
            pause = error.wait_s or random.uniform(JITTER_S, 2 * JITTER_S)
            soon = pause <= MOST_PAUSE_S and pause + LEAST_ATTEMPT_S <= stop.remaining
            if not (error.retryable and soon and self.retries.take()):
                raise
            logger.info("one more attempt: %s", error)
            _pause(pause, stop)
            return self._once(asked, stop)

    def _once(self, asked: Asked, stop: Stop) -> Read:
        answer = self.link.post(asked.path, asked.body, stop)
        try:
            return self.wire.read(asked, answer)
        except AnswerError as error:
            raise RemoteError(f"{self.link.url}: {error}") from error

    def _failed(self, error: RemoteError, stop: Stop) -> Prediction:
        logger.info("no answer: %s", error)
        if self.breaker.failed(str(error), lasting=error.lasting, least_s=error.wait_s):
            logger.warning("the remote backend is in trouble: %s", error)
            raise Unavailable(f"the remote backend is in trouble: {error}") from error
        return self._silence("deadline" if stop.expired else "remote-failed")

    def _silence(self, reason: str) -> Prediction:
        return Prediction(suppressed=reason, model=self.name, source=SOURCE)

    def _prediction(self, request: Request, read: Read, latency_ms: float) -> Prediction:
        features: dict[str, float] = {}
        if read.edits:
            features = {**describe(request, read.edits, {}), **request.signals}
        return Prediction(
            edits=read.edits,
            confidence=self.gate.probability(SOURCE, features) if read.edits else 0.0,
            suppressed="truncated" if read.truncated and not read.edits else None,
            truncated=read.truncated,
            latency_ms=latency_ms,
            tokens=read.tokens,
            model=self.name,
            features={**features, "remote latency": latency_ms},
            source=SOURCE,
        )


def _pause(seconds: float, stop: Stop) -> None:
    """Wait, unless the request is withdrawn meanwhile: raises `Cancelled` then."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        stop.check()
        time.sleep(min(left, 0.01))
    stop.check()
