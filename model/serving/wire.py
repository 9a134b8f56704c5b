"""The shapes of requests and answers, as Inception's and OpenAI's clients send and read them.

Responsible for the fields, their limits and defaults, and for what a client sends that this service must refuse. Fields
that steer sampling are read and have no effect: decoding is greedy. Unknown fields are passed over. Knows nothing of
how a request is answered.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from model.chat import Turn
from model.grammar import ANY_OBJECT, Schema
from model.serving.errors import ServiceError, unsupported
from model.serving.tools import Calling, ToolChoice, Tools, calling

NO_SUFFIX = "<|endoftext|>"
"""What Continue sends where nothing follows the cursor."""

BLANK_LINE = ("\n\n", "\n \n")
"""Where a FIM answer ends unless the request says otherwise."""

JAVASCRIPT = ("node", "undici", "axios", "bun", "deno", "continue", "kilo")
NEXT_EDIT_MARK = "<|!@#IS_NEXT_EDIT!@#|>"
"""What two clients put behind an edit prompt."""

MAX_STOPS, MAX_STOP = 16, 256
MOST_TOKENS = 8192
MAX_MESSAGES = 1024


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _at_most(value: int) -> int:
    """Numbers above the limit mean the limit."""
    return min(value, MOST_TOKENS)


_STOP = {"type": "string", "minLength": 1, "maxLength": MAX_STOP}
_STOPS = {"type": "array", "items": _STOP, "maxItems": MAX_STOPS}

Tokens = Annotated[int, Field(ge=1), AfterValidator(_at_most)]
Stops = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=MAX_STOP)]],
    Field(max_length=MAX_STOPS),
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [_STOP, _STOPS]}),
]


class Body(BaseModel):
    """What every request has."""

    model_config = ConfigDict(extra="ignore")

    model: Annotated[
        str, StringConstraints(min_length=1, max_length=256), Field(examples=["redraft"])
    ]
    n: int | None = None

    def refuse(self) -> None:
        """Raise for what cannot be done honestly."""
        if self.n not in (None, 1):
            raise unsupported("n", "there is one answer to a request")


class StreamOptions(BaseModel):
    include_usage: bool | None = None


class Streamed(Body):
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def with_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


class FimBody(Streamed):
    """`POST /v1/fim/completions`."""

    prompt: str
    suffix: str | None = None
    max_tokens: Tokens | None = None
    stop: Stops | None = None


class CompletionBody(Streamed):
    """`POST /v1/completions`. With a `suffix`, even an empty one, it asks for what goes between."""

    prompt: str | list[str] | list[int] | list[list[int]] = NO_SUFFIX
    suffix: str | None = None
    max_tokens: Tokens | None = None
    stop: Stops | None = None
    echo: bool | None = None
    best_of: int | None = None
    logprobs: int | bool | None = None

    def refuse(self) -> None:
        super().refuse()
        if not isinstance(self.prompt, str) and not (
            len(self.prompt) == 1 and isinstance(self.prompt[0], str)
        ):
            raise unsupported("prompt", "one string is needed, not several or tokens")
        if self.echo:
            raise unsupported("echo", "an answer does not repeat its prompt")
        if self.best_of not in (None, 1):
            raise unsupported("best_of", "there is one answer to a request")
        if self.logprobs is not None and self.logprobs is not False:
            raise unsupported("logprobs", "probabilities of tokens are not told")

    @property
    def text(self) -> str:
        return self.prompt if isinstance(self.prompt, str) else str(self.prompt[0])


class Part(BaseModel):
    """One part of a message. Only text is understood."""

    model_config = ConfigDict(extra="ignore")

    type: str
    text: str | None = None


class FunctionCalled(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    arguments: str = "{}"


class CallMade(BaseModel):
    """A call that the assistant has made earlier."""

    model_config = ConfigDict(extra="ignore")

    function: FunctionCalled

    def for_template(self) -> dict[str, Any]:
        """With the arguments as a value, where they are JSON."""
        try:
            arguments: Any = json.loads(self.function.arguments)
        except ValueError:
            arguments = self.function.arguments
        return {
            "type": "function",
            "function": {"name": self.function.name, "arguments": arguments},
        }


class Message(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: list[CallMade] | None = None

    @property
    def turn(self) -> Turn:
        calls = tuple(call.for_template() for call in self.tool_calls or [])
        return Turn("system" if self.role == "developer" else self.role, self.text, calls)

    @property
    def text(self) -> str:
        """The content as one text; refuses images and the like."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        if any(part.type != "text" for part in self.content):
            raise unsupported("messages", "a message may hold text only")
        return "".join(part.text or "" for part in self.content)


Messages = Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES)]


