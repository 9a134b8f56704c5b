"""Counting and cutting text in tokens.

Responsible for what usage and `max_tokens` mean for a predictor. Knows nothing of requests.
"""

from __future__ import annotations

import re
from typing import Any

_PIECE = re.compile(r"\s*\w{1,8}|\s*[^\w\s]|\s+")


class Meter:
    """The tokens of one predictor: its model's, where it has one in this process, else about as many."""

    def __init__(self, predictor: Any) -> None:
        model = getattr(predictor, "bundle", None) or getattr(predictor, "published", None)
        self._tokenizer = None if model is None else model.tokenizer

    def count(self, text: str) -> int:
        if self._tokenizer is not None:
            return int(self._tokenizer.count(text))
        return sum(1 for _ in _PIECE.finditer(text))

    def first(self, text: str, tokens: int) -> str:
        """The first `tokens` tokens of a text, more where these are no whole character; the text if it has no more."""
        if self._tokenizer is None:
            pieces = [match.end() for match in _PIECE.finditer(text)]
            return text[: pieces[tokens - 1]] if tokens < len(pieces) else text
        ids = self._tokenizer.encode(text)
        for count in range(tokens, len(ids)):
            if short := self._tokenizer.decode(ids[:count]):
                return str(short)
        return text
