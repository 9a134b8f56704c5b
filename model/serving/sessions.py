"""Which requests belong together: those that share the beginning of their prompt, and with it a prefix cache.

Responsible for the key of a request. Knows nothing of replicas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, TypeGuard

from model.serving.prompts import FILE_PATH

HEADER = "x-session-id"
FIELDS = ("session_id", "user")
BEGINNING = 256
"""Characters of a prompt that make the key when nothing better is known."""


def session_key(headers: Mapping[str, str], body: bytes) -> str:
    """The session that a client names, in the header or in the body; else a key made from the path of an edit prompt
    or from the beginning of the prompt. It tells nothing of a text. Empty when there is nothing to go by."""
    named = headers.get(HEADER, "")
    content = {} if named else _content(body)
    named = named or next(filter(_is_text, map(content.get, FIELDS)), "")
    seed = f"name {named}" if named else _beginning(content)
    return blake2b(seed.encode("utf-8", "replace"), digest_size=8).hexdigest() if seed else ""


def _content(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _beginning(content: dict[str, Any]) -> str:
    prompt, messages = content.get("prompt"), content.get("messages")
    if isinstance(prompt, str) and prompt:
        return f"text {prompt[:BEGINNING]}"
    if not isinstance(messages, list):
        return ""
    asked = next((text for message in messages if (text := _asked(message))), "")
    _, found, rest = asked.partition(FILE_PATH)
    if found:
        return f"path {rest.partition(chr(10))[0].strip()}"
    return f"text {asked[:BEGINNING]}" if asked else ""


def _asked(message: Any) -> str:
    """What a message of the user says."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return ""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(filter(_is_text, parts))
    return content if isinstance(content, str) else ""


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)
