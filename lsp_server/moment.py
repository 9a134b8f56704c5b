"""A document at the moment of a question, and the request that the question becomes.

Responsible for freezing what the worker needs: the text as the model shall see it, the cursor, the
history, what is related. Knows nothing of scheduling, of suggestions or of when a question is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from diffing.edits import Edit, apply, compose, shrink
from lsp_server.documents import Document, Snapshot
from lsp_server.ghost import Selection
from lsp_server.related import Candidates, FileCache, related_snippets
from lsp_server.session import Session
from lsp_server.wire import Question
from model.protocol import Mode, Request


@dataclass(frozen=True, slots=True)
class Moment:
    """The document when the question came. `text` and `cursor` are what the model shall see: with
    the item that is selected in the completion menu applied, as `selection` says."""

    snapshot: Snapshot
    text: str
    cursor: int
    selection: Selection | None = None

    @classmethod
    def of(cls, question: Question, document: Document) -> Moment:
        snapshot = document.snapshot()
        buffer = document.buffer
        selected = question.selected
        if selected is None:
            return cls(snapshot, snapshot.text, buffer.offset_at(question.position))
        start, end = buffer.offset_at(selected.start), buffer.offset_at(selected.end)
        selection = Selection(start, max(start, end), selected.text)
        text = apply(snapshot.text, [Edit(*selection)])
        return cls(snapshot, text, start + len(selected.text), selection)

    def real_edits(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        """Edits of the text that the model saw as edits of the document."""
        text = self.snapshot.text
        if self.selection is not None:
            edits = compose((Edit(*self.selection),), edits)
        return tuple(e for edit in edits if (e := shrink(text, edit)) is not None)

    def request(
        self,
        mode: Mode,
        session: Session,
        diffs: tuple[str, ...],
        diagnostics: tuple[str, ...] = (),
    ) -> Callable[[], Request]:
        """How to make the request, in the worker: there the texts of related files are read."""
        return partial(
            _request,
            self,
            mode,
            diffs,
            diagnostics,
            session.candidates(),
            session.files,
            session.settings.max_tokens,
            session.mood.signals(),
        )


def _request(
    moment: Moment,
    mode: Mode,
    diffs: tuple[str, ...],
    diagnostics: tuple[str, ...],
    candidates: Candidates,
    files: FileCache,
    max_tokens: int,
    signals: dict[str, float],
) -> Request:
    path = moment.snapshot.path
    return Request(
        mode=mode,
        path=path,
        text=moment.text,
        cursor=moment.cursor,
        language=moment.snapshot.language,
        history=diffs,
        related=related_snippets(path, moment.text, candidates, files),
        diagnostics=diagnostics,
        max_tokens=max_tokens,
        signals=signals,
    )
