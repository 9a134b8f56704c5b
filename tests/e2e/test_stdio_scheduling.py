"""One live request per document, debounce, cancellation, failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lsp_editor import Editor
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

pytestmark = pytest.mark.e2e

SLOW = [{"mode": "fim", "insert": "x()", "delay_ms": 2000}]
CANCELLED = -32800


def ask(editor: Editor, name: str, line: int, character: int, msg_id: int) -> asyncio.Future[Any]:
    """Send the request now; the answer comes later."""
    return asyncio.wrap_future(
        editor.client.protocol.send_request(
            lsp.TEXT_DOCUMENT_INLINE_COMPLETION,
            editor.inline_params(name, line, character),
            msg_id=msg_id,
        )
    )


def error_codes(results: list[Any]) -> list[int]:
    return [result.code for result in results if isinstance(result, JsonRpcException)]


async def test_a_newer_request_supersedes_the_older_one_and_stops_its_work(
    editor: Editor,
) -> None:
    await editor.start([{"mode": "fim", "when": {"regex": "b$"}, "insert": "c"}, *SLOW])
    editor.open("a.py", "a\n")
    older = ask(editor, "a.py", 0, 1, 900)
    await editor.wait_for_calls(1)
    editor.type("a.py", 0, 1, "b")
    newer = ask(editor, "a.py", 0, 2, 901)
    with pytest.raises(JsonRpcException) as caught:
        await older
    assert caught.value.code == CANCELLED
    assert (await newer).items[0].insert_text == "c"
    assert len(editor.calls("cancelled")) == 1
    assert (await editor.status())["superseded"] == 1


async def test_twelve_fast_keys_leave_one_live_request(editor: Editor) -> None:
    rules = [{"mode": "fim", "when": {"regex": "twelve_keys!$"}, "insert": "done"}, *SLOW]
    await editor.start(rules, options={"debounceMs": 60})
    editor.open("a.py", "\n")
    requests = []
    for column, key in enumerate("twelve_keys!"):
        editor.type("a.py", 0, column, key)
        requests.append(ask(editor, "a.py", 0, column + 1, 1000 + column))
    assert (await editor.status())["pending"] == 1
    results = await asyncio.gather(*requests, return_exceptions=True)
    assert error_codes(results) == [CANCELLED] * 11
    assert results[-1].items[0].insert_text == "done"
    assert len(editor.calls()) == 1  # the debounce spared the model the other eleven
    assert (await editor.status())["pending"] == 0


async def test_the_next_edit_request_supersedes_too_but_not_across_documents(
    editor: Editor,
) -> None:
    rules = [
        {"mode": "fim", "insert": "x()", "delay_ms": 400},
        {"mode": "next_edit", "replace": {"old": "foo", "new": "bar"}},
    ]
    await editor.start(rules, options={"deadlineMs": 10_000})
    editor.open("a.py", "foo\n")
    editor.open("b.py", "b\n")
    editor.type("a.py", 1, 0, "z")
    mine = ask(editor, "a.py", 0, 1, 910)
    await editor.wait_for_calls(1)
    other = ask(editor, "b.py", 0, 1, 911)
    assert len((await editor.next_edit("a.py"))["edits"]) == 1
    results = await asyncio.gather(mine, other, return_exceptions=True)
    assert error_codes(results) == [CANCELLED]
    assert results[1] is not None


async def test_the_clients_cancel_stops_the_sampler(editor: Editor) -> None:
    await editor.start(SLOW)
    editor.open("a.py", "a\n")
    request = ask(editor, "a.py", 0, 1, 920)
    await editor.wait_for_calls(1)
    editor.client.cancel_request(lsp.CancelParams(id=920))
    with pytest.raises(JsonRpcException) as caught:
        await request
    assert caught.value.code == CANCELLED
    await editor.wait_for_calls(1, "cancelled")
    assert (await editor.status())["pending"] == 0


async def test_closing_the_document_withdraws_its_request(editor: Editor) -> None:
    await editor.start(SLOW)
    editor.open("a.py", "a\n")
    request = ask(editor, "a.py", 0, 1, 930)
    await editor.wait_for_calls(1)
    editor.client.text_document_did_close(
        lsp.DidCloseTextDocumentParams(
            text_document=lsp.TextDocumentIdentifier(uri=editor.uri("a.py"))
        )
    )
    with pytest.raises(JsonRpcException):
        await request
    await editor.wait_for_calls(1, "cancelled")


async def test_an_explicit_request_does_not_wait(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "insert": "x()"}], options={"debounceMs": 5000})
    editor.open("a.py", "a\n")
    item = await asyncio.wait_for(editor.inline("a.py", 0, 1, kind=1), 4)
    assert item is not None


async def test_the_deadline_ends_the_work(editor: Editor) -> None:
    await editor.start(SLOW, options={"deadlineMs": 50})
    editor.open("a.py", "a\n")
    assert (await editor.inline("a.py", 0, 1)) is None
    assert (await editor.reason()) == "deadline"
    assert len(editor.calls("expired")) == 1


async def test_a_failing_model_is_left_alone_and_told_once_an_episode(editor: Editor) -> None:
    rules = [
        {"mode": "fim", "raise": "out of memory", "times": 2},
        {"mode": "fim", "when": {"regex": "ok$"}, "insert": "ay"},
        {"mode": "fim", "raise": "again"},
    ]
    await editor.start(rules)
    editor.open("a.py", "a\nok\n")
    reasons = []
    for _ in range(6):
        assert (await editor.inline("a.py", 0, 1)) is None
        reasons.append(await editor.reason())
    assert reasons == ["model-failed"] + ["backing-off"] * 5
    assert len(editor.calls()) == 1
    await asyncio.sleep(1.05)
    assert (await editor.inline("a.py", 0, 1)) is None
    assert len(editor.calls()) == 2
    (message,) = [m.message for m in editor.client.messages]
    assert "RuntimeError: out of memory" in message
    await asyncio.sleep(2.05)
    assert (await editor.inline("a.py", 1, 2)) is not None  # well again: the episode is over
    assert (await editor.inline("a.py", 0, 1)) is None
    await editor.status()
    assert len(editor.client.messages) == 2