class EditBody(Streamed):
    """`POST /v1/edit/completions`. `max_tokens` bounds what the model writes, not the region that is sent back."""

    messages: Messages
    max_tokens: Tokens | None = None

    def prompt(self, *, strict: bool) -> str:
        """The edit prompt: the last message of the user. `strict` wants it to be the only message."""
        asked = [message for message in self.messages if message.role == "user"]
        if not asked or (strict and len(self.messages) > 1):
            raise unsupported(
                "messages", "an edit is asked for with exactly one message, the user's"
            )
        return asked[-1].text

    def reads_none(self, agent: str) -> bool:
        """Whether the client is thought to read `None` as "no edit". Continue and Kilo Code would write the word into
        the file; they are known by a system message, a stream, a mark at the end of the prompt, or their runtime."""
        if self.stream or len(self.messages) > 1 or agent.lower().startswith(JAVASCRIPT):
            return False
        return not self.messages[-1].text.rstrip().endswith(NEXT_EDIT_MARK)


class NamedSchema(BaseModel):
    """What `response_format` has for `json_schema`; the schema itself is checked by whoever enforces it."""

    model_config = ConfigDict(extra="ignore")

    name: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")


class ResponseFormat(BaseModel):
    """The shape of an answer. `json_schema` is needed with the type of that name."""

    model_config = ConfigDict(extra="ignore")

    type: str = "text"
    json_schema: NamedSchema | None = None

    @property
    def schema_asked(self) -> Schema | None:
        """The schema to enforce; None for plain text."""
        if self.type == "text":
            return None
        if self.type == "json_object":
            return ANY_OBJECT
        if self.type != "json_schema":
            raise unsupported(
                "response_format", "its type is none of text, json_object, json_schema"
            )
        if self.json_schema is None:
            raise ServiceError(
                400,
                "`response_format.json_schema` is missing: its `schema` is what the answer must be",
                "invalid_request",
                "response_format.json_schema",
            )
        return ANY_OBJECT if self.json_schema.schema_ is None else self.json_schema.schema_


class ChatBody(Streamed):
    """`POST /v1/chat/completions`."""

    messages: Messages
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    stop: Stops | None = None
    diffusing: bool | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None
    functions: list[Any] | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None

    def refuse(self) -> None:
        super().refuse()
        if self.functions:
            raise unsupported("functions", "`tools` have taken their place")
        if self.logprobs:
            raise unsupported("logprobs", "probabilities of tokens are not told")
        if any(message.role == "function" for message in self.messages):
            raise unsupported("messages", "the role `tool` has taken the place of `function`")

    @property
    def calling(self) -> Calling | None:
        """What the answer may or must call."""
        return calling(self.tools or [], self.tool_choice)

    @property
    def schema_asked(self) -> Schema | None:
        """What the answer must be; None for plain text."""
        return None if self.response_format is None else self.response_format.schema_asked

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens


class FeedbackBody(BaseModel):
    """`POST /feedback`: what became of an answer."""

    model_config = ConfigDict(extra="ignore")

    request_id: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    user_action: Literal["accept", "reject", "ignore"]
    provider_name: Annotated[str, StringConstraints(max_length=128)] = ""
    provider_version: Annotated[str, StringConstraints(max_length=128)] = ""


class Fault(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorEnvelope(BaseModel):
    """The body of every answer that is not 2xx."""

    error: Fault


def new_id() -> str:
    return f"cmpl-{uuid.uuid4()}"


def usage(prompt: int, completion: int, cached: int) -> dict[str, Any]:
    """Token counts in both shapes that clients read."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "reasoning_tokens": 0,
        "cached_input_tokens": cached,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def envelope(
    id: str, kind: str, model: str, choices: Sequence[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    """What an answer and each of its chunks begin with."""
    head = {"id": id, "object": kind, "created": int(time.time()), "model": model}
    return {**head, "choices": list(choices), **more}


def text_choice(text: str, finish: str | None) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}


def message_choice(
    text: str | None, finish: str | None, calls: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    message |= {"tool_calls": list(calls), "tool_call_id": None}
    return {"index": 0, "message": message, "finish_reason": finish}


def delta_choice(text: str | None, finish: str | None, *, first: bool = False) -> dict[str, Any]:
    delta: dict[str, Any] = {"role": "assistant"} if first else {}
    if text is not None:
        delta["content"] = text
    return {"index": 0, "delta": delta, "finish_reason": finish}


def calls_choice(calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A piece of a stream that brings whole calls."""
    numbered = [{"index": number, **call} for number, call in enumerate(calls)]
    delta = {"role": "assistant", "content": None, "tool_calls": numbered}
    return {"index": 0, "delta": delta, "finish_reason": None}
