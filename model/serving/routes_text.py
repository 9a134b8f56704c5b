"""Free text: completions and chat, whole, in pieces, or as the canvas looks while it is denoised.

Responsible for these paths. Text goes out as it is decided; with `diffusing` each piece is the whole text as it stands
and replaces the one before, drafts included.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from model.chat import Turn
from model.grammar import ANY_OBJECT, Schema
from model.protocol import Stop
from model.serving import described, wire
from model.serving.answers import Answerer
from model.serving.author import Conversation, Step, Watch, Written
from model.serving.described import FAULTS, answered
from model.serving.engine import Job
from model.serving.errors import Json, ServiceError, unsupported
from model.serving.fim_tags import split_fim
from model.serving.prompts import PromptError
from model.serving.routes import Piece, Served, delta_piece, fill, text_piece
from model.serving.service import CHAT, TEXT, Service, fault
from model.serving.sessions import session_key
from model.serving.streams import DONE, ClientGone, event, event_stream, watched
from model.serving.tools import Calling

COMPLETION_TOKENS, CHAT_TOKENS = 128, 512
CHUNK = "chat.completion.chunk"

Write = Callable[[Answerer, Stop, Watch | None], Written]

router = APIRouter(responses=FAULTS, default_response_class=Json)


@router.post(
    TEXT,
    operation_id="completion",
    tags=["completions"],
    responses=answered(described.TextCompletion, streams=True),
)
async def completion(body: wire.CompletionBody, request: Request, service: Served) -> Response:
    """The continuation of a prompt or, with `suffix` or FIM tags in the prompt, what goes between the two."""
    service.check_model(body.model)
    body.refuse()
    gap = _gap(body)
    if gap is not None:
        return await fill(service, request, body, *gap, body.max_tokens, body.stop)
    most, stops = body.max_tokens or COMPLETION_TOKENS, body.stop or []

    def write(by: Answerer, stop: Stop, watch: Watch | None) -> Written:
        return by.author.complete(body.text, most, stops, stop, watch)

    if body.stream:
        return await _stream(service, request, body, write, "text_completion", text_piece)
    made = await service.run(request, lambda by, stop: write(by, stop, None))
    return _whole(service, "text_completion", wire.text_choice(made.text, made.finish), made)


def _gap(body: wire.CompletionBody) -> tuple[str, str] | None:
    """What stands before and after the cursor; None where the prompt is to be continued."""
    if body.suffix is not None:
        return body.text, body.suffix
    try:
        return split_fim(body.text)
    except PromptError as error:
        raise fault(error) from None


@router.post(
    CHAT,
    operation_id="chat",
    tags=["completions"],
    responses=answered(described.ChatCompletion, streams=True),
)
async def chat(body: wire.ChatBody, request: Request, service: Served) -> Response:
    """The next turn of a conversation."""
    service.check_model(body.model)
    body.refuse()
    if not service.author.chats:
        raise ServiceError(
            400, f"the model {service.name} was not made for chat", "model_not_supported", "model"
        )
    turns, schema, called = _asked(body, takes_tools=service.author.takes_tools)
    told = _told(schema, called, takes_tools=service.author.takes_tools)
    most, stops = body.most_tokens or CHAT_TOKENS, body.stop or []
    offered = called.described if called is not None and service.author.takes_tools else []

    asked = Conversation(turns, schema, offered, told)

    def write(by: Answerer, stop: Stop, watch: Watch | None) -> Written:
        return by.author.chat(asked, most, stops, stop, watch)

    if called is not None:
        made = await service.run(request, lambda by, stop: write(by, stop, None))
        return _called(service, body, called.calls(made.text), made)
    if body.stream:
        return await _stream(
            service, request, body, write, CHUNK, delta_piece, diffusing=bool(body.diffusing)
        )
    made = await service.run(request, lambda by, stop: write(by, stop, None))
    return _whole(service, "chat.completion", wire.message_choice(made.text, made.finish), made)


def _asked(
    body: wire.ChatBody, *, takes_tools: bool
) -> tuple[list[Turn], Schema | None, Calling | None]:
    """The conversation, what the answer must be, and what it may call.

    Nothing may be called where nothing in the model's conversations says how, unless it must. A call that must be made
    has the schema of a call; else a schema that the client asked for leaves no room for one.
    """
    turns, schema, called = [one.turn for one in body.messages], body.schema_asked, body.calling
    if not takes_tools and any(turn.role == "tool" for turn in turns):
        raise unsupported("messages", "the model's chat template has no place for results of tools")
    if called is None or (not called.must and (schema is not None or not takes_tools)):
        return turns, schema, None
    if not called.must:
        return turns, None, called
    return turns, called.schema, called


def _told(schema: Schema | None, called: Calling | None, *, takes_tools: bool) -> str:
    """What the model must be told of the answer that will be enforced; nothing where any text will do."""
    if schema is None:
        return ""
    if called is not None:
        return called.told(listed=takes_tools)
    if schema == ANY_OBJECT:
        return "Answer with one JSON object and nothing else."
    return f"Answer with JSON of this JSON schema and nothing else:\n{json.dumps(schema)}"


def _called(
    service: Service, body: wire.ChatBody, calls: list[dict[str, Any]], made: Written
) -> Response:
    """An answer that may be calls. It is known as a whole only, so a stream of it has one piece."""
    finish = "tool_calls" if calls and made.finish == "stop" else made.finish
    text = None if calls else made.text
    if not body.stream:
        return _whole(service, "chat.completion", wire.message_choice(text, finish, calls), made)
    piece = wire.calls_choice(calls) if calls else delta_piece(text, None, True)
    service.metrics.used(made.prompt_tokens, made.cached_tokens, made.tokens)
    used = wire.usage(made.prompt_tokens, made.tokens, made.cached_tokens)
    id = wire.new_id()

    async def events() -> AsyncIterator[str]:
        for choices in ([piece], [delta_piece(None, finish, False)]):
            yield event(wire.envelope(id, CHUNK, service.name, choices))
        if body.with_usage:
            yield event(wire.envelope(id, CHUNK, service.name, [], usage=used))
        yield DONE

    return event_stream(events())


def _whole(service: Service, kind: str, choice: dict[str, Any], made: Written) -> Response:
    service.metrics.used(made.prompt_tokens, made.cached_tokens, made.tokens)
    used = wire.usage(made.prompt_tokens, made.tokens, made.cached_tokens)
    more = {"usage": used, "warning": None}
    return Json(wire.envelope(wire.new_id(), kind, service.name, [choice], **more))


async def _stream(
    service: Service,
    request: Request,
    body: wire.Streamed,
    write: Write,
    kind: str,
    choice: Piece,
    *,
    diffusing: bool = False,
) -> Response:
    """A stream whose first piece is there before it begins, so that what goes wrong at once has its own status."""
    steps: asyncio.Queue[Step | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(step: Step | None) -> None:
        loop.call_soon_threadsafe(steps.put_nowait, step)

    session = session_key(request.headers, await request.body())
    job = service.submit(lambda by, stop: write(by, stop, put), session=session)
    job.future.add_done_callback(lambda _: put(None))
    async with AsyncExitStack() as until:
        await until.enter_async_context(watched(request, job))
        first = await steps.get()
        if first is None:
            await service.outcome(job)
        streaming = until.pop_all()
    pieces = _pieces(service, job, steps, first, kind, choice, body.with_usage, diffusing)

    async def events() -> AsyncIterator[str]:
        async with streaming:
            async for piece in pieces:
                yield piece

    return event_stream(events())


async def _pieces(
    service: Service,
    job: Job[Written],
    steps: asyncio.Queue[Step | None],
    first: Step | None,
    kind: str,
    choice: Piece,
    with_usage: bool,
    diffusing: bool,
) -> AsyncIterator[str]:
    id = wire.new_id()

    def chunk(choices: list[dict[str, Any]], **more: Any) -> str:
        return event(wire.envelope(id, kind, service.name, choices, **more))

    sent, begun = 0, False
    step = first
    while step is not None:
        if diffusing:
            meta = {"diffusion_progress": round(step.progress, 4)}
            yield chunk([choice(step.text, None, not begun)], diffusion_meta=meta)
            begun = True
        elif step.decided > sent:
            yield chunk([choice(step.text[sent : step.decided], None, not begun)])
            sent, begun = step.decided, True
        step = await steps.get()
    try:
        made = await service.outcome(job)
    except ClientGone:
        return
    except ServiceError as error:
        yield event({"error": {"message": str(error), "type": "server_error", "code": error.code}})
        yield DONE
        return
    service.metrics.used(made.prompt_tokens, made.cached_tokens, made.tokens)
    yield chunk([choice(None, made.finish, not begun)])
    if with_usage:
        used = wire.usage(made.prompt_tokens, made.tokens, made.cached_tokens)
        yield chunk([], usage=used)
    yield DONE
