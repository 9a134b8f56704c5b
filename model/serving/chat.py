"""Chat as a model was trained on it: the template that its checkpoint brings.

Responsible for finding the template and for rendering messages as tokens, so that nothing a message says can pass for a
control token. Knows nothing of generation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.config import ModelError
from model.tokenizer import Tokenizer

TEMPLATE_FILE = "chat_template.jinja"
CONFIG_FILE = "tokenizer_config.json"
END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>")

_CONTENT = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: `role` is system, user or assistant."""

    role: str
    text: str


class ChatTemplate:
    """Renders a conversation. Templates are Jinja's, as Hugging Face's checkpoints have them, and run in a sandbox."""

    def __init__(self, source: str) -> None:
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        self._template = environment.from_string(source)

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
                messages=marked, add_generation_prompt=True, bos_token="", eos_token=""
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
    source = _source(folder)
    return None if source is None else ChatTemplate(source)


def _source(folder: Path) -> str | None:
    file, config = folder / TEMPLATE_FILE, folder / CONFIG_FILE
    try:
        if file.exists():
            return file.read_text(encoding="utf-8")
        if config.exists():
            known: Any = json.loads(config.read_text(encoding="utf-8")).get("chat_template")
            return known if isinstance(known, str) else None
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(f"the chat template of {folder} cannot be read: {error}") from error
    return None


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)
