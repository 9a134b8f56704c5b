"""When not to ask the model at all, with the reason.

Responsible for the rules that need no prediction: settings, policy, the nature of the document and
of the moment. Knows nothing of scheduling or of suggestions.
"""

from __future__ import annotations

from lsp_server.documents import Document
from lsp_server.settings import Settings
from lsp_server.wire import Question


def refusal(
    question: Question,
    document: Document | None,
    *,
    settings: Settings,
    verdict: str | None,
    edited: bool,
) -> str | None:
    """Why this request gets no suggestion, or None.

    `verdict` is what the file policy says of the document, `edited` whether any edit is known.
    """
    if not _enabled(question, settings):
        return "disabled"
    if document is None:
        return "not-open"
    if document.language in settings.disabled_languages:
        return "language-disabled"
    if verdict is not None:
        return verdict
    if question.version is not None and question.version != document.version:
        return "stale-version"
    if document.content_reason is not None:
        return document.content_reason
    if question.selections > 1:
        return "multiple-selections"
    if document.restored and not question.invoked:
        return "after-undo"
    if question.mode == "next_edit" and not edited:
        return "no-edits-yet"
    return None


def _enabled(question: Question, settings: Settings) -> bool:
    of_mode = settings.inline_enable if question.mode == "fim" else settings.next_edit_enable
    return settings.enable and of_mode
