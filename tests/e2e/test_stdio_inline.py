"""textDocument/inlineCompletion."""

from __future__ import annotations

import pytest
from lsp_editor import Editor, suggestion_id
from lsprotocol import types as lsp

pytestmark = pytest.mark.e2e

PRINT = [{"mode": "fim", "when": {"regex": "pri$"}, "insert": "nt(value)"}]


def span(item: lsp.InlineCompletionItem) -> tuple[int, int, int, int]:
    assert item.range is not None
    start, end = item.range.start, item.range.end
    return start.line, start.character, end.line, end.character


async def test_the_capability_is_advertised(editor: Editor) -> None:
    await editor.start()
    assert editor.result is not None
    server = editor.result.capabilities
    assert server.inline_completion_provider is not None
    assert server.text_document_sync.change == lsp.TextDocumentSyncKind.Incremental  # type: ignore[union-attr]
    assert "redraft.accept" in server.execute_command_provider.commands  # type: ignore[union-attr]
    assert editor.result.server_info is not None
    assert editor.result.server_info.name == "redraft"


async def test_an_item_has_text_range_and_command(editor: Editor) -> None:
    await editor.start(PRINT)
    editor.open("a.py", "pri\n")
    item = await editor.inline("a.py", 0, 3)
    assert item is not None
    assert item.insert_text == "nt(value)"
    assert span(item) == (0, 3, 0, 3)
    assert item.command is not None
    assert item.command.command == "redraft.accept"
    assert len(item.command.arguments or []) == 1


async def test_silence_is_an_empty_list_with_a_reason(editor: Editor) -> None:
    await editor.start(PRINT)
    editor.open("a.py", "nothing\n")
    assert (await editor.inline("a.py", 0, 7)) is None
    assert (await editor.reason()) == "no-prediction"


async def test_a_replacement_of_the_rest_of_the_line_starts_at_the_cursor(editor: Editor) -> None:
    edits = [{"start": 2, "end": 9, "new_text": "oo(one, two)"}]
    await editor.start([{"mode": "fim", "edits": edits}])
    editor.open("a.py", "x foo(bad)\n")
    item = await editor.inline("a.py", 0, 3)
    assert item is None  # the "f" before the cursor would have to go
    assert (await editor.reason()) == "not-at-cursor"


async def test_text_before_the_cursor_is_kept_and_cut_off(editor: Editor) -> None:
    edits = [{"start": 2, "end": 9, "new_text": "foo(one, two"}]
    await editor.start([{"mode": "fim", "edits": edits}])
    editor.open("a.py", "x foo(bad)\n")
    item = await editor.inline("a.py", 0, 6)
    assert item is not None
    assert (item.insert_text, span(item)) == ("one, two", (0, 6, 0, 9))


async def test_selected_completion_info_is_honoured(editor: Editor) -> None:
    rules = [{"mode": "fim", "when": {"regex": "^x = print$"}, "insert": "(value)"}]
    await editor.start(rules)
    editor.open("a.py", "x = pri\n")
    selected = {
        "text": "print",
        "range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 7}},
    }
    item = await editor.inline("a.py", 0, 7, selectedCompletionInfo=selected)
    assert item is not None
    assert (item.insert_text, span(item)) == ("print(value)", (0, 4, 0, 7))


async def test_a_live_suggestion_serves_a_selected_item_that_it_begins_with(
    editor: Editor,
) -> None:
    await editor.start(PRINT)
    editor.open("a.py", "pri\n")
    await editor.inline("a.py", 0, 3)

    def selected(text: str) -> dict:
        edge = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
        return {"text": text, "range": edge}

    item = await editor.inline("a.py", 0, 3, selectedCompletionInfo=selected("print"))
    assert item is not None
    assert (item.insert_text, span(item)) == ("print(value)", (0, 0, 0, 3))
    assert len(editor.calls()) == 1
    assert (await editor.inline("a.py", 0, 3, selectedCompletionInfo=selected("prime"))) is None
    assert len(editor.calls()) == 2


async def test_typing_through_needs_no_model_call(editor: Editor) -> None:
    await editor.start(PRINT)
    editor.open("a.py", "pri\n")
    first = await editor.inline("a.py", 0, 3)
    assert first is not None
    text = "nt(v"
    for typed, key in enumerate(text, start=1):
        editor.type("a.py", 0, 2 + typed, key)
        item = await editor.inline("a.py", 0, 3 + typed)
        assert item is not None
        assert item.insert_text == "nt(value)"[typed:]
        assert span(item) == (0, 3 + typed, 0, 3 + typed)
        assert suggestion_id(item) == suggestion_id(first)
    assert len(editor.calls()) == 1
    editor.type("a.py", 0, 7, "X")
    assert (await editor.inline("a.py", 0, 8)) is None
    assert len(editor.calls()) == 2
    assert (await editor.status())["counts"]["live"] == len(text)


