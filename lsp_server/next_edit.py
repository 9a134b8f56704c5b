"""`redraft/nextEdit`, also under the name `textDocument/copilotInlineEdit`.

Responsible for the request and its answer, in the shape that next-edit clients know. How a
suggestion comes about is the pipeline's matter.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types as lsp

from lsp_server.outcomes import ACCEPT
from lsp_server.pipeline import Answer, Pipeline
from lsp_server.wire import parse_question

METHOD = "redraft/nextEdit"
ALIAS = "textDocument/copilotInlineEdit"


async def next_edit(pipeline: Pipeline, params: object) -> dict[str, Any]:
    """`{"edits": [...]}`, in document order; an empty list comes with the reason."""
    answer = await pipeline.answer(parse_question("next_edit", params))
    if answer.suggestion is None:
        return {"edits": [], "reason": answer.reason}
    return {"edits": _edits(answer)}


def _edits(answer: Answer) -> list[dict[str, Any]]:
    suggestion, document = answer.suggestion, answer.document
    assert suggestion is not None
    assert document is not None
    return [
        {
            "text": edit.new_text,
            "range": document.range(edit.start, edit.end),
            "textDocument": {"uri": document.uri, "version": document.version},
            "command": lsp.Command(
                title="Accept next edit", command=ACCEPT, arguments=[suggestion.id]
            ),
        }
        for edit in suggestion.edits
    ]
