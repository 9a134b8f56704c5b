"""The document store."""

from __future__ import annotations

from lsprotocol import types as lsp

from diffing.edits import apply
from lsp_server.documents import Document, DocumentStore


def make(text: str) -> Document:
    item = lsp.TextDocumentItem(uri="file:///a.py", language_id="python", version=1, text=text)
    return Document(item, "a.py", "utf-16")


def partial(start: tuple[int, int], end: tuple[int, int], text: str) -> object:
    return lsp.TextDocumentContentChangePartial(
        range=lsp.Range(
            start=lsp.Position(line=start[0], character=start[1]),
            end=lsp.Position(line=end[0], character=end[1]),
        ),
        text=text,
    )


def test_a_change_tells_what_it_did_in_code_points() -> None:
    document = make("😀 one\ntwo\n")
    change = document.apply(
        [partial((0, 3), (0, 6), "1"), partial((1, 0), (1, 3), "2")],  # type: ignore[list-item]
        2,
    )
    assert change is not None
    assert document.text == "😀 1\n2\n"
    assert apply(change.before, change.edits) == document.text
    assert [(e.start, e.end) for e in change.edits] == [(2, 5), (6, 9)]
    assert (change.previous_version, change.version) == (1, 2)


def test_undo_is_noticed_but_not_retyping() -> None:
    document = make("a")

    def becomes(text: str) -> bool:
        document.apply(
            [lsp.TextDocumentContentChangeWholeDocument(text=text)], document.version + 1
        )
        return document.restored

    def types(column: int, text: str) -> bool:
        document.apply([partial((0, column), (0, column), text)], document.version + 1)  # type: ignore[list-item]
        return document.restored

    assert types(1, "b") is False
    assert becomes("a") is True  # an undo
    assert types(1, "b") is False  # the same key again
    assert becomes("ab") is False  # nothing changed
    assert becomes("new text") is False
    assert becomes("ab") is True


def test_content_that_is_not_predicted_in() -> None:
    assert make("x = 1\n").content_reason is None
    assert make("x\0y").content_reason == "binary"
    assert make("\ufffd\x01" * 50).content_reason == "binary"
    assert make("a line with one \ufffd in it").content_reason is None
    assert make("\x1b[1mcolour\x1b[0m\f\n").content_reason is None
    assert make("x" * 30_000).content_reason == "line-too-long"


def test_the_verdict_on_content_follows_the_text() -> None:
    document = make("x\0y")
    assert document.content_reason == "binary"
    document.apply([lsp.TextDocumentContentChangeWholeDocument(text="xy")], 2)
    assert document.content_reason is None


def test_the_store_ignores_what_it_does_not_know() -> None:
    store = DocumentStore(lambda uri: uri.rsplit("/", 1)[1])
    params = lsp.DidChangeTextDocumentParams(
        text_document=lsp.VersionedTextDocumentIdentifier(uri="file:///a.py", version=2),
        content_changes=[lsp.TextDocumentContentChangeWholeDocument(text="x")],
    )
    assert store.change(params) is None
    assert store.close("file:///a.py") is None
    item = lsp.TextDocumentItem(uri="file:///a.py", language_id="python", version=1, text="")
    store.open(item)
    assert store.change(params) is not None
    assert store.by_path("a.py") is store.get("file:///a.py")
    assert store.get("file:///a.py").snapshot().text == "x"  # type: ignore[union-attr]
