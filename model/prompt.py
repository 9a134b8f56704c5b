"""From texts to token ids: how a file, its history and its neighbours are written for the model.

Responsible for the prompt format and for encoding it so that equal text gives equal tokens wherever it stands: texts
are encoded in pieces that begin at line ends, which byte-level BPE never merges across, so a changed line leaves the
tokens of all others alone. Knows nothing of caches, drafts or decoding.

A file is the control token `filename`, its path, and its lines; a recent edit is a unified diff, written as the file it
changes. This is what the base saw of repositories when it was trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from model.config import ModelConfig
from model.context import Context
from model.tokenizer import Tokenizer

MEMORY = 16_384


def pieces(text: str) -> list[str]:
    """Split so that each piece but the first begins with the line ends before its line.

    Blank lines belong to the piece of the line that follows them.
    """
    found: list[str] = []
    start = 0
    at = text.find("\n")
    while at >= 0:
        if at > start and text[start:at].strip():
            found.append(text[start:at])
            start = at
        at = text.find("\n", at + 1)
    found.append(text[start:])
    return found


@dataclass(frozen=True, slots=True)
class FimPrompt:
    """`tokens` up to a boundary before the cursor, `required` the bytes that lie between.

    `reference` are tokens that drafts may copy from.
    """

    tokens: list[int]
    required: bytes
    reference: list[int]


class PromptWriter:
    """Writes prompts for one tokenizer; remembers the tokens of recent pieces."""

    def __init__(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        self.tokenizer = tokenizer
        self._file = [config.special["filename"]] if "filename" in config.special else []
        self._suffix = [config.special["fim_suffix"]] if config.infill else []
        self._piece = lru_cache(MEMORY)(lambda piece: tuple(tokenizer.encode(piece)))

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, piece by piece."""
        ids: list[int] = []
        for piece in pieces(text):
            ids.extend(self._piece(piece))
        return ids

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def file(self, path: str, text: str) -> list[int]:
        """A file's header and text; the text's first line is preceded by a line end."""
        return [*self._file, *self.encode(f"{path}\n{text}")]

    def preamble(self, context: Context) -> list[int]:
        """Related files, then recent edits, the least-changing first."""
        ids: list[int] = []
        for snippet in context.related:
            ids += self.file(snippet.path, snippet.text)
        for diff in context.history:
            ids += self.diff(diff)
        return ids

    def diff(self, diff: str) -> list[int]:
        """A recent edit, written as the file that it changes."""
        return [*self._file, *self.encode(diff.rstrip("\n"))]

    def fim(self, path: str, context: Context) -> FimPrompt:
        """The prompt for the cursor at the end of `context.prefix`.

        A model that was trained to fill in reads the text after the cursor first; for another it is only something
        to copy from.
        """
        prefix, required = self.tokenizer.heal(f"{path}\n{context.prefix}")
        suffix = self.encode(context.suffix)
        first = [*self._suffix, *suffix] if self._suffix and suffix else []
        file = [*self._file, *self.encode(prefix)]
        return FimPrompt([*first, *self.preamble(context), *file], required, suffix)

    def line_ends(self, path: str, context: Context, prompt: FimPrompt) -> list[tuple[int, int]]:
        """(line of the file, place of its last token in `prompt`) for every line with text but the cursor's."""
        cursor = context.line + context.prefix.count("\n")
        prefix, _ = self.tokenizer.heal(f"{path}\n{context.prefix}")
        ends: list[tuple[int, int]] = []
        if self._suffix and prompt.reference:
            ends += self._line_ends(context.suffix, cursor, len(self._suffix))
        begin = len(prompt.tokens) - self.count(prefix)
        ends += self._line_ends(prefix, context.line - 1, begin)
        return [(line, at) for line, at in ends if line != cursor and line >= context.line]

    def _line_ends(self, text: str, line: int, at: int) -> list[tuple[int, int]]:
        """(line, place of its last token) of the pieces of `text`, whose first line and first token are given."""
        ends = []
        for piece in pieces(text):
            line += piece.count("\n")
            at += len(self._piece(piece))
            ends.append((line, at - 1))
        return ends


def present_lines(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last` (exclusive), each preceded by its line end."""
    return "".join("\n" + line for line in lines[first:last])
