"""The settings: one typed, documented dataclass, and how to read it from what a client sends.

Responsible for names, types, limits, defaults and the text of the settings table. Knows nothing of
what a setting does. Clients send settings nested (`{"inline": {"enable": false}}`) or dotted
(`{"inline.enable": false}`), with or without an outer `redraft`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

SECTION = "redraft"
_OF_THE_EDITOR = frozenset({"editorInfo", "editorPluginInfo", "copilotIntegrationId"})
"""Keys that clients of other servers put into initializationOptions; they are no mistake."""
REMOTE_PROTOCOLS = ("inception", "openai")


@dataclass(frozen=True, slots=True)
class RemoteChoice:
    """The settings of the remote backend."""

    url: str = ""
    model: str = ""
    protocol: str = REMOTE_PROTOCOLS[0]
    fim_template: str = ""


def _setting(name: str, default: Any, doc: str, **limits: Any) -> Any:
    return field(default=default, metadata={"name": name, "doc": doc, **limits})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user can set. `metadata["name"]` is the name in the client's settings."""

    enable: bool = _setting("enable", True, "Whether Redraft predicts anything at all.")
    disabled_languages: tuple[str, ...] = _setting(
        "disabledLanguages",
        (),
        'Language ids that get no suggestions, for example `["markdown", "plaintext"]`.',
    )
    inline_enable: bool = _setting(
        "inline.enable", True, "Completion at the cursor (`textDocument/inlineCompletion`)."
    )
    next_edit_enable: bool = _setting(
        "nextEdit.enable", True, "Next-edit predictions (`redraft/nextEdit`)."
    )
    gate: str = _setting(
        "gate",
        "balanced",
        "How sure a suggestion must be to be shown: `eager` shows more, `quiet` less.",
        choices=("eager", "balanced", "quiet"),
    )
    debounce_ms: int = _setting(
        "debounceMs",
        60,
        "Pause after a keystroke before the model is asked. Explicit requests do not wait.",
        minimum=0,
        maximum=5000,
    )
    deadline_ms: int = _setting(
        "deadlineMs",
        1500,
        "Time a prediction may take; what is decided by then is the answer.",
        minimum=20,
        maximum=60000,
    )
    max_tokens: int = _setting(
        "maxTokens", 64, "Longest suggestion, in tokens.", minimum=1, maximum=1024
    )
    context_tokens: int = _setting(
        "contextTokens",
        0,
        "Largest prompt, in tokens; 0 leaves it to Redraft (512 on a CPU, 8192 on a GPU or for a service).",
        minimum=0,
        maximum=32768,
    )
    exclude: tuple[str, ...] = _setting(
        "exclude",
        (),
        "Globs of files that are never read. They add to the built-in list of secrets.",
    )
    allow: tuple[str, ...] = _setting(
        "allow", (), "Globs of files that may be read although the built-in list excludes them."
    )
    git_history: bool = _setting(
        "gitHistory", True, "Use uncommitted git changes as edit history when a session begins."
    )
    watch_files: str = _setting(
        "watchFiles",
        "auto",
        "Follow changes made outside of the editor: `auto` lets the client watch where it can.",
        choices=("auto", "on", "off"),
    )
    feedback_enable: bool = _setting(
        "feedback.enable",
        True,
        "Keep what became of suggestions, on this machine, for `redraft tune`: numbers and outcomes.",
    )
    feedback_text: bool = _setting(
        "feedback.text", False, "Keep the text of suggestions and the lines around them, too."
    )
    work_ahead: bool = _setting(
        "workAhead",
        True,
        "Use idle moments: read the place the cursor has come to, and prepare what follows the suggestion that is "
        "shown. `false` saves energy.",
    )
    model: str = _setting("model", "embedded", "`embedded`, or the path of a model folder or file.")
    device: str = _setting("device", "auto", "`auto`, `cpu`, `cuda`, `cuda:1`, `mps` ...")
    threads: int = _setting(
        "threads", 0, "CPU threads for the model; 0 leaves it to Redraft.", minimum=0, maximum=512
    )
    backend: str = _setting(
        "backend",
        "local",
        "Who predicts: a model on this machine, or a service that you have allowed (`redraft remote allow`).",
        choices=("local", "remote"),
    )
    remote_url: str = _setting(
        "remote.url", "", "Address of the service, for example `https://api.inceptionlabs.ai/v1`."
    )
    remote_model: str = _setting(
        "remote.model", "mercury-edit-2", "The model that the service is asked for."
    )
    remote_protocol: str = _setting(
        "remote.protocol",
        REMOTE_PROTOCOLS[0],
        "`inception`: completions and next edits. `openai`: completions only (`/completions`).",
        choices=REMOTE_PROTOCOLS,
    )
    remote_fim_template: str = _setting(
        "remote.fimTemplate",
        "",
        "For `openai` services without a `suffix` field: the prompt, with `{prefix}` and `{suffix}` in it.",
    )
    log_level: str = _setting(
        "logLevel",
        "warning",
        "What goes to the log. The text of your files is never logged.",
        choices=("debug", "info", "warning", "error"),
    )

    @property
    def remote(self) -> RemoteChoice:
        return RemoteChoice(
            self.remote_url.strip(),
            self.remote_model,
            self.remote_protocol,
            self.remote_fim_template,
        )


