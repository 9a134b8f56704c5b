"""What became of a suggestion, as clients report it: commands and notifications.

Responsible for their names, also those of other servers that clients send. Knows nothing of what is
made of an outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
DID_MOVE_CURSOR = "redraft/didMoveCursor"

_ALIASES = {
    "github.copilot.didAcceptCompletionItem": ACCEPT,
    "github.copilot.didAcceptNextEditSuggestionItem": ACCEPT,
    "github.copilot.didRejectNextEditSuggestionItem": REJECT,
    "github.copilot.didIgnoreNextEditSuggestionItem": IGNORE,
}


def commands(book: SuggestionBook) -> dict[str, Callable[..., None]]:
    """Each command's name and what it does; all take the suggestion's id, `partlyAccept` also the
    accepted length in UTF-16 units. Whatever else comes is passed over."""

    def with_id(report: Callable[[str], None]) -> Callable[..., None]:
        def command(*arguments: Any) -> None:
            report(_id(arguments))

        return command

    def partly(*arguments: Any) -> None:
        length = arguments[1] if len(arguments) > 1 else None
        book.accept_partly(_id(arguments), length if isinstance(length, int) else None)

    plain: dict[str, Callable[..., None]] = {
        ACCEPT: with_id(book.accept),
        REJECT: with_id(book.reject),
        IGNORE: with_id(book.ignore),
        SHOWN: with_id(book.shown),
        PARTLY_ACCEPT: partly,
    }
    return plain | {alias: plain[name] for alias, name in _ALIASES.items()}


def _id(arguments: tuple[Any, ...]) -> str:
    return arguments[0] if arguments and isinstance(arguments[0], str) else ""
