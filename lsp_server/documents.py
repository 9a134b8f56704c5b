"""The open documents: their text, version and language, kept in step with the editor.

Responsible for applying didOpen, didChange and didClose, for telling what each change did in code
points, and for noticing that a change brought back an earlier text. Knows nothing of edit history,
suggestions or policy; whoever needs them listens.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lsprotocol import types as lsp

from diffing.buffer import TextBuffer
from diffing.edits import Edit, compose
from diffing.policy import BINARY, MAX_TEXT_CHARS, TOO_LARGE, content_reason
from diffing.positions import Encoding, Position

_REMEMBERED_TEXTS = 64
_PROBED_CHARS = 8192
_ODD = re.compile("[\ufffd\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document at one moment."""

    uri: str
    path: str
    version: int
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Change:
    """What one didChange did. `edits` count code points of `before`; `steps` are the single edits
    in the order in which they were made, each in coordinates after the ones before it."""

    uri: str
    path: str
    before: str
    edits: tuple[Edit, ...]
    steps: tuple[Edit, ...]
    previous_version: int
    version: int


class Document:
    """One open document. `path` is how history and prompts name it."""

    def __init__(self, item: lsp.TextDocumentItem, path: str, encoding: Encoding) -> None:
        self.uri = item.uri
        self.path = path
        self.language = item.language_id
        self.version = item.version
        self.buffer = TextBuffer(item.text, encoding)
        self.restored = False
        """Whether the last change brought back an earlier text: an undo, or a redo."""
        self._earlier: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED_TEXTS)
        self._refusal: tuple[int, str | None] | None = None

    @property
    def text(self) -> str:
        return self.buffer.text

    @property
    def too_large(self) -> bool:
        """Too long to predict in: it is kept in step, but leaves no history."""
        return len(self.buffer) > MAX_TEXT_CHARS

    @property
    def content_reason(self) -> str | None:
        """Why the text itself is not one to predict in: its size, its lines, or that it is none."""
        if self.too_large:
            return TOO_LARGE
        if self._refusal is None or self._refusal[0] != self.version:
            reason = content_reason(self.text) or (BINARY if _looks_binary(self.text) else None)
            self._refusal = (self.version, reason)
        return self._refusal[1]

    def snapshot(self) -> Snapshot:
        return Snapshot(self.uri, self.path, self.version, self.text, self.language)

    def position(self, offset: int) -> lsp.Position:
        """The place of a code point offset, in the client's units."""
        line, character = self.buffer.position_at(offset)
        return lsp.Position(line=line, character=character)

    def range(self, start: int, end: int) -> lsp.Range:
        return lsp.Range(start=self.position(start), end=self.position(end))

    def apply(
        self, changes: Sequence[lsp.TextDocumentContentChangeEvent], version: int
    ) -> Change | None:
        """Make the changes of one didChange. None for a document that is too large to follow."""
        large = self.too_large
        before = "" if large else self.text
        previous, self.version = self.version, version
        steps = tuple(self._apply_one(change) for change in changes)
        if large or self.too_large:
            self.restored = False
            self._earlier.clear()
            return None
        edits: tuple[Edit, ...] = ()
        for step in steps:
            edits = compose(edits, (step,))
        self._remember(before, edits)
        return Change(self.uri, self.path, before, edits, steps, previous, version)

    def _apply_one(self, change: lsp.TextDocumentContentChangeEvent) -> Edit:
        if isinstance(change, lsp.TextDocumentContentChangePartial):
            start, end = change.range.start, change.range.end
            return self.buffer.change(
                Position(start.line, start.character),
                Position(end.line, end.character),
                change.text,
            )
        return self.buffer.replace_all(change.text)

    def _remember(self, before: str, edits: tuple[Edit, ...]) -> None:
        typed = len(edits) == 1 and edits[0].start == edits[0].end and len(edits[0].new_text) <= 2
        key = (len(self.text), hash(self.text))
        self.restored = not typed and self.text != before and key in self._earlier
        self._earlier.append((len(before), hash(before)))


class DocumentStore:
    """All open documents, by uri."""

    def __init__(self, path_of: Callable[[str], str]) -> None:
        self.encoding: Encoding = "utf-16"
        self._path_of = path_of
        self._documents: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._documents.values()))

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, uri: str) -> Document | None:
        return self._documents.get(uri)

    def by_path(self, path: str) -> Document | None:
        return next((d for d in self._documents.values() if d.path == path), None)

    def open(self, item: lsp.TextDocumentItem) -> Document:
        document = Document(item, self._path_of(item.uri), self.encoding)
        self._documents[item.uri] = document
        return document

    def change(self, params: lsp.DidChangeTextDocumentParams) -> Change | None:
        """Apply a didChange. None when there is nothing to tell: unknown or too large."""
        document = self._documents.get(params.text_document.uri)
        if document is None:
            return None
        return document.apply(params.content_changes, params.text_document.version)

    def close(self, uri: str) -> Document | None:
        return self._documents.pop(uri, None)


def _looks_binary(text: str) -> bool:
    """Whether many characters are such as no text has: what a client makes of a binary file."""
    probe = text[:_PROBED_CHARS]
    return len(_ODD.findall(probe)) * 10 > len(probe)
