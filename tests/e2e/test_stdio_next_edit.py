"""redraft/nextEdit, its alias, and what clients report about suggestions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lsp_editor import Editor, suggestion_id
from lsprotocol import types as lsp

pytestmark = pytest.mark.e2e

RENAME = [{"mode": "next_edit", "replace": {"old": "foo", "new": "bar"}}]
TEXT = "x = foo\ny = 1\nz = foo + foo\n"


async def renaming(editor: Editor, rules: Any = RENAME, **options: Any) -> None:
    """A document in which the first `foo` has just become `bar`."""
    await editor.start(rules, **options)
    editor.open("a.py", TEXT)
    editor.change("a.py", (0, 4, 0, 7, "bar"))


@pytest.mark.parametrize("method", ["redraft/nextEdit", "textDocument/copilotInlineEdit"])
async def test_the_answer_has_the_known_shape(editor: Editor, method: str) -> None:
    await renaming(editor)
    result = await editor.next_edit("a.py", 0, 7, method=method, context={"triggerKind": 2})
    (edit,) = result["edits"]
    assert edit == {
        "text": "bar",
        "range": {"start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 7}},
        "textDocument": {"uri": editor.uri("a.py"), "version": 2},
        "command": {
            "title": edit["command"]["title"],
            "command": "redraft.accept",
            "arguments": [suggestion_id(edit)],
        },
    }


async def test_several_edits_are_minimal_and_share_an_id(editor: Editor) -> None:
    whole = [{"start": 0, "end": 28, "new_text": "x = bar\ny = 1\nz = bar + bar"}]
    rules = [
        {
            "mode": "next_edit",
            "when": {"path": "all.py"},
            "replace": RENAME[0]["replace"] | {"all": True},
        },
        {"mode": "next_edit", "edits": whole},
    ]
    await renaming(editor, rules)
    (edit,) = (await editor.next_edit("a.py"))["edits"]
    assert edit["text"] == "bar + bar"  # one edit, without the lines that stay
    assert edit["range"]["start"] == {"line": 2, "character": 4}
    editor.open("all.py", TEXT)
    first, second, third = (await editor.next_edit("all.py"))["edits"]
    assert suggestion_id(first) == suggestion_id(second) == suggestion_id(third)
    assert [e["range"]["start"]["line"] for e in (first, second, third)] == [0, 2, 2]


async def test_versions_must_agree(editor: Editor) -> None:
    await renaming(editor)
    assert (await editor.next_edit("a.py", version=1)) == {"edits": [], "reason": "stale-version"}
    assert (await editor.next_edit("a.py", version=3)) == {"edits": [], "reason": "stale-version"}
    assert editor.calls() == []


async def test_without_any_edit_there_is_no_question(editor: Editor) -> None:
    await editor.start(RENAME)
    editor.open("a.py", TEXT)
    assert (await editor.next_edit("a.py")) == {"edits": [], "reason": "no-edits-yet"}


async def test_diagnostics_and_related_files_reach_the_model(editor: Editor) -> None:
    (editor.folder / "helper.py").write_text("def helper(): ...\n")
    await editor.start(RENAME)
    editor.open("other.py", "import a\n")
    editor.type("other.py", 1, 0, "a.run()\n")
    editor.open("a.py", "import helper\nx = foo\n")
    diagnostic = {
        "severity": "error",
        "message": "undefined name foo",
        "range": {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 7}},
    }
    await editor.next_edit("a.py", diagnostics=[diagnostic])
    (call,) = editor.calls()
    assert call["related"] == ["other.py", "helper.py"]
    assert "+a.run()" in call["history"][0]


async def test_a_suggestion_elsewhere_is_carried_and_served_again(editor: Editor) -> None:
    await renaming(editor)
    first = await editor.next_edit("a.py", 0, 7)
    again = await editor.next_edit("a.py", 1, 0)  # only the cursor has moved
    assert suggestion_id(again["edits"][0]) == suggestion_id(first["edits"][0])
    assert len(editor.calls()) == 1
    editor.change("a.py", (2, 4, 2, 7, "b"))  # the user begins the edit himself
    (edit,) = (await editor.next_edit("a.py", 2, 5))["edits"]
    assert edit["text"] == "ar"
    assert edit["range"]["start"] == edit["range"]["end"] == {"line": 2, "character": 5}
    assert len(editor.calls()) == 1


async def test_a_rejected_edit_is_not_proposed_again_even_when_it_moves(editor: Editor) -> None:
    await renaming(editor)
    (edit,) = (await editor.next_edit("a.py", 2, 0))["edits"]
    await editor.command("redraft.reject", suggestion_id(edit))
    rejected = {"edits": [], "reason": "already-rejected"}
    assert (await editor.next_edit("a.py", 2, 0)) == rejected
    editor.type("a.py", 0, 0, "# a comment above\n")
    assert (await editor.next_edit("a.py", 3, 0)) == rejected
    editor.change("a.py", (3, 4, 3, 7, "food"))
    (edit,) = (await editor.next_edit("a.py", 3, 0))["edits"]  # the other one
    assert edit["range"]["start"] == {"line": 3, "character": 11}
    assert (await editor.status())["outcomes"] == {"rejected": 1}


COMMANDS = [
    ("redraft.accept", "accepted"),
    ("github.copilot.didAcceptNextEditSuggestionItem", "accepted"),
    ("github.copilot.didAcceptCompletionItem", "accepted"),
    ("redraft.reject", "rejected"),
    ("github.copilot.didRejectNextEditSuggestionItem", "rejected"),
    ("redraft.ignore", "ignored"),
    ("github.copilot.didIgnoreNextEditSuggestionItem", "ignored"),
]


async def test_outcome_commands(editor: Editor) -> None:
    await editor.start(RENAME)
    expected: dict[str, int] = {}
    for command, outcome in COMMANDS:
        name = f"{command}.py"
        editor.open(name, TEXT)
        editor.change(name, (0, 4, 0, 7, "bar"))
        (edit,) = (await editor.next_edit(name))["edits"]
        await editor.command("redraft.shown", suggestion_id(edit))
        for _ in range(2):  # a second time changes nothing
            await editor.command(command, suggestion_id(edit))
        expected[outcome] = expected.get(outcome, 0) + 1
        assert (await editor.status())["outcomes"] == expected
    for short in ("accept", "partlyAccept", "reject", "ignore", "shown"):
        await editor.command(f"redraft.{short}", "no-such-id")
        await editor.command(f"redraft.{short}")
    await editor.command("redraft.partlyAccept", "no-such-id", 3)
    assert (await editor.status())["outcomes"] == expected


async def test_notifications_of_what_is_seen_and_partly_taken(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "insert": "one two three"}])
    editor.open("a.py", "\n")
    item = await editor.inline("a.py", 0, 0)
    assert item is not None
    told = {"command": {"arguments": [suggestion_id(item)]}}
    notify = editor.client.protocol.notify
    notify("textDocument/didShowCompletion", {"item": told})
    notify("textDocument/didShowInlineEdit", {"item": told})
    notify("textDocument/didFocus", {"textDocument": {"uri": editor.uri("a.py")}})
    notify("textDocument/didFocus", {})
    notify("textDocument/didPartiallyAcceptCompletion", {"item": told, "acceptedLength": 4})
    editor.type("a.py", 0, 0, "one ")
    rest = await editor.inline("a.py", 0, 4)
    assert rest is not None
    assert rest.insert_text == "two three"
    assert suggestion_id(rest) == suggestion_id(item)
    editor.type("a.py", 0, 4, "two three")
    assert (await editor.status())["outcomes"] == {"accepted": 1}


async def test_an_answer_that_comes_too_late_is_dropped_but_not_forgotten(editor: Editor) -> None:
    rules = [{"mode": "fim", "when": {"regex": "pri$"}, "insert": "nt()", "delay_ms": 300}]
    await editor.start(rules)
    editor.open("a.py", "pri\n")
    sent = editor.client.protocol.send_request(
        lsp.TEXT_DOCUMENT_INLINE_COMPLETION, editor.inline_params("a.py", 0, 3)
    )

    await editor.wait_for_calls(1)
    editor.type("a.py", 0, 3, "n")
    assert (await asyncio.wrap_future(sent)).items == ()
    assert (await editor.reason()) == "stale"
    item = await editor.inline("a.py", 0, 4)
    assert item is not None
    assert item.insert_text == "t()"
    assert len(editor.calls()) == 1


@pytest.mark.parametrize(
    ("saved", "opened", "told"),
    [
        (b"a = 1\nb = a\n", "c = 1\nb = a\n", "+c = 1"),
        (b"\xef\xbb\xbfa = 1\r\nb = a\r\n", "a = 1\nb = c\n", "+b = c"),
        (b"\xef\xbb\xbfa = 1\r\nb = a\r\n", "a = 1\nb = a\n", None),
        (b"a = 1\r\nb = a\r\n", "a = 1\r\nb = c\r\n", "+b = c"),
        (b"a = 1\n\0", "c = 1\n", None),
        (None, "c = 1\n", None),
    ],
)
async def test_what_is_not_saved_when_a_file_is_opened_is_history(
    editor: Editor, saved: bytes | None, opened: str, told: str | None
) -> None:
    if saved is not None:
        (editor.folder / "a.py").write_bytes(saved)
    await editor.start([{"mode": "next_edit"}])
    editor.open("a.py", opened)
    await editor.next_edit("a.py")
    if told is None:
        assert editor.calls() == []  # nothing has changed, so nothing is asked
        return
    (call,) = editor.calls()
    (diff,) = call["history"]
    lines = diff.splitlines()
    assert [line for line in lines if line[:1] == "+"][-1] == told
    assert sum(line[:1] == "-" and line[:3] != "---" for line in lines) == 1
