"""The shapes of answers, for the description of the service that clients can read (`/openapi.json`).

Responsible for saying what answers look like. Answers are not built from these, so that nothing is checked twice.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from model.serving.wire import ErrorEnvelope

Finish = Literal["stop", "length", "tool_calls"] | None


class PromptTokens(BaseModel):
    cached_tokens: int


class CompletionTokens(BaseModel):
    reasoning_tokens: int


class Usage(BaseModel):
    """Token counts, in the shapes of both versions of the wire."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    reasoning_tokens: int
    cached_input_tokens: int
    prompt_tokens_details: PromptTokens
    completion_tokens_details: CompletionTokens


class Verdict(BaseModel):
    """What the gate thinks of an answer: the probability that its user takes it, whether Redraft itself would have
    shown it and why not, and what it took."""

    confidence: float
    shown: bool
    suppressed: str | None
    source: str
    forwards: int
    latency_ms: float


class TextChoice(BaseModel):
    index: int
    text: str
    logprobs: None
    finish_reason: Finish


class FunctionCall(BaseModel):
    """`arguments` are JSON, unless the answer was cut short."""

    name: str
    arguments: str


class ToolCall(BaseModel):
    id: str
    type: Literal["function"]
    function: FunctionCall


class AnswerMessage(BaseModel):
    role: Literal["assistant"]
    content: str | None
    tool_calls: list[ToolCall]
    tool_call_id: None


class MessageChoice(BaseModel):
    index: int
    message: AnswerMessage
    finish_reason: Finish


class Completion(BaseModel):
    """`redraft` is there where a gate judged the answer: FIM and edits."""

    id: str
    created: int
    model: str
    usage: Usage
    warning: str | None


class TextCompletion(Completion):
    object: Literal["text_completion"]
    choices: list[TextChoice]
    redraft: Verdict | None = None


class EditCompletion(Completion):
    object: Literal["edit.completion"]
    choices: list[MessageChoice]
    redraft: Verdict


class ChatCompletion(Completion):
    object: Literal["chat.completion"]
    choices: list[MessageChoice]


class Pricing(BaseModel):
    prompt: str
    completion: str
    input_cache_reads: str
    input_cache_writes: str


class Model(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    name: str
    description: str
    input_modalities: list[str]
    output_modalities: list[str]
    context_length: int
    max_output_length: int
    pricing: Pricing
    supported_sampling_parameters: list[str]
    supported_features: list[str]
    supported_endpoints: list[str]
    datacenters: list[Any]
    openrouter: None


class ModelList(BaseModel):
    object: Literal["list"]
    data: list[Model]


class Heard(BaseModel):
    status: Literal["ok"]


class Health(BaseModel):
    status: Literal["ok"]
    model: str
    pending: int


Responses = dict[int | str, dict[str, Any]]

_FAULTS = {
    400: "The request is wrong, or asks for what is not supported.",
    401: "The API key is missing or wrong.",
    403: "This Host or Origin is not allowed.",
    404: "No such model, path or answer.",
    405: "Not with this method.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    429: "The queue is full; `Retry-After` says when to try again.",
    500: "The model failed.",
    503: "No answer within the time limit.",
}
FAULTS: Responses = {
    status: {"model": ErrorEnvelope, "description": words} for status, words in _FAULTS.items()
}


def answered(shape: type[BaseModel], *, streams: bool = False) -> Responses:
    """The description of a path's answer; `streams` where it also comes in pieces."""
    one: dict[str, Any] = {"model": shape, "description": "The answer."}
    if streams:
        one["content"] = {"text/event-stream": {}}
    return {200: one}
