"""The shapes of our own requests and of the standard one that clients extend.

Responsible for reading parameters (plain dictionaries) into typed values and for saying what is
wrong with them. Knows nothing of documents; positions stay in the client's units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from diffing.positions import Position
from model.protocol import Mode

_INVOKED = 1
_SEVERITY = {1: "error", 2: "warning", 3: "information", 4: "hint"}


@dataclass(frozen=True, slots=True)
class Selected:
    """The item that is selected in the editor's completion menu, and what it would replace."""

    start: Position
    end: Position
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """One request for a suggestion. `version` is None where the client does not say."""

    mode: Mode
    uri: str
    version: int | None
    position: Position
    invoked: bool = False
    selected: Selected | None = None
    selections: int = 1
    diagnostics: tuple[str, ...] = ()


def parse_question(mode: Mode, params: object) -> Question:
    """Read the parameters of an inline completion or next-edit request.

    Raises `JsonRpcInvalidParams` that names the part that is missing or wrong.
    """
    fields = _mapping(params, "params")
    document = _mapping(fields.get("textDocument"), "textDocument")
    context = fields.get("context")
    context = context if isinstance(context, Mapping) else {}
    version = document.get("version")
    return Question(
        mode=mode,
        uri=_string(document.get("uri"), "textDocument.uri"),
        version=version if isinstance(version, int) else None,
        position=_position(fields.get("position"), "position"),
        invoked=context.get("triggerKind") == _INVOKED,
        selected=_selected(context.get("selectedCompletionInfo")),
        selections=_selections(fields, context),
        diagnostics=_diagnostics(fields.get("diagnostics")),
    )


def parse_place(params: object) -> tuple[str, Position]:
    """The document and the position of a notification. Raises `JsonRpcInvalidParams` as `parse_question` does."""
    fields = _mapping(params, "params")
    document = _mapping(fields.get("textDocument"), "textDocument")
    uri = _string(document.get("uri"), "textDocument.uri")
    return uri, _position(fields.get("position"), "position")


def suggestion_id(params: object) -> str:
    """The id in `{item: {command: {arguments: [id]}}}` or `{id}`; empty when there is none."""
    if isinstance(params, str):
        return params
    if not isinstance(params, Mapping):
        return ""
    if isinstance(named := params.get("id"), str):
        return named
    item = params.get("item")
    command = item.get("command") if isinstance(item, Mapping) else None
    arguments = command.get("arguments") if isinstance(command, Mapping) else None
    first = arguments[0] if isinstance(arguments, list) and arguments else ""
    return first if isinstance(first, str) else ""


def accepted_length(params: object) -> int | None:
    value = params.get("acceptedLength") if isinstance(params, Mapping) else None
    return value if isinstance(value, int) else None


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise JsonRpcInvalidParams(f"`{name}` must be an object")
    return value


def _string(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise JsonRpcInvalidParams(f"`{name}` must be a string")
    return value


def _position(value: object, name: str) -> Position:
    fields = _mapping(value, name)
    numbers = (fields.get("line"), fields.get("character"))
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
        raise JsonRpcInvalidParams(f"`{name}` needs a line and a character, counted from 0")
    return Position(*numbers)  # type: ignore[arg-type]


def _selected(value: object) -> Selected | None:
    if not isinstance(value, Mapping):
        return None
    where = _mapping(value.get("range"), "selectedCompletionInfo.range")
    return Selected(
        start=_position(where.get("start"), "selectedCompletionInfo.range.start"),
        end=_position(where.get("end"), "selectedCompletionInfo.range.end"),
        text=_string(value.get("text"), "selectedCompletionInfo.text"),
    )


def _selections(*sources: Mapping[str, Any]) -> int:
    """How many cursors the editor says it has: `selections` as a list or a number."""
    for source in sources:
        told = source.get("selections")
        if isinstance(told, list):
            return len(told)
        if isinstance(told, int):
            return int(told)
    return 1


def _diagnostics(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    lines = []
    for entry in value[:20]:
        if isinstance(entry, Mapping) and isinstance(message := entry.get("message"), str):
            severity = entry.get("severity")
            word = _SEVERITY.get(severity, "error") if isinstance(severity, int) else severity
            where = entry.get("range")
            start = where.get("start") if isinstance(where, Mapping) else None
            line = start.get("line") if isinstance(start, Mapping) else None
            at = f"{line + 1}: " if isinstance(line, int) else ""
            lines.append(f"{at}{word or 'error'}: {message}")
    return tuple(lines)
