"""What the server does while nobody asks: the answer after an accept, the place of the cursor."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lsp_editor import Editor, suggestion_id

pytestmark = pytest.mark.e2e

RENAME = [{"mode": "next_edit", "replace": {"old": "foo", "new": "bar"}}]
SLOW = [RENAME[0] | {"delay_ms": 300}]
TEXT = "x = foo\ny = foo\nz = foo\nw = foo\n"
AHEAD = {"ahead": True}
RESTED_S = 0.8


async def renaming(editor: Editor, rules: Any = RENAME, **options: Any) -> dict[str, Any]:
    """A document in which the first `foo` has just become `bar`; the next edit that is offered."""
    await editor.start(rules, script=AHEAD, **options)
    editor.open("a.py", TEXT)
    editor.change("a.py", (0, 4, 0, 7, "bar"))
    (edit,) = (await editor.next_edit("a.py", 0, 7))["edits"]
    return edit  # type: ignore[no-any-return]


async def accept(editor: Editor, edit: dict[str, Any]) -> int:
    """Apply an edit as an editor does; the line it is in."""
    await editor.command("redraft.accept", suggestion_id(edit))
    start, end = edit["range"]["start"], edit["range"]["end"]
    editor.change(
        "a.py", (start["line"], start["character"], end["line"], end["character"], edit["text"])
    )
    return int(start["line"])


async def test_one_accept_after_the_other_finds_its_answer_ready(editor: Editor) -> None:
    edit = await renaming(editor)
    seen = []
    for asked in (2, 3, 4):
        await editor.wait_for_calls(asked, "end")  # nobody has asked for it
        seen.append(line := await accept(editor, edit))
        answer = (await editor.next_edit("a.py", line, 7))["edits"]
        assert len(editor.calls()) == asked
        if answer:
            (edit,) = answer
    assert seen == [1, 2, 3]
    assert answer == []
    status = await editor.status()
    assert status["predictions"] == 4
    assert status["outcomes"] == {"accepted": 3}


async def test_the_column_of_the_cursor_does_not_matter(editor: Editor) -> None:
    """Neovim's normal mode puts the cursor on the last character."""
    edit = await renaming(editor)
    await editor.wait_for_calls(2, "end")
    line = await accept(editor, edit)
    assert (await editor.next_edit("a.py", line, 6))["edits"][0]["range"]["start"]["line"] == 2
    assert len(editor.calls()) == 2


async def test_the_answer_that_is_being_made_is_waited_for(editor: Editor) -> None:
    edit = await renaming(editor, SLOW)
    await editor.wait_for_calls(2)
    line = await accept(editor, edit)
    assert (await editor.next_edit("a.py", line, 7))["edits"]
    assert len(editor.calls()) == 2
    assert editor.calls("cancelled") == []


async def test_it_gives_way_to_what_the_user_does_instead(editor: Editor) -> None:
    await renaming(editor, SLOW)
    await editor.wait_for_calls(2)
    editor.change("a.py", (3, 0, 3, 1, "v"))
    await editor.wait_for_calls(1, "cancelled")
    await editor.next_edit("a.py", 3, 1)
    assert len(editor.calls()) == 3


async def test_an_answer_for_another_text_is_not_given(editor: Editor) -> None:
    await renaming(editor)
    await editor.wait_for_calls(2, "end")
    editor.change("a.py", (1, 4, 1, 7, "barn"))
    (edit,) = (await editor.next_edit("a.py", 1, 8))["edits"]
    assert edit["range"]["start"] == {"line": 2, "character": 4}
    assert len(editor.calls()) == 3


async def test_a_completion_is_followed_by_the_next(editor: Editor) -> None:
    rules = [
        {"mode": "fim", "when": {"regex": r"= $"}, "insert": "first("},
        {"mode": "fim", "when": {"regex": r"first\($"}, "insert": "second)"},
    ]
    await editor.start(rules, script=AHEAD)
    editor.open("a.py", "x =\n")
    editor.type("a.py", 0, 3, " ")
    item = await editor.inline("a.py", 0, 4)
    assert item is not None
    await editor.wait_for_calls(2, "end")
    await editor.command("redraft.accept", suggestion_id(item))
    editor.type("a.py", 0, 4, "first(")
    item = await editor.inline("a.py", 0, 10)
    assert item is not None
    assert item.insert_text == "second)"
    assert len(editor.calls()) == 2


@pytest.mark.parametrize("why", ["setting", "predictor"])
async def test_it_can_be_switched_off_and_is_off_for_predictors_that_cost(
    editor: Editor, why: str
) -> None:
    options = {"workAhead": False} if why == "setting" else {}
    await editor.start(RENAME, script=AHEAD if why == "setting" else {}, options=options)
    editor.open("a.py", TEXT)
    editor.change("a.py", (0, 4, 0, 7, "bar"))
    assert (await editor.next_edit("a.py", 0, 7))["edits"]
    move(editor, 3, 0)
    await asyncio.sleep(RESTED_S)
    assert len(editor.calls()) == 1
    assert editor.calls("prepare") == []


def move(editor: Editor, line: int, character: int, name: str = "a.py") -> None:
    place = {
        "textDocument": {"uri": editor.uri(name)},
        "position": {"line": line, "character": character},
    }
    editor.client.protocol.notify("redraft/didMoveCursor", place)


async def test_the_place_where_the_cursor_rests_is_read(editor: Editor) -> None:
    await editor.start(RENAME, script=AHEAD)
    editor.open("a.py", TEXT)
    for line in (1, 2, 3):
        move(editor, line, 2)
    await editor.wait_for_calls(1, "prepare")
    await asyncio.sleep(RESTED_S)
    (note,) = editor.calls("prepare")
    assert (note["mode"], note["cursor"]) == ("fim", TEXT.index("w") + 2)


async def test_a_place_is_read_after_what_is_better_has_been_done(editor: Editor) -> None:
    await renaming(editor, SLOW)
    move(editor, 3, 2)  # while the suggestion is read
    await editor.wait_for_calls(1, "prepare")
    assert len(editor.calls("end")) == 2
    assert editor.calls("prepare")[0]["cursor"] == TEXT.index("w") + 2


async def test_what_may_not_be_completed_is_not_read_and_nonsense_harms_nobody(
    editor: Editor,
) -> None:
    await editor.start(
        RENAME, script=AHEAD, options={"disabledLanguages": ["markdown"], "logLevel": "error"}
    )
    editor.open("a.md", TEXT, "markdown")
    editor.open(".env", "KEY=1\n", "plaintext")
    move(editor, 1, 0, "a.md")
    move(editor, 0, 3, ".env")
    move(editor, 0, 3, "never-opened.py")
    for params in ({}, [], {"textDocument": {"uri": 3}}, {"textDocument": {"uri": "x"}}):
        editor.client.protocol.notify("redraft/didMoveCursor", params)
    await asyncio.sleep(RESTED_S)
    assert editor.calls("prepare") == []
    editor.open("a.py", TEXT)
    move(editor, 999, 999)
    await editor.wait_for_calls(1, "prepare")
    assert editor.calls("prepare")[0]["cursor"] == len(TEXT)
