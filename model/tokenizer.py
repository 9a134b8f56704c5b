"""Text to token ids and back, and token healing.

Responsible for the byte view of a byte-level BPE vocabulary: encoding plain text (control tokens in it are ordinary
text), decoding, and cutting a prompt back to a boundary the tokenizer would really produce, with the bytes cut off as
a constraint on what comes next. Knows nothing of prompts or models.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import regex
from tokenizers import Tokenizer as _Tokenizer

from model.config import ModelError

# The GPT-2 split that byte-level BPE applies before merging, digits apart.
_PIECES = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\d| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+|\p{N}")
_TAIL = 256


def _byte_alphabet() -> dict[str, int]:
    """The printable stand-ins of byte-level BPE: character -> byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    alphabet = {chr(b): b for b in printable}
    alphabet.update({chr(256 + i): b for i, b in enumerate(others)})
    return alphabet


class Tokenizer:
    """A byte-level BPE tokenizer loaded from `tokenizer.json`."""

    def __init__(self, path: Path, control_ids: Iterable[int] = ()) -> None:
        try:
            inner = _Tokenizer.from_file(str(path))
        except Exception as error:
            raise ModelError(f"{path} is not a readable tokenizer: {error}") from error
        self._build(inner, control_ids)

    def _build(self, inner: _Tokenizer, control_ids: Iterable[int]) -> None:
        """The byte view of a loaded vocabulary; raises `KeyError` for a character that stands for no byte."""
        self._inner = inner
        self._inner.no_truncation()
        alphabet = _byte_alphabet()
        self.control_ids = frozenset(control_ids)
        ids = (*self._inner.get_vocab().values(), *self.control_ids)
        self.size = max(self._inner.get_vocab_size(), 1 + max(ids, default=-1))
        self._bytes: list[bytes] = [b""] * self.size
        for token, index in self._inner.get_vocab().items():
            if index not in self.control_ids:
                self._bytes[index] = bytes(alphabet[ch] for ch in token)
        named = ((self._inner.id_to_token(i), i) for i in sorted(self.control_ids))
        self._name({str(name): index for name, index in named if name})
        self._sorted = sorted((piece, i) for i, piece in enumerate(self._bytes) if piece)
        self._exact = dict(self._sorted)
        self.longest = max(map(len, self._bytes))
        """Bytes of the longest token."""

    def _name(self, control: Mapping[str, int]) -> None:
        """Set how control tokens are written, the longest first where one begins another."""
        self._control_ids = dict(control)
        longest = sorted(control, key=len, reverse=True)
        self._control = regex.compile("|".join(map(regex.escape, longest)) or r"(?!)")

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; lone surrogates become U+FFFD. Never yields a control token."""
        ids: list[int] = self._inner.encode(_encodable(text), add_special_tokens=False).ids
        return ids

    def encode_template(self, text: str) -> list[int]:
        """Token ids of a text of our own, where the names of control tokens stand for them."""
        ids: list[int] = []
        at = 0
        for match in self._control.finditer(text):
            ids += [*self.encode(text[at : match.start()]), self._control_ids[match[0]]]
            at = match.end()
        return [*ids, *self.encode(text[at:])]

    def names_control(self, text: str) -> bool:
        """Whether the name of a control token stands in a text."""
        return self._control.search(text) is not None

    def control_id(self, name: str) -> int | None:
        """The id of a control token, None where the vocabulary has none of that name."""
        return self._control_ids.get(name)

    def control_name(self, token: int) -> str | None:
        """How a control token is written in the vocabulary, None where that has no such token."""
        return next((text for text, id_ in self._control_ids.items() if id_ == token), None)

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def token_bytes(self, token: int) -> bytes:
        """The bytes a token stands for; empty for control tokens."""
        return self._bytes[token]

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of `tokens`; an incomplete character at the end is left out."""
        data = b"".join(self._bytes[t] for t in tokens)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            tail = len(data) - error.start < 4 and error.end == len(data)
            return data[: error.start].decode("utf-8") if tail else data.decode("utf-8", "replace")

    def heal(self, text: str) -> tuple[str, bytes]:
        """Cut the last piece off `text`, so that what follows may merge with it.

        Returns the shortened text and the bytes the continuation must begin with. White space before the cursor is
        cut together with the line end it would merge with.
        """
        tail = text[-_TAIL:]
        last = next(reversed(list(_PIECES.finditer(tail))), None)
        if last is None:
            return text, b""
        cut = len(text) - (len(tail) - last.start())
        return text[:cut], _encodable(text[cut:]).encode("utf-8")

    def forced(self, required: bytes) -> list[int]:
        """The tokens that must come first when `required` is too long for any single token, whatever a model says.

        What they leave over of `required` is covered by some token.
        """
        tokens: list[int] = []
        at = 0
        while at < len(required):
            options = self.continuations(required[at:])
            if len(options) != 1 or len(self._bytes[options[0]]) >= len(required) - at:
                break
            tokens.append(options[0])
            at += len(self._bytes[options[0]])
        return tokens

    def continuations(self, required: bytes) -> list[int]:
        """Tokens that may come next when the following bytes must begin with `required`.

        Tokens that cover all of `required` where there are any, else the longest that covers a beginning of it: after
        "as" a model may well want " f", but not if "il" must follow.
        """
        if not required:
            raise ValueError("nothing is required")
        covering = []
        for piece, index in islice(self._sorted, bisect_left(self._sorted, (required, -1)), None):
            if not piece.startswith(required):
                break
            covering.append(index)
        if covering:
            return covering
        beginnings = (self._exact.get(required[:n]) for n in range(len(required) - 1, 0, -1))
        return [index for index in beginnings if index is not None][:1]


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
