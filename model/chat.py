"""Chat as a model was trained on it: the template that its checkpoint brings.

Responsible for finding the template and for rendering messages as tokens, so that nothing a message says can pass for a
control token. A template comes with the checkpoint and is rendered in a sandbox: it can read the messages and nothing
else. Knows nothing of generation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from jinja2 import TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from model.config import ModelError
from model.published import content, read_json

TEMPLATE_FILE = "chat_template.jinja"
CONFIG_FILE = "tokenizer_config.json"

TAGS = ("<tool_call>", "</tool_call>")
"""What templates with tools tell a model to write around a call."""

_CONTENT = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: `role` is system, user or assistant, or tool where the template has tools. `calls` are those that it
    made, with arguments as objects."""

    role: str
    text: str
    calls: tuple[Mapping[str, Any], ...] = ()


class Encoder(Protocol):
    """What a template needs of a tokenizer."""

    def encode(self, text: str) -> list[int]: ...

    def encode_template(self, text: str) -> list[int]: ...

    def names_control(self, text: str) -> bool: ...


class ChatTemplate:
    """Renders a conversation. Templates are Jinja's, as Hugging Face's checkpoints have them, and run in a sandbox."""

    def __init__(self, source: str, names: Mapping[str, str] | None = None) -> None:
        """`names` are what the template may call control tokens, such as `bos_token`. ValueError for no template."""
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        environment.filters["tojson"] = _json
        try:
            self.takes_tools = "tools" in find_undeclared_variables(environment.parse(source))
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise ValueError(f"fails: {error}") from None
        self._names = {"bos_token": "", "eos_token": "", **(names or {})}

    def tokens(
        self,
        tokenizer: Encoder,
        turns: Sequence[Turn],
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> list[int]:
        """The prompt for the assistant's next turn. ValueError when the template refuses the conversation.

        The template sees marks where the texts belong, and where a tool or a call holds the name of a control token;
        these are encoded as plain text.
        """
        marks = _Marks(tokenizer)
        try:
            rendered = self._render(turns, tools, marks)
        except TemplateError as error:
            raise ValueError(f"the model's chat template refuses these messages: {error}") from None
        ids: list[int] = []
        at = 0
        for match in _CONTENT.finditer(rendered):
            ids += tokenizer.encode_template(rendered[at : match.start()])
            ids += tokenizer.encode(marks.texts[int(match[1])])
            at = match.end()
        return [*ids, *tokenizer.encode_template(rendered[at:])]

    def instructed(self, tokenizer: Encoder, turns: Sequence[Turn], message: str) -> list[Turn]:
        """The conversation with an instruction in the message of the system; in the user's first one where the template
        has no place for such a message."""
        roles = [turn.role for turn in turns]
        if roles[:1] == ["system"]:
            return [Turn("system", f"{turns[0].text}\n\n{message}"), *turns[1:]]
        if self._has_system(tokenizer) or "user" not in roles:
            return [Turn("system", message), *turns]
        at = roles.index("user")
        return [*turns[:at], Turn("user", f"{message}\n\n{turns[at].text}"), *turns[at + 1 :]]

    def _has_system(self, tokenizer: Encoder) -> bool:
        pair = [Turn("system", ""), Turn("user", "")]
        try:
            return len(_CONTENT.findall(self._render(pair, (), _Marks(tokenizer)))) == 2
        except TemplateError:
            return False

    def ask(self, tokenizer: Encoder, message: str) -> list[int]:
        """The prompt for the answer to one message of the user."""
        return self.tokens(tokenizer, [Turn("user", message)])

    def check(self, tokenizer: Encoder) -> None:
        """ValueError for a template that fails at one message of the user, or does not show it once."""
        try:
            rendered = self._render([Turn("user", "")], (), _Marks(tokenizer))
        except TemplateError as error:
            raise ValueError(f"fails: {error}") from None
        if len(_CONTENT.findall(rendered)) != 1:
            raise ValueError("does not show the message once")

    def _render(
        self, turns: Sequence[Turn], tools: Sequence[Mapping[str, Any]], marks: _Marks
    ) -> str:
        marked = [
            {"role": turn.role, "content": marks.mark(turn.text)}
            | ({"tool_calls": marks.within(list(turn.calls))} if turn.calls else {})
            for turn in turns
        ]
        return self._template.render(
            messages=marked,
            add_generation_prompt=True,
            enable_thinking=False,
            tools=marks.within(list(tools)) or None,
            **self._names,
        )


class _Marks:
    """Texts that a template must not see, and the marks that stand for them."""

    def __init__(self, tokenizer: Encoder) -> None:
        self._tokenizer, self.texts = tokenizer, list[str]()

    def mark(self, text: str) -> str:
        self.texts.append(text)
        return f"\ue000{len(self.texts) - 1}\ue001"

    def within(self, value: Any) -> Any:
        """The value with a mark for each text in it that would not be encoded as text."""
        if isinstance(value, str):
            marked = self._tokenizer.names_control(value) or _CONTENT.search(value)
            return self.mark(json.dumps(value, ensure_ascii=False)[1:-1]) if marked else value
        if isinstance(value, list):
            return [self.within(one) for one in value]
        if isinstance(value, Mapping):
            return {self.within(key): self.within(one) for key, one in value.items()}
        return value


def chat_template(folder: Path) -> str | None:
    """The template in a checkpoint's files."""
    path = folder / TEMPLATE_FILE
    if path.exists():
        return path.read_text(encoding="utf-8")
    found: Any = read_json(folder / CONFIG_FILE).get("chat_template")
    if isinstance(found, list):
        named: Mapping[str, str] = {row["name"]: row["template"] for row in found}
        return named.get("default")
    return found if isinstance(found, str) else None


def load_template(folder: Path) -> ChatTemplate | None:
    """The template of a checkpoint folder; None for a model that was not made for chat. Raises `ModelError`."""
    roles = ("bos_token", "eos_token")
    try:
        source, config = chat_template(folder), read_json(folder / CONFIG_FILE)
        names = {role: content(config.get(role)) or "" for role in roles}
        return None if source is None else ChatTemplate(source, names)
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"the chat template of {folder} cannot be read: {error}") from error
    except ValueError as error:
        raise ModelError(f"the chat template of {folder} {error}") from error


def load_asking(folder: Path, tokenizer: Encoder) -> ChatTemplate | None:
    """The same for a model that is asked by instruction: `ModelError` also where its template cannot ask."""
    template = load_template(folder)
    if template is not None:
        try:
            template.check(tokenizer)
        except ValueError as error:
            raise ModelError(f"the chat template of {folder} {error}") from error
    return template


def _json(value: Any, indent: int | None = None) -> str:
    """JSON as templates of published models expect it: what is no ASCII stands for itself."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> None:
    raise TemplateError(message)
