"""A predictor that answers by a function, for tests of the evaluation."""

from __future__ import annotations

from collections.abc import Callable

from diffing.edits import Edit
from model.protocol import Prediction, Request, Stop


class FakePredictor:
    """`choose` gives the edits of a request; `confidence` is the same for all."""

    def __init__(
        self,
        choose: Callable[[Request], tuple[Edit, ...]],
        *,
        name: str = "fake",
        confidence: float = 0.9,
        features: dict[str, float] | None = None,
    ) -> None:
        self.name = name
        self.confidence = confidence
        self.features = features or {}
        self.asked: list[Request] = []
        self._choose = choose

    def predict(self, request: Request, stop: Stop) -> Prediction:
        stop.check()
        self.asked.append(request)
        return Prediction(
            edits=self._choose(request),
            confidence=self.confidence,
            forwards=2,
            tokens=6,
            features=self.features,
        )
