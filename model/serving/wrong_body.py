"""What is wrong with a body, and where.

Responsible for turning the first complaint of the framework into words and the name of a field. The value that was sent
is never told: it may be a text of the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from model.serving.errors import ServiceError

OBJECT = "the body must be a JSON object, sent as application/json"


def wrong_body(complaints: Sequence[Mapping[str, Any]], body: Any) -> ServiceError:
    """The error for a body, parsed or as it came, with the framework's complaints about it."""
    first = complaints[0]
    kind, place = first["type"], first["loc"][1:]
    if kind == "json_invalid":
        message = f"the body is not JSON: {first['ctx']['error']} at {_line(str(body), place[0])}"
        return ServiceError(400, message, "invalid_json")
    if not place:
        return ServiceError(400, OBJECT, "invalid_request")
    field = _field(place, body, missing=kind == "missing")
    message = f"`{field}`: {first['msg']}" if field else str(first["msg"])
    if (more := len(_fields(complaints, body) - {field})) > 0:
        message += f" (and {more} more {'field is' if more == 1 else 'fields are'} wrong)"
    return ServiceError(400, message, "invalid_request", field)


def _fields(complaints: Sequence[Mapping[str, Any]], body: Any) -> set[str | None]:
    return {_field(one["loc"][1:], body, missing=one["type"] == "missing") for one in complaints}


def _line(text: str, at: int) -> str:
    """Where a character is, as editors count."""
    line, last = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at)
    return f"line {line}, column {at - last}"


def _field(place: Sequence[Any], body: Any, *, missing: bool) -> str | None:
    """The path of a field, such as `messages.0.content`. The framework also names which of several shapes it tried;
    that is no part of the body and is left out."""
    parts: list[str] = []
    for number, part in enumerate(place, 1):
        if _has(body, part):
            body = body[part]
        elif not (missing and number == len(place)):
            continue
        parts.append(str(part))
    return ".".join(parts) or None


def _has(value: Any, part: Any) -> bool:
    if isinstance(value, Mapping):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)
