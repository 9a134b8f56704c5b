"""Schemas whose answers are short whatever a model says, and one that every kind of value is in."""

from __future__ import annotations

from typing import Any

WORD = {"type": "string", "maxLength": 6}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": WORD,
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["red", "grün", 3, None]}, "maxItems": 2},
        "home": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
    },
    "required": ["name", "age", "tags", "home"],
    "additionalProperties": False,
}
SHORT: dict[str, dict[str, Any]] = {
    "person": PERSON,
    "const": {"const": {"kind": "fixed", "list": [1, 2]}},
    "enum": {"enum": ["yes", "no", 7]},
    "nested": {
        "type": "object",
        "properties": {
            "in": {
                "type": "object",
                "properties": {"ok": {"type": "boolean"}},
                "required": ["ok"],
                "additionalProperties": False,
            }
        },
        "required": ["in"],
        "additionalProperties": False,
    },
    "either": {"anyOf": [{"type": "array", "items": WORD, "maxItems": 2}, {"type": "boolean"}]},
    "number": {"type": "number", "enum": [1.5, -2, 3e4]},
    "named": {
        "$defs": {"bit": {"enum": [0, 1]}},
        "type": "array",
        "items": {"$ref": "#/$defs/bit"},
        "minItems": 2,
        "maxItems": 3,
    },
}
