"""Documents stay in step with the editor, in each encoding."""

from __future__ import annotations

import asyncio

import pytest
from lsp_editor import Editor, capabilities, suggestion_id

pytestmark = pytest.mark.e2e

LINE = "é😀e\u0301x\u2028y = 1"
"""é is 2 bytes, the emoji 4 bytes or 2 units, the separator ends no line."""


@pytest.mark.parametrize(
    ("encodings", "chosen", "x_column"),
    [
        (("utf-8", "utf-16"), "utf-8", 10),
        (("utf-16",), "utf-16", 6),
        (("utf-32", "utf-8"), "utf-32", 5),
        (("utf-7",), "utf-16", 6),
    ],
)
async def test_encoding_is_the_clients_first_and_columns_count_in_it(
    editor: Editor, encodings: tuple[str, ...], chosen: str, x_column: int
) -> None:
    rules = [{"mode": "fim", "when": {"regex": "xQ$"}, "insert": "uick"}]
    await editor.start(rules, caps=capabilities(encodings))
    assert editor.result is not None
    assert editor.result.capabilities.position_encoding == chosen
    editor.open("a.py", f"first\n{LINE}\n")
    editor.type("a.py", 1, x_column, "Q")
    item = await editor.inline("a.py", 1, x_column + 1)
    assert item is not None
    assert item.insert_text == "uick"
    assert item.range is not None
    assert (item.range.start.line, item.range.start.character) == (1, x_column + 1)
    assert item.range.end == item.range.start
    assert editor.calls()[0]["cursor"] == len("first\n") + 6


async def test_edits_after_astral_characters_come_back_in_units_of_the_client(
    editor: Editor,
) -> None:
    await editor.start([{"mode": "next_edit", "replace": {"old": "old_name", "new": "new_name"}}])
    editor.open("a.py", "😀😀 old_name\n")
    editor.type("a.py", 1, 0, "z")
    (edit,) = (await editor.next_edit("a.py"))["edits"]
    assert edit["text"] == "new"  # minimal: `_name` stays
    assert edit["range"] == {
        "start": {"line": 0, "character": 5},
        "end": {"line": 0, "character": 8},
    }


async def test_several_changes_of_one_notification_apply_in_order(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "when": {"text": "one\ntwo\nthree\n"}, "insert": "!"}])
    editor.open("a.py", "one\n")
    editor.change("a.py", (1, 0, 1, 0, "three\n"), (1, 0, 1, 0, "tow\n"), (1, 1, 1, 3, "wo"))
    assert (await editor.inline("a.py", 0, 3)) is not None


async def test_whole_document_changes_are_taken(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "when": {"regex": "ab$"}, "insert": "c"}])
    editor.open("a.py", "nothing\n")
    editor.change("a.py", "ab")
    item = await editor.inline("a.py", 0, 2)
    assert item is not None
    assert item.insert_text == "c"


async def test_form_feed_and_unicode_separators_end_no_line(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "when": {"text": "a\fb\u2029\x85c\nZd"}, "insert": "!"}])
    editor.open("a.py", "a\fb\u2029\x85c\nxd")
    editor.change("a.py", (1, 0, 1, 1, "Z"))
    assert (await editor.inline("a.py", 1, 1)) is not None


async def test_crlf_documents_get_crlf_and_the_model_sees_none(editor: Editor) -> None:
    rules = [{"mode": "fim", "when": {"regex": "^a\\nb\\($"}, "insert": "\n    c\n)"}]
    await editor.start(rules)
    editor.open("a.py", "a\r\nb(\r\nd\r\n")
    item = await editor.inline("a.py", 1, 2)
    assert item is not None
    assert item.insert_text == "\r\n    c\r\n)"
    assert item.range is not None
    assert (item.range.start.line, item.range.start.character) == (1, 2)


async def test_a_closed_document_gets_no_answer(editor: Editor) -> None:
    await editor.start([{"insert": "x"}])
    assert (await editor.inline("never.py", 0, 0)) is None
    assert (await editor.reason()) == "not-open"


async def test_history_holds_the_users_edits_and_marks_accepted_ones(editor: Editor) -> None:
    rules = [{"mode": "next_edit", "replace": {"old": "foo", "new": "bar"}}]
    await editor.start(rules)
    editor.open("a.py", "x = foo\n\n\n\n\n\n\n\n\n\n\n\ny = foo\n")
    editor.change("a.py", (0, 4, 0, 7, "bar"))
    (edit,) = (await editor.next_edit("a.py"))["edits"]
    start, end = edit["range"]["start"], edit["range"]["end"]
    editor.change(
        "a.py",
        (start["line"], start["character"], end["line"], end["character"], edit["text"]),
    )
    await editor.command("redraft.accept", suggestion_id(edit))
    await editor.next_edit("a.py")
    user, accepted = editor.calls()[-1]["history"]
    assert user.startswith("--- a/a.py\n+++ b/a.py\n")
    assert "-x = foo\n+x = bar\n" in user
    assert accepted.startswith("// User accepted prediction:\n--- a/a.py\n")
    assert "-y = foo\n+y = bar\n" in accepted
    assert (await editor.status())["outcomes"] == {"accepted": 1}


async def test_a_request_sees_the_text_at_its_own_place_in_the_stream(editor: Editor) -> None:
    """A change that follows in the same write is not part of what the request is about."""
    rule = {"mode": "fim", "when": {"regex": "before$"}, "insert": "!", "delay_ms": 300}
    await editor.start([rule])
    editor.open("a.py", "before\n")
    sent = editor.client.protocol.send_request(
        "textDocument/inlineCompletion", editor.inline_params("a.py", 0, 6, kind=1)
    )
    editor.change("a.py", "after that\n")
    assert (await asyncio.wrap_future(sent)).items == ()
    assert (await editor.reason()) == "stale"
    assert [call["cursor"] for call in editor.calls()] in ([6], [])
