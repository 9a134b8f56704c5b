"""Chat as a model was trained on it: the template that its checkpoint brings.

Responsible for finding the template and for rendering messages as tokens, so that nothing a message says can pass for a
control token. Knows nothing of generation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from model.config import ModelError
from model.published import content, read_json
from model.published_prompt import chat_template

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
        """`names` are what the template may call control tokens, such as `bos_token`."""
        from jinja2.meta import find_undeclared_variables
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        environment.filters["tojson"] = _json
        self.takes_tools = "tools" in find_undeclared_variables(environment.parse(source))
        self._template = environment.from_string(source)
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
        marked = [
            {"role": turn.role, "content": marks.mark(turn.text)}
            | ({"tool_calls": marks.within(list(turn.calls))} if turn.calls else {})
            for turn in turns
        ]
        from jinja2 import TemplateError

        try:
            rendered = self._template.render(
                messages=marked,
                add_generation_prompt=True,
                enable_thinking=False,
                tools=marks.within(list(tools)) or None,
                **self._names,
            )
        except TemplateError as error:
            raise ValueError(f"the model's chat template refuses these messages: {error}") from None
        ids: list[int] = []
        at = 0
        for match in _CONTENT.finditer(rendered):
            ids += tokenizer.encode_template(rendered[at : match.start()])
            ids += tokenizer.encode(marks.texts[int(match[1])])
            at = match.end()
        return [*ids, *tokenizer.encode_template(rendered[at:])]


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


def load_template(folder: Path) -> ChatTemplate | None:
    """The template of a checkpoint folder; None for a model that was not made for chat."""
    try:
        source = chat_template(folder)
        config = read_json(folder / CONFIG_FILE)
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"the chat template of {folder} cannot be read: {error}") from error
    roles = ("bos_token", "eos_token")
    names = {role: content(config.get(role)) or "" for role in roles}
    return None if source is None else ChatTemplate(source, names)


def _json(value: Any, indent: int | None = None) -> str:
    """JSON as templates of published models expect it: what is no ASCII stands for itself."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)
