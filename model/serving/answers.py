"""From a prediction to the text that the wire wants.

Responsible for FIM (what goes at the cursor, cut at stop strings and at a number of tokens) and for edits (the region
written anew). Answers are the model's, however unsure it is: the client asked. What the gate thinks of them is told
beside. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diffing.edits import Edit, apply, shrink
from diffing.policy import content_reason
from model.answer import answer
from model.protocol import Mode, Prediction, Predictor, Request, Stop
from model.serving.author import Author, before_stop
from model.serving.prompts import EditPrompt
from model.serving.tokens import Meter

MAX_LINES = 24
MOST_WRITTEN = 512
LEAST_WRITTEN = 32
"""Fewer tokens than this make no line, and a model that ends at a line has no answer then; its text is cut instead."""
FIM_TOKENS, EDIT_TOKENS = 512, 256

Threshold = Callable[[Mode], float]


class UnfitText(ValueError):
    """A text that no model should see: binary, huge, or with lines without end; the message is the reason's name."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A text, how it ended (`stop` or `length`), and the prediction that it was made of."""

    text: str
    finish: str
    prediction: Prediction
    prompt_tokens: int
    tokens: int

    @property
    def cached_tokens(self) -> int:
        return int(self.prediction.features.get("cached_tokens", 0))

    @property
    def verdict(self) -> dict[str, Any]:
        """What the gate thinks of it, for clients that want to know."""
        made = self.prediction
        return {
            "confidence": round(made.confidence, 4),
            "shown": made.shown,
            "suppressed": made.suppressed,
            "source": made.source,
            "forwards": made.forwards,
            "latency_ms": round(made.latency_ms, 1),
        }


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers FIM and edit requests with one predictor."""

    predictor: Predictor
    author: Author
    meter: Meter
    threshold: Threshold

    def fim(
        self, prefix: str, suffix: str, max_tokens: int | None, stops: Sequence[str], stop: Stop
    ) -> Answer:
        """What goes between `prefix` and `suffix`. Raises `UnfitText` and `Cancelled`."""
        most = min(max_tokens or FIM_TOKENS, MOST_WRITTEN)
        request = Request(
            mode="fim",
            path="",
            text=prefix + suffix,
            cursor=len(prefix),
            max_tokens=max(most, LEAST_WRITTEN),
            max_lines=MAX_LINES,
        )
        made = self._predict(request, stop)
        text = inserted(request, made.edits)
        if not text and prefix.strip() and not stop.expired:
            written = self.author.complete(prefix, most, stops, stop)
            text, made = written.text, replace(made, source="continuation", confidence=0.0)
        whole, text = text, before_stop(text, stops)
        short = self.meter.first(text, most)
        cut = short != text or (made.truncated and text == whole)
        finish = "length" if cut else "stop"
        return self._answer(short, finish, made, prefix + suffix)

    def edit(self, prompt: EditPrompt, max_tokens: int | None, stop: Stop) -> Answer:
        """The region written anew; `text` is the region as it stands where nothing is to be changed."""
        most = min(max_tokens or EDIT_TOKENS, MOST_WRITTEN)
        request = prompt.request(max(most, LEAST_WRITTEN))
        if prompt.secret:
            made = Prediction(suppressed="secret-file", model=self.predictor.name)
        else:
            made = self._predict(request, stop)
        edits = inside(request, made.edits)
        made = replace(made, edits=edits)
        if not edits and made.suppressed is None:
            made = replace(made, shown=False, suppressed="outside-region")
        text = rewritten(prompt, edits)
        return self._answer(text, "length" if made.truncated else "stop", made, prompt.text)

    def _predict(self, request: Request, stop: Stop) -> Prediction:
        if unfit := content_reason(request.text):
            raise UnfitText(unfit)
        least = self.threshold(request.mode)
        return answer(self.predictor, request, stop, threshold=least)

    def _answer(self, text: str, finish: str, made: Prediction, asked: str) -> Answer:
        seen = int(made.features.get("prompt_tokens", 0))
        return Answer(text, finish, made, seen or self.meter.count(asked), self.meter.count(text))


def inserted(request: Request, edits: Sequence[Edit]) -> str:
    """What the edits put at the cursor; what they change elsewhere has no place in a FIM answer."""
    small = (shrink(request.text, edit) for edit in edits)
    return "".join(
        edit.new_text for edit in small if edit and edit.start == edit.end == request.cursor
    )


def inside(request: Request, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits of the region. Lines that are put right behind its last line end are put before it instead."""
    assert request.region is not None
    first, last = request.region
    moved = (_before_the_end(request.text, last, edit) for edit in edits)
    return tuple(edit for edit in moved if first <= edit.start <= edit.end <= last)


def _before_the_end(text: str, last: int, edit: Edit) -> Edit:
    end = text[last : edit.start]
    if edit.start == edit.end and end in ("\n", "\r\n") and edit.new_text.endswith(end):
        return Edit(last, last, end + edit.new_text[: -len(end)])
    return edit


def rewritten(prompt: EditPrompt, edits: Sequence[Edit]) -> str:
    """The region with the edits in it."""
    first = prompt.region[0]
    moved = [Edit(edit.start - first, edit.end - first, edit.new_text) for edit in edits]
    return apply(prompt.region_text, moved)


def fenced(text: str) -> str:
    """A code block without a language: one client takes the first line for code unless it is just the fence."""
    return f"```\n{text}\n```"
