"""DiffusionGemma's tokenizer: pieces of text, not bytes.

Responsible for plain text, in which the names of control tokens are text, and for templates, in which they are control
tokens. Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import regex
from tokenizers import Tokenizer as _Tokenizer

from model.config import ModelError


class GemmaTokenizer:
    """A tokenizer of a `tokenizer.json` of any kind. Raises `ModelError`."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        try:
            self._plain, self._marked = (_Tokenizer.from_file(str(path)) for _ in range(2))
        except Exception as error:
            raise ModelError(f"{path} is not a readable tokenizer: {error}") from error
        self._plain.encode_special_tokens = True
        self.longest = max(map(len, self._plain.get_vocab()), default=1)
        """Characters of the longest token."""
        added = self._plain.get_added_tokens_decoder()
        self.control = {str(one.content): index for index, one in added.items() if one.special}
        names = sorted(self.control, key=len, reverse=True)
        self._control = regex.compile("|".join(map(regex.escape, names)) or r"(?!)")

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; never a control token."""
        ids: list[int] = self._plain.encode(_encodable(text), add_special_tokens=False).ids
        return ids

    def encode_template(self, text: str) -> list[int]:
        """Token ids of a text of our own, where the names of control tokens stand for them."""
        ids: list[int] = self._marked.encode(_encodable(text), add_special_tokens=False).ids
        return ids

    def names_control(self, text: str) -> bool:
        return self._control.search(text) is not None

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self._plain.decode(list(tokens), skip_special_tokens=True)
        return text


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