_FIELDS: dict[str, Field[Any]] = {f.metadata["name"]: f for f in fields(Settings)}


def parse_settings(raw: object, base: Settings | None = None) -> tuple[Settings, list[str]]:
    """`base` changed by what the client sent, and one sentence for each thing wrong with it.

    A bad value keeps that of `base`; the others count.
    """
    base = Settings() if base is None else base
    if raw is None:
        return base, []
    if not isinstance(raw, Mapping):
        return base, [f"the settings must be an object, not {_kind(raw)}"]
    if isinstance(inner := raw.get(SECTION), Mapping):
        raw = inner
    changes: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in _flatten(raw):
        if name not in _FIELDS:
            if name.split(".")[0] not in _OF_THE_EDITOR:
                problems.append(_unknown(name))
            continue
        if value is None:
            continue
        try:
            changes[_FIELDS[name].name] = _convert(_FIELDS[name], value)
        except ValueError as error:
            problems.append(f"`{name}` {error}")
    return replace(base, **changes), problems


def problems_message(problems: list[str]) -> str:
    """One message for the user that names every problem."""
    listed = "; ".join(problems)
    return f"Redraft: {listed}. Defaults are used for what could not be read."


def settings_markdown() -> str:
    """The settings as a Markdown table, for the README."""
    rows = ["| setting | values | default | what it does |", "| --- | --- | --- | --- |"]
    for name, f in _FIELDS.items():
        rows.append(f"| `{name}` | {_values(f)} | `{_as_json(f.default)}` | {f.metadata['doc']} |")
    return "\n".join(rows) + "\n"


def _flatten(raw: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in raw.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name not in _FIELDS and value:
            found += _flatten(value, name + ".")
        else:
            found.append((name, value))
    return found


def _unknown(name: str) -> str:
    close = get_close_matches(name, _FIELDS, n=1)
    return f"`{name}` is not a setting" + (f" (did you mean `{close[0]}`?)" if close else "")


def _convert(f: Field[Any], value: Any) -> Any:
    """`value` as the field's type. ValueError says what was expected instead."""
    if isinstance(f.default, bool):
        if isinstance(value, bool):
            return value
        raise ValueError(f"must be true or false, not {_show(value)}")
    if isinstance(f.default, int):
        return _number(f, value)
    if isinstance(f.default, str):
        return _word(f, value)
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError(f"must be a list of strings, not {_show(value)}")


def _number(f: Field[Any], value: Any) -> int:
    low, high = f.metadata["minimum"], f.metadata["maximum"]
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not whole or not low <= value <= high:
        raise ValueError(f"must be a whole number from {low} to {high}, not {_show(value)}")
    return int(value)


def _word(f: Field[Any], value: Any) -> str:
    choices = f.metadata.get("choices")
    if not isinstance(value, str) or (choices and value not in choices):
        wanted = "one of " + ", ".join(choices) if choices else "a string"
        raise ValueError(f"must be {wanted}, not {_show(value)}")
    return value


def _show(value: Any) -> str:
    shown = _as_json(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _as_json(value: Any) -> str:
    return json.dumps(value, default=str)


def _kind(value: object) -> str:
    return {list: "a list", str: "a string", bool: "a boolean"}.get(type(value), "a number")


def _values(f: Field[Any]) -> str:
    if choices := f.metadata.get("choices"):
        return ", ".join(f"`{choice}`" for choice in choices)
    if isinstance(f.default, bool):
        return "`true`, `false`"
    if isinstance(f.default, int):
        return f"{f.metadata['minimum']} to {f.metadata['maximum']}"
    return "text" if isinstance(f.default, str) else "list of text"
