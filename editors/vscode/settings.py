"""Writes the server's settings into the extension's package.json.

Run `python editors/vscode/settings.py` after a change in lsp_server/settings.py. Responsible for the
section titled "Server" and for nothing else of that file.
"""

from __future__ import annotations

import json
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from lsp_server.settings import SECTION, Settings

MANIFEST = Path(__file__).with_name("package.json")
TITLE = "Server"
MACHINE = frozenset({"model", "device", "threads"})
"""Settings that differ between machines, so that the editor does not carry them along."""

USER_ONLY = frozenset(
    {"backend", *(f"remote.{name}" for name in ("url", "model", "protocol", "fimTemplate"))}
)
"""Settings that a workspace cannot make: they decide where text is sent."""


def properties() -> dict[str, dict[str, Any]]:
    """Each setting of the server as JSON schema, under its full name."""
    return {f"{SECTION}.{f.metadata['name']}": _schema(f) for f in fields(Settings)}


def manifest() -> str:
    """package.json as it should be."""
    data = json.loads(MANIFEST.read_text(encoding="utf-8"))
    for group in data["contributes"]["configuration"]:
        if group["title"] == TITLE:
            group["properties"] = properties()
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _schema(f: Field[Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {**_type(f.default), "markdownDescription": f.metadata["doc"]}
    if choices := f.metadata.get("choices"):
        schema["enum"] = list(choices)
    schema |= {key: f.metadata[key] for key in ("minimum", "maximum") if key in f.metadata}
    if f.metadata["name"] in MACHINE:
        schema["scope"] = "machine-overridable"
    if f.metadata["name"] in USER_ONLY:
        schema["scope"] = "machine"
    return schema


def _type(default: Any) -> dict[str, Any]:
    if isinstance(default, bool):
        return {"type": "boolean", "default": default}
    if isinstance(default, int):
        return {"type": "integer", "default": default}
    if isinstance(default, str):
        return {"type": "string", "default": default}
    return {"type": "array", "items": {"type": "string"}, "default": list(default)}


if __name__ == "__main__":
    MANIFEST.write_text(manifest(), encoding="utf-8")
