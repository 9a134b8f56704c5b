"""The service behind the routes: what it is made of, and how work gets done for a request.

Responsible for putting predictor, queue, ledger and counters together, and for what the faults of each are on the wire.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request as HttpRequest

from model.grammar import SchemaError
from model.protocol import Cancelled, Expired, Predictor, Stop
from model.serving.answers import MOST_WRITTEN, Answer, Answerer, Threshold, UnfitText
from model.serving.author import Author, NoChat, TooLong
from model.serving.authors import author_for
from model.serving.engine import Busy, Engine, Job, Overdue
from model.serving.errors import ServiceError
from model.serving.ledger import Ledger
from model.serving.metrics import Metrics
from model.serving.patience import patience
from model.serving.prompts import PromptError
from model.serving.security import Guard
from model.serving.sessions import session_key
from model.serving.streams import ClientGone, watched
from model.serving.tokens import Meter
from model.together import side_by_side, together_on

T = TypeVar("T")
Work = Callable[[Answerer, Stop], T]
"""What is done for a request, by one of the answerers that work side by side."""

ALIASES = ("redraft", "mercury")
"""Beginnings of model names that mean the model that is served, whatever its own name is."""

SHAPES = ("json_mode", "structured_outputs", "tools")
"""What can be asked of the answers of a model that chats."""

EDITS, FIM, CHAT, TEXT = (
    "/v1/edit/completions",
    "/v1/fim/completions",
    "/v1/chat/completions",
    "/v1/completions",
)


@dataclass(frozen=True, slots=True)
class Options:
    """How a service behaves. `no_edit` is `none`, `unchanged`, or `auto`: by what the client is known to understand.

    `parallel` requests are worked on side by side, where the predictor lends itself to it.
    """

    guard: Guard = field(default_factory=Guard)
    waiting: int = 16
    timeout: float = 30.0
    strict: bool = False
    no_edit: str = "auto"
    parallel: int = 1
    feedback: Path | None = None


def even_odds(_: str) -> float:
    """The threshold for predictors that do not bring their own."""
    return 0.5


class Service:
    """One predictor, served."""

    def __init__(
        self, predictor: Predictor, options: Options, threshold: Threshold = even_odds
    ) -> None:
        self.predictor, self.options = predictor, options
        self.name = predictor.name
        self.started = int(time.time())
        together = together_on(getattr(predictor, "device", "cpu"))
        answerers = [
            Answerer(one, author_for(one), Meter(one), threshold)
            for one in side_by_side(predictor, options.parallel, together)
        ]
        self.author: Author = answerers[0].author
        self.engine = Engine(answerers, together, waiting=options.waiting, timeout=options.timeout)
        self.ledger = Ledger(options.feedback)
        self.metrics = Metrics(lambda: self.engine.pending)

    def close(self) -> None:
        self.engine.close()
        self.ledger.close()

    def check_model(self, name: str) -> None:
        """Raise unless `name` means the model that is served."""
        if name != self.name and not name.lower().startswith(ALIASES):
            raise ServiceError(
                404,
                f"the model {name!r} does not exist here; this service has {self.name!r}",
                "model_not_found",
                "model",
            )

    def submit(self, work: Work[T], patience: float | None = None, session: str = "") -> Job[T]:
        """Queue work; the wire's error when there is no room."""
        try:
            return self.engine.submit(work, patience, session)
        except Busy as error:
            raise ServiceError(
                429,
                str(error),
                "rate_limit_reached",
                headers={"Retry-After": str(error.retry_after)},
            ) from None

    async def run(self, request: HttpRequest, work: Work[T]) -> T:
        """Work for a client that waits for the whole of it. Raises `ServiceError`, and `ClientGone` when it does not
        wait any more."""
        session = session_key(request.headers, await request.body())
        job = self.submit(work, patience(request.headers), session)
        async with watched(request, job):
            return await self.outcome(job)

    async def outcome(self, job: Job[T]) -> T:
        """A job's result, its faults in the words of the wire."""
        try:
            return await job.result()
        except Cancelled:
            raise ClientGone from None
        except Exception as error:
            raise fault(error) from error

    def no_edit_text(self, answer: Answer, *, reads_none: bool) -> str:
        """What says "no edit" to a client."""
        how = self.options.no_edit
        if how == "auto":
            how = "none" if reads_none else "unchanged"
        return "None" if how == "none" else answer.text

    def model_card(self) -> dict[str, Any]:
        """The served model as `/v1/models` lists it."""
        endpoints = [FIM, EDITS, TEXT, *([CHAT] if self.author.chats else [])]
        bundle = getattr(self.predictor, "bundle", None)
        length = 0 if bundle is None else int(bundle.prefixes.max_tokens)
        price = dict.fromkeys(
            ("prompt", "completion", "input_cache_reads", "input_cache_writes"), "0"
        )
        return {
            "id": self.name,
            "object": "model",
            "created": self.started,
            "owned_by": "redraft",
            "name": self.name,
            "description": "Served by Redraft on its own machine.",
            "input_modalities": ["text"],
            "output_modalities": ["text"],
            "context_length": length,
            "max_output_length": MOST_WRITTEN if bundle is not None else 0,
            "pricing": price,
            "supported_sampling_parameters": ["max_tokens", "stop"],
            "supported_features": ["streaming", *(SHAPES if self.author.chats else ())],
            "supported_endpoints": endpoints,
            "datacenters": [],
            "openrouter": None,
        }


def fault(error: Exception) -> ServiceError:
    """What a failure of the work is on the wire. Nothing of a text is told, only what kind of failure it was."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, PromptError):
        return ServiceError(400, str(error), error.code, "messages")
    if isinstance(error, UnfitText):
        return ServiceError(400, f"the text cannot be worked on: {error}", str(error), "prompt")
    if isinstance(error, TooLong):
        return ServiceError(400, str(error), "context_length_exceeded", "prompt")
    if isinstance(error, SchemaError):
        return ServiceError(400, str(error), "invalid_schema", "response_format")
    if isinstance(error, NoChat):
        return ServiceError(400, str(error), "model_not_supported", "model")
    if isinstance(error, Overdue | Expired):
        wait: Mapping[str, str] = {"Retry-After": "1"}
        return ServiceError(503, str(error) or "no answer in time", "timeout", headers=wait)
    return ServiceError(500, f"the model failed ({type(error).__name__})", "model_failed")
