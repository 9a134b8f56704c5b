"""`textDocument/inlineCompletion`: ghost text at the cursor.

Responsible for the request and its answer. How a suggestion comes about is the pipeline's matter.
"""

from __future__ import annotations

from lsprotocol import types as lsp

from lsp_server.outcomes import ACCEPT
from lsp_server.pipeline import Pipeline
from lsp_server.wire import parse_question


async def inline_completion(pipeline: Pipeline, params: object) -> lsp.InlineCompletionList:
    """At most one item; its range is always there, on one line, and starts at the cursor.

    Silence is an empty list: on null, Neovim 0.12 leaves the ghost text of before in place.
    """
    answer = await pipeline.answer(parse_question("fim", params))
    if answer.suggestion is None or answer.document is None or answer.ghost is None:
        return lsp.InlineCompletionList(items=[])
    ghost = answer.ghost
    item = lsp.InlineCompletionItem(
        insert_text=ghost.new_text,
        range=answer.document.range(ghost.start, ghost.end),
        command=lsp.Command(
            title="Accept completion", command=ACCEPT, arguments=[answer.suggestion.id]
        ),
    )
    return lsp.InlineCompletionList(items=[item])
