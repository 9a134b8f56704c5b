"""What became of a suggestion, as clients report it: commands and notifications.

Responsible for their names, also those of other servers that clients send. Knows nothing of what is
made of an outcome.
"""

from __future__ import annotations

from collections.abc import Callable

from lsp_server.suggestions import SuggestionBook

ACCEPT = "redraft.accept"
PARTLY_ACCEPT = "redraft.partlyAccept"
REJECT = "redraft.reject"
IGNORE = "redraft.ignore"
SHOWN = "redraft.shown"

DID_SHOW_COMPLETION = "textDocument/didShowCompletion"
DID_SHOW_INLINE_EDIT = "textDocument/didShowInlineEdit"
DID_PARTIALLY_ACCEPT = "textDocument/didPartiallyAcceptCompletion"
DID_FOCUS = "textDocument/didFocus"

_ALIASES = {
    "github.copilot.didAcceptCompletionItem": ACCEPT,
    "github.copilot.didAcceptNextEditSuggestionItem": ACCEPT,
    "github.copilot.didRejectNextEditSuggestionItem": REJECT,
    "github.copilot.didIgnoreNextEditSuggestionItem": IGNORE,
}


def commands(book: SuggestionBook) -> dict[str, Callable[..., None]]:
    """Each command's name and what it does; all take the suggestion's id, `partlyAccept` also the
    accepted length in UTF-16 units."""

    def partly(suggestion_id: object = "", length: object = None) -> None:
        book.accept_partly(str(suggestion_id), length if isinstance(length, int) else None)

    plain: dict[str, Callable[..., None]] = {
        ACCEPT: lambda i="", *rest: book.accept(str(i)),
        REJECT: lambda i="", *rest: book.reject(str(i)),
        IGNORE: lambda i="", *rest: book.ignore(str(i)),
        SHOWN: lambda i="", *rest: book.shown(str(i)),
        PARTLY_ACCEPT: partly,
    }
    return plain | {alias: plain[name] for alias, name in _ALIASES.items()}
