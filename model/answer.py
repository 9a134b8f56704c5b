"""From a predictor to an answer that may be shown.

Responsible for what every caller needs around `Predictor.predict`: texts that no model should see
(binary, huge, a line without end), line ends (the model sees only `\\n`, the edits come back with
the document's own), the structural filters, the confidence threshold, and the time it took. Knows
nothing of documents, settings or how a prediction is made.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from dataclasses import replace

from diffing.edits import Edit, minimal_edits, shrink
from diffing.policy import content_reason
from model.filters import suppress_reason
from model.protocol import Prediction, Predictor, Request, Snippet, Stop

UNSURE = "low-confidence"
"""The reason for silence that the gate gives."""

_FOREIGN_EOL = re.compile(r"\r\n?")


def answer(predictor: Predictor, request: Request, stop: Stop, *, threshold: float) -> Prediction:
    """Ask, filter, judge. Edits count code points of `request.text`, whatever its line ends.

    `shown` is set exactly when `suppressed` is None. Raises `Cancelled` when `stop` says so, and
    whatever the predictor raises.
    """
    started = time.perf_counter()
    if unfit := content_reason(request.text):
        return Prediction(suppressed=unfit, model=predictor.name)
    newlines = Newlines(request.text)
    plain = newlines.normalised(request)
    prediction = predictor.predict(plain, stop)
    stop.check()
    reason = _reason(plain, prediction, stop, threshold)
    edits = [newlines.restored(edit) for edit in prediction.edits]
    return replace(
        prediction,
        edits=tuple(e for edit in edits for e in _minimal(request.text, edit)),
        shown=reason is None,
        suppressed=reason,
        latency_ms=(time.perf_counter() - started) * 1000,
        model=prediction.model or predictor.name,
    )


def _minimal(text: str, edit: Edit) -> tuple[Edit, ...]:
    """The edit without what it leaves as it was, at its ends and between the lines it replaces."""
    small = shrink(text, edit)
    if small is None:
        return ()
    removed = text[small.start : small.end]
    if "\n" not in removed and "\r" not in removed:
        return (small,)
    parts = minimal_edits(removed, small.new_text)
    return tuple(Edit(e.start + small.start, e.end + small.start, e.new_text) for e in parts)


def _reason(request: Request, prediction: Prediction, stop: Stop, threshold: float) -> str | None:
    if prediction.suppressed is not None:
        return prediction.suppressed
    if not prediction.edits:
        return "deadline" if stop.expired else "no-prediction"
    if fault := suppress_reason(request, prediction):
        return fault
    return UNSURE if prediction.confidence < threshold else None


class Newlines:
    """The line ends of one text: how to hide them from the model and how to bring them back."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.eol = dominant_eol(text)
        # Offsets, in the normalised text, of each line feed that stands for "\r\n".
        self._pairs = [
            match.start() - before
            for before, match in enumerate(re.finditer(r"\r\n", text) if "\r" in text else ())
        ]

    def normalised(self, request: Request) -> Request:
        """The same request with `\\n` as the only line end."""
        if "\r" not in self.text and not any("\r" in diff for diff in request.history):
            return replace(request, related=tuple(map(_plain_snippet, request.related)))
        region = request.region
        return replace(
            request,
            text=_FOREIGN_EOL.sub("\n", self.text),
            cursor=self._inwards(request.cursor),
            region=None if region is None else (self._inwards(region[0]), self._inwards(region[1])),
            history=tuple(diff.replace("\r\n", "\n") for diff in request.history),
            related=tuple(map(_plain_snippet, request.related)),
        )

    def restored(self, edit: Edit) -> Edit:
        """An edit of the normalised text as an edit of the original."""
        new_text = _FOREIGN_EOL.sub("\n", edit.new_text)
        if self.eol != "\n":
            new_text = new_text.replace("\n", self.eol)
        return Edit(self._outwards(edit.start), self._outwards(edit.end), new_text)

    def _outwards(self, offset: int) -> int:
        return offset + bisect_left(self._pairs, offset)

    def _inwards(self, offset: int) -> int:
        # A cursor between "\r" and "\n" is before the line end.
        return offset - self.text.count("\r\n", 0, offset + 1 if self._splits(offset) else offset)

    def _splits(self, offset: int) -> bool:
        return self.text[max(offset - 1, 0) : offset + 1] == "\r\n"


def dominant_eol(text: str) -> str:
    """The line end that most lines of the text have: `\\n`, `\\r\\n` or `\\r`."""
    pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    return max(counts, key=lambda eol: counts[eol])


def _plain_snippet(snippet: Snippet) -> Snippet:
    if "\r" not in snippet.text:
        return snippet
    return Snippet(snippet.path, _FOREIGN_EOL.sub("\n", snippet.text))
