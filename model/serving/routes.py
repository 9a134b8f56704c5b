"""FIM and edits, and what tells of the service: models, health, metrics, feedback.

Responsible for these paths: a body in, an answer or a stream out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import PlainTextResponse, Response

from model.serving import described, wire
from model.serving.answers import Answer, fenced
from model.serving.described import FAULTS, answered
from model.serving.errors import Json, ServiceError
from model.serving.metrics import CONTENT_TYPE
from model.serving.prompts import PromptError, parse
from model.serving.service import CHAT, EDITS, FIM, Service, fault
from model.serving.streams import DONE, event, event_stream, in_lines

router = APIRouter(responses=FAULTS, default_response_class=Json)


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(service_of)]
Piece = Callable[[str | None, str | None, bool], dict[str, Any]]
"""A choice of a stream: some text, how it ended, whether it is the first."""


def text_piece(text: str | None, finish: str | None, first: bool) -> dict[str, Any]:
    return wire.text_choice(text or "", finish)


def delta_piece(text: str | None, finish: str | None, first: bool) -> dict[str, Any]:
    return wire.delta_choice(text, finish, first=first)


@router.post(
    FIM,
    operation_id="fim",
    tags=["completions"],
    responses=answered(described.TextCompletion, streams=True),
)
async def fim(body: wire.FimBody, request: Request, service: Served) -> Response:
    """What goes between `prompt` and `suffix`."""
    return await fill(service, request, body, body.prompt, body.suffix, body.max_tokens, body.stop)


async def fill(
    service: Service,
    request: Request,
    body: wire.Streamed,
    prefix: str,
    suffix: str | None,
    max_tokens: int | None,
    stops: list[str] | None,
) -> Response:
    """A FIM answer, whichever path asked for it."""
    service.check_model(body.model)
    body.refuse()
    after = "" if suffix in (None, wire.NO_SUFFIX) else suffix
    ends = wire.BLANK_LINE if stops is None else stops
    made = await service.run(
        request, lambda by, stop: by.fim(prefix, after or "", max_tokens, ends, stop)
    )
    id = wire.new_id()
    _account(service, FIM, made)
    if made.prediction.edits:
        service.ledger.sent(id, "fim", "", made.prediction)
    if not body.stream:
        choices = [wire.text_choice(made.text, made.finish)]
        return Json(_whole(service, id, "text_completion", choices, made), headers=_verdict(made))
    events = _pieces(service, id, "text_completion", made, made.text, text_piece, body.with_usage)
    return event_stream(events, _verdict(made))


@router.post(
    EDITS,
    operation_id="edit",
    tags=["completions"],
    responses=answered(described.EditCompletion, streams=True),
)
async def edit(body: wire.EditBody, request: Request, service: Served) -> Response:
    """The region of the edit prompt, written anew, in a fence without a language."""
    service.check_model(body.model)
    body.refuse()
    try:
        prompt = parse(body.prompt(strict=service.options.strict))
    except PromptError as error:
        raise fault(error) from None
    made = await service.run(request, lambda by, stop: by.edit(prompt, body.max_tokens, stop))
    id = wire.new_id()
    _account(service, EDITS, made)
    text = made.text
    if made.prediction.edits:
        service.ledger.sent(id, "next_edit", prompt.path, made.prediction)
    else:
        agent = request.headers.get("user-agent", "")
        text = service.no_edit_text(made, reads_none=body.reads_none(agent))
    content = fenced(text)
    if not body.stream:
        choices = [wire.message_choice(content, made.finish)]
        return Json(_whole(service, id, "edit.completion", choices, made), headers=_verdict(made))
    kind = "chat.completion.chunk"
    return event_stream(
        _pieces(service, id, kind, made, content, delta_piece, body.with_usage), _verdict(made)
    )


def _whole(
    service: Service, id: str, kind: str, choices: list[dict[str, Any]], made: Answer
) -> dict[str, Any]:
    used = wire.usage(made.prompt_tokens, made.tokens, made.cached_tokens)
    more = {"usage": used, "warning": None, "redraft": made.verdict}
    return wire.envelope(id, kind, service.name, choices, **more)


async def _pieces(
    service: Service,
    id: str,
    kind: str,
    made: Answer,
    text: str,
    piece: Piece,
    with_usage: bool,
) -> AsyncIterator[str]:
    """A text that is known already, line by line; then how it ended, usage if it was asked for, and the end."""

    def chunks() -> Iterator[dict[str, Any]]:
        for number, line in enumerate(in_lines(text)):
            yield wire.envelope(id, kind, service.name, [piece(line, None, number == 0)])
        ended = [piece(None, made.finish, False)]
        yield wire.envelope(id, kind, service.name, ended, redraft=made.verdict)
        if with_usage:
            used = wire.usage(made.prompt_tokens, made.tokens, made.cached_tokens)
            yield wire.envelope(id, kind, service.name, [], usage=used)

    for chunk in chunks():
        yield event(chunk)
    yield DONE


def _verdict(made: Answer) -> dict[str, str]:
    """What the gate thinks, for clients that look at headers."""
    verdict = made.verdict
    return {
        "X-Redraft-Confidence": f"{verdict['confidence']:.4f}",
        "X-Redraft-Shown": "true" if verdict["shown"] else "false",
        "X-Redraft-Suppressed": verdict["suppressed"] or "",
    }


def _account(service: Service, endpoint: str, made: Answer) -> None:
    service.metrics.used(made.prompt_tokens, made.cached_tokens, made.tokens)
    service.metrics.verdicts.labels(endpoint, str(made.prediction.shown).lower()).inc()


@router.get(
    "/v1/models", operation_id="models", tags=["models"], responses=answered(described.ModelList)
)
@router.get(
    FIM + "/models",
    operation_id="fim_models",
    tags=["models"],
    responses=answered(described.ModelList),
)
@router.get(
    EDITS + "/models",
    operation_id="edit_models",
    tags=["models"],
    responses=answered(described.ModelList),
)
async def models(service: Served) -> Response:
    """The model that is served."""
    return Json({"object": "list", "data": [service.model_card()]})


@router.get(
    CHAT + "/models",
    operation_id="chat_models",
    tags=["models"],
    responses=answered(described.ModelList),
)
async def chat_models(service: Served) -> Response:
    """The model that is served, if it was made for chat."""
    found = [service.model_card()] if service.author.chats else []
    return Json({"object": "list", "data": found})


@router.get(
    "/v1/models/{name:path}",
    operation_id="model",
    tags=["models"],
    responses=answered(described.Model),
)
async def model(name: str, service: Served) -> Response:
    """One model by its name."""
    service.check_model(name)
    return Json(service.model_card())


@router.post(
    "/feedback", operation_id="feedback", tags=["feedback"], responses=answered(described.Heard)
)
async def feedback(body: wire.FeedbackBody, service: Served) -> Response:
    """What became of an answer; the gate learns from it (`redraft tune`)."""
    if not service.ledger.heard(body.request_id, body.user_action):
        raise ServiceError(404, "no recent answer has this id", "request_not_found", "request_id")
    service.metrics.feedback.labels(body.user_action).inc()
    return Json({"status": "ok"})


@router.get(
    "/health", operation_id="health", tags=["service"], responses=answered(described.Health)
)
async def health(service: Served) -> Response:
    """Whether the service can answer."""
    return Json({"status": "ok", "model": service.name, "pending": service.engine.pending})


@router.get(
    "/metrics",
    operation_id="metrics",
    tags=["service"],
    response_class=PlainTextResponse,
)
async def metrics(service: Served) -> Response:
    """Counters, for Prometheus."""
    return Response(service.metrics.page(), media_type=CONTENT_TYPE)
