"""The one door between the server and whatever predicts.

Responsible for the shapes of a question (`Request`), of its answer (`Prediction`) and of the signal that ends the
work early (`Stop`). It knows nothing of tensors, tokens, LSP or files: everything here is plain text and numbers, so
that a scripted predictor, a local model and a remote service are interchangeable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from diffing.edits import Edit

Mode = Literal["fim", "next_edit"]


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text of another file that bears on the request, as it is now."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question about one document.

    `cursor` is a code point offset into `text`. `history` holds unified diffs, oldest first, over any file of the
    workspace; `text` already contains them. `path` is relative to the workspace where there is one. `signals` are
    numbers that the caller knows of the user and that a gate may weigh, such as how fast he types. Edits outside of
    `region`, code point offsets into `text`, are of no use to the caller; None wants them wherever they are.
    """

    mode: Mode
    path: str
    text: str
    cursor: int
    language: str = ""
    history: tuple[str, ...] = ()
    related: tuple[Snippet, ...] = ()
    diagnostics: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict, hash=False)
    max_tokens: int = 64
    max_lines: int = 12
    region: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.cursor <= len(self.text):
            raise ValueError(
                f"cursor {self.cursor} is outside the text of {len(self.text)} characters"
            )

    def wants(self, edit: Edit) -> bool:
        """Whether the caller has a use for an edit at this place. Lines that are put right behind the region count as
        put at its end."""
        if self.region is None:
            return True
        first, last = self.region
        if edit.start == edit.end == last + 1 and self.text[last] == "\n":
            return edit.new_text.endswith("\n")
        return first <= edit.start <= edit.end <= last


class Cancelled(Exception):
    """The request was superseded or withdrawn; nobody waits for the answer."""


class Expired(Exception):
    """The deadline passed before anything could be decided; what was encoded stays cached for the next request."""


class Unavailable(Exception):
    """The predictor cannot answer for some time, and paces itself; the message is for the user.

    Raised once for each episode of trouble. The requests after it get a `Prediction` with `suppressed` set.
    """


class Stop:
    """Cancellation and deadline, looked at before every forward pass.

    Cancellation throws the work away (`check` raises `Cancelled`); a passed deadline ends it with what is decided so
    far (`expired`). Times are seconds of `time.monotonic`.
    """

    def __init__(self, timeout: float | None = None) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._calls: list[Callable[[], object]] = []
        self.deadline = None if timeout is None else time.monotonic() + timeout

    def cancel(self) -> None:
        with self._lock:
            self._event.set()
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    def on_cancel(self, call: Callable[[], object]) -> None:
        """Have `call` made by whoever cancels, in that thread; at once when it has happened already.

        For work that waits for something and cannot look at `cancelled` meanwhile.
        """
        with self._lock:
            if not self.cancelled:
                self._calls.append(call)
                return
        call()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    @property
    def remaining(self) -> float:
        """Seconds until the deadline; infinite without one."""
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()

    @property
    def expired(self) -> bool:
        return self.remaining <= 0

    def check(self) -> None:
        """Raise `Cancelled` if the request was withdrawn."""
        if self._event.is_set():
            raise Cancelled


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one request.

    `edits` are sorted, do not overlap and count code points of `Request.text`; empty means "no edit". `shown` says
    whether it is good enough to be seen, `suppressed` names the reason when it is not. `confidence` is the calibrated
    probability that the user would accept it. `forwards` counts passes of the model after the context was encoded.
    `truncated` is set when the answer was cut by a token limit. `where` are lines of `Request.text` (from 0) with the
    probability that the next edit is there, most likely first; what is missing to 1 is "nowhere" and lines not named.
    `features` are what `confidence` was made of and `source` names the maker of the edits: feedback is kept with both.
    """

    edits: tuple[Edit, ...] = ()
    confidence: float = 0.0
    shown: bool = False
    suppressed: str | None = None
    truncated: bool = False
    latency_ms: float = 0.0
    forwards: int = 0
    tokens: int = 0
    model: str = ""
    features: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    where: tuple[tuple[int, float], ...] = ()


@runtime_checkable
class Predictor(Protocol):
    """Anything that answers requests. `predict` raises `Cancelled` when `stop` says so."""

    name: str

    def predict(self, request: Request, stop: Stop) -> Prediction: ...


@runtime_checkable
class Preparing(Predictor, Protocol):
    """A predictor for which work before anyone asks is worth its while and costs nobody else anything.

    `prepare` makes the answer to a completion at this place, or a key or two further on, come sooner.
    """

    def prepare(self, request: Request, stop: Stop) -> None: ...
