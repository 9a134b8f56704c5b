"""Chat as a model was trained on it: the template that its checkpoint brings.

Responsible for finding the template and for rendering messages as tokens, so that nothing a message says can pass for a
control token. Knows nothing of generation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from model.config import ModelError
from model.published import content, read_json
from model.published_prompt import chat_template
from model.tokenizer import Tokenizer

CONFIG_FILE = "tokenizer_config.json"

_CONTENT = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: `role` is system, user or assistant."""

    role: str
    text: str


class ChatTemplate:
    """Renders a conversation. Templates are Jinja's, as Hugging Face's checkpoints have them, and run in a sandbox."""

    def __init__(self, source: str, names: Mapping[str, str] | None = None) -> None:
        """`names` are what the template may call control tokens, such as `bos_token`."""
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        self._template = environment.from_string(source)
        self._names = {"bos_token": "", "eos_token": "", **(names or {})}

    def tokens(self, tokenizer: Tokenizer, turns: Sequence[Turn]) -> list[int]:
        """The prompt for the assistant's next turn. ValueError when the template refuses the conversation.

        The template sees marks where the texts belong; the texts are encoded as plain text.
        """
        marked = [
            {"role": turn.role, "content": f"\ue000{number}\ue001"}
            for number, turn in enumerate(turns)
        ]
        from jinja2 import TemplateError

        try:
            rendered = self._template.render(
                messages=marked,
                add_generation_prompt=True,
                enable_thinking=False,
                **self._names,
            )
        except TemplateError as error:
            raise ValueError(f"the model's chat template refuses these messages: {error}") from None
        ids: list[int] = []
        at = 0
        for match in _CONTENT.finditer(rendered):
            ids += tokenizer.encode_template(rendered[at : match.start()])
            ids += tokenizer.encode(turns[int(match[1])].text)
            at = match.end()
        return [*ids, *tokenizer.encode_template(rendered[at:])]


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


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)