async def test_an_autoclosed_bracket_is_typed_through(editor: Editor) -> None:
    await editor.start(PRINT)
    editor.open("a.py", "pri\n")
    await editor.inline("a.py", 0, 3)
    editor.type("a.py", 0, 3, "nt")
    editor.type("a.py", 0, 5, "()")  # the editor closes it; the cursor stays inside
    item = await editor.inline("a.py", 0, 6)
    assert item is not None
    assert item.insert_text == "value"
    assert len(editor.calls()) == 1


async def test_an_unrelated_edit_asks_again_but_keeps_a_good_suggestion(editor: Editor) -> None:
    rules = [
        {"mode": "fim", "when": {"regex": "#\\npri$"}, "insert": "vate()", "confidence": 0.91},
        {"mode": "fim", "when": {"regex": "pri$"}, "insert": "nt()", "confidence": 0.9},
    ]
    await editor.start(rules)
    editor.open("a.py", "\npri\n")
    first = await editor.inline("a.py", 1, 3)
    editor.type("a.py", 0, 0, "#")
    second = await editor.inline("a.py", 1, 3)
    assert len(editor.calls()) == 2
    assert first is not None
    assert second is not None
    assert second.insert_text == "nt()"  # not "vate()": hardly surer, so no flicker
    assert suggestion_id(second) == suggestion_id(first)


async def test_a_much_surer_prediction_replaces_the_live_one(editor: Editor) -> None:
    rules = [
        {"mode": "fim", "when": {"regex": "#\\npri$"}, "insert": "vate()", "confidence": 0.95},
        {"mode": "fim", "when": {"regex": "pri$"}, "insert": "nt()", "confidence": 0.6},
    ]
    await editor.start(rules)
    editor.open("a.py", "\npri\n")
    await editor.inline("a.py", 1, 3)
    editor.type("a.py", 0, 0, "#")
    second = await editor.inline("a.py", 1, 3)
    assert second is not None
    assert second.insert_text == "vate()"
    assert (await editor.status())["outcomes"] == {"replaced": 1}


async def test_invoked_is_content_with_less(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "insert": "x = 1", "confidence": 0.3}])
    editor.open("a.py", "\n")
    assert (await editor.inline("a.py", 0, 0, kind=2)) is None
    assert (await editor.reason()) == "low-confidence"
    item = await editor.inline("a.py", 0, 0, kind=1)
    assert item is not None
    assert item.insert_text == "x = 1"


async def test_the_gate_setting_moves_the_threshold(editor: Editor) -> None:
    await editor.start(
        [{"mode": "fim", "insert": "x = 1", "confidence": 0.6}], options={"gate": "quiet"}
    )
    editor.open("a.py", "\n")
    assert (await editor.inline("a.py", 0, 0)) is None
    editor.client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams(settings={"redraft": {"gate": "eager"}})
    )
    assert (await editor.inline("a.py", 0, 0)) is not None


async def test_extra_and_missing_fields(editor: Editor) -> None:
    await editor.start(PRINT)
    editor.open("a.py", "pri\n")
    params = editor.inline_params("a.py", 0, 3)
    params["textDocument"]["version"] = 1
    params["data"] = {"anything": True}
    assert (await editor.request("textDocument/inlineCompletion", params)).items
    params["textDocument"]["version"] = 7
    assert (await editor.request("textDocument/inlineCompletion", params)).items == ()
    assert (await editor.reason()) == "stale-version"
    del params["position"]
    with pytest.raises(Exception, match="position") as caught:
        await editor.request("textDocument/inlineCompletion", params)
    assert caught.value.code == -32602  # type: ignore[attr-defined]


async def test_a_cursor_far_outside_is_clamped(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "when": {"regex": "end$"}, "insert": "ing"}])
    editor.open("a.py", "the\nend")
    item = await editor.inline("a.py", 99, 99)
    assert item is not None
    assert span(item) == (1, 3, 1, 3)


async def test_after_undo_there_is_no_automatic_suggestion(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "insert": "something()"}])
    editor.open("a.py", "a\n")
    editor.change("a.py", (0, 0, 0, 1, "long text"))
    editor.change("a.py", (0, 0, 0, 9, "a"))
    assert (await editor.inline("a.py", 0, 1)) is None
    assert (await editor.reason()) == "after-undo"
    assert (await editor.inline("a.py", 0, 1, kind=1)) is not None


async def test_several_cursors_get_none(editor: Editor) -> None:
    await editor.start(PRINT)
    editor.open("a.py", "pri\n")
    params = editor.inline_params("a.py", 0, 3, selections=[{}, {}])
    assert (await editor.request("textDocument/inlineCompletion", params)).items == ()
    assert (await editor.reason()) == "multiple-selections"
