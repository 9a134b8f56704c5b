"""Tools: which functions a client offers, what an answer that calls one must look like, and the call in its text.

Responsible for `tools` and `tool_choice` of a request and for `tool_calls` of an answer. A call that must be made is
enforced by a schema: the arguments alone where one function is left, else an object with name and arguments. Knows
nothing of how a schema is enforced or of templates.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from model.grammar import Schema
from model.serving.errors import ServiceError

MAX_TOOLS = 128
_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_BEGUN = re.compile(r'\{"name": "([^"]*)", "arguments": (.*)', re.DOTALL)

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]


class Function(BaseModel):
    """A function that may be called. Its `parameters` are a JSON schema; without one it has none."""

    model_config = ConfigDict(extra="ignore")

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None

    @property
    def arguments(self) -> Schema:
        """The schema of its arguments: an object, and references in it mean places in it."""
        if not self.parameters:
            return {"type": "object", "properties": {}, "additionalProperties": False}
        return {"$id": f"urn:function:{self.name}", "type": "object", **self.parameters}


class Tool(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Literal["function"] = "function"
    function: Function


class Chosen(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str


class NamedTool(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Literal["function"] = "function"
    function: Chosen


Tools = Annotated[list[Tool], Field(max_length=MAX_TOOLS)]
ToolChoice = Literal["none", "auto", "required"] | NamedTool


@dataclass(frozen=True, slots=True)
class Calling:
    """The functions that an answer may call, or of which it must call one."""

    functions: tuple[Function, ...]
    must: bool

    @property
    def described(self) -> list[dict[str, Any]]:
        """The functions as chat templates want them."""
        kept = [one.model_dump(exclude_none=True) for one in self.functions]
        return [{"type": "function", "function": one} for one in kept]

    @property
    def schema(self) -> Schema | None:
        """What an answer that must call looks like; None where it need not call."""
        if not self.must:
            return None
        if len(self.functions) == 1:
            return self.functions[0].arguments
        return {"anyOf": [_call_schema(one) for one in self.functions]}

    def told(self, *, listed: bool) -> str:
        """What a call must look like, with the functions themselves unless the model's template has `listed` them."""
        first = self.functions[0].name
        task = (
            f"Answer with the arguments of a call of `{first}` as JSON."
            if len(self.functions) == 1
            else 'Answer with one call as JSON: {"name": ..., "arguments": {...}}'
        )
        if listed:
            return task
        offered = "\n".join(json.dumps(one["function"]) for one in self.described)
        return f"These functions can be called:\n{offered}\n{task}"

    def calls(self, text: str) -> list[dict[str, Any]]:
        """The calls in an answer, in the wire's shape; none where it has none that can be read.

        Of an answer that was cut short the arguments may be incomplete.
        """
        if not self.must:
            found = [_tagged(one) for one in _TAGGED.findall(text)]
            names = {one.name for one in self.functions}
            known = [call for call in found if call is not None and call[0] in names]
            return [_call(*call) for call in known] if len(known) == len(found) else []
        if len(self.functions) == 1:
            return [_call(self.functions[0].name, text)]
        begun = _BEGUN.fullmatch(text)
        return [_call(begun[1], _within_the_call(begun[2]))] if begun else []


def calling(tools: Sequence[Tool], choice: ToolChoice | None) -> Calling | None:
    """What a request wants; None where nothing can or may be called. Raises `ServiceError`."""
    functions = tuple(tool.function for tool in tools)
    if isinstance(choice, NamedTool):
        named = tuple(one for one in functions if one.name == choice.function.name)
        if not named:
            raise _wrong(
                f"`tool_choice` names {choice.function.name!r}, which is not among `tools`"
            )
        return Calling(named[:1], True)
    if choice == "required" and not functions:
        raise _wrong("`tool_choice` is required, and `tools` has none")
    if not functions or choice == "none":
        return None
    if len({one.name for one in functions}) < len(functions):
        raise ServiceError(400, "`tools` has two functions of one name", "invalid_request", "tools")
    return Calling(functions, choice == "required")


def _wrong(message: str) -> ServiceError:
    return ServiceError(400, message, "invalid_request", "tool_choice")


def _call_schema(function: Function) -> Schema:
    """A call: its name first, for properties come in the order in which they are listed."""
    return {
        "type": "object",
        "properties": {"name": {"const": function.name}, "arguments": function.arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _within_the_call(text: str) -> str:
    """Arguments without the brace that closes the call around them, where it is there."""
    try:
        json.loads(inner := text.removesuffix("}"))
    except ValueError:
        return text
    return inner


def _tagged(text: str) -> tuple[str, str] | None:
    """Name and arguments of a call between tags; None where it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    arguments = found.get("arguments", {})
    if not isinstance(arguments, dict):
        return None
    return found["name"], json.dumps(arguments, ensure_ascii=False)


def _call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": function}
