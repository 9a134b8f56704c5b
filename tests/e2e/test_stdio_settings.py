"""Settings, status, progress and the policy, as a client sees them."""

from __future__ import annotations

import asyncio

import pytest
from lsp_editor import Editor, capabilities
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

pytestmark = pytest.mark.e2e

ANY = [{"mode": "fim", "insert": "something"}]


async def told(editor: Editor, count: int = 1) -> list[str]:
    """Messages shown to the user, once there are `count` of them."""
    async with asyncio.timeout(10):
        while len(editor.client.messages) < count:
            await asyncio.sleep(0.02)
    await editor.status()
    return [message.message for message in editor.client.messages]


async def test_bad_options_give_one_message_and_keep_the_defaults(editor: Editor) -> None:
    options = {"debounceMs": "fast", "gate": "loud", "inline": {"enable": 3}, "debouncems": 1}
    await editor.start(ANY, options=options)
    (message,) = await told(editor)
    for name in ("debounceMs", "gate", "inline.enable", "debouncems"):
        assert f"`{name}`" in message
    assert "did you mean `debounceMs`" in message
    editor.open("a.py", "\n")
    assert (await editor.inline("a.py", 0, 0)) is not None


async def test_options_that_are_no_object(editor: Editor) -> None:
    await editor.start(ANY, options=[1])
    (message,) = await told(editor)
    assert "must be an object, not a list" in message


async def test_configuration_changes_take_effect_and_complain(editor: Editor) -> None:
    await editor.start(ANY)
    editor.open("a.py", "\n")
    editor.open("b.md", "\n", language="markdown")

    def configure(settings: object) -> None:
        editor.client.workspace_did_change_configuration(
            lsp.DidChangeConfigurationParams(settings=settings)  # type: ignore[arg-type]
        )

    configure({"redraft": {"disabledLanguages": ["markdown"], "debounceMs": -1}})
    (message,) = await told(editor)
    assert "`debounceMs` must be a whole number from 0 to 5000, not -1" in message
    assert (await editor.inline("b.md", 0, 0)) is None
    assert (await editor.reason()) == "language-disabled"
    configure({"inline.enable": False})
    assert (await editor.inline("a.py", 0, 0)) is None
    assert (await editor.reason()) == "disabled"
    configure({"enable": False})
    assert (await editor.status())["state"] == "disabled"
    configure({})
    await editor.wait_for_state("ready")
    assert (await editor.inline("a.py", 0, 0)) is not None
    assert len(editor.client.messages) == 1


async def test_settings_are_pulled_from_a_client_that_keeps_them(editor: Editor) -> None:
    await editor.start(
        ANY,
        caps=capabilities(configuration=True),
        configuration={"redraft": {"enable": False, "wrong": 1}},
        ready=False,
    )
    assert "`wrong`" in (await told(editor))[0]
    await editor.wait_for_state("disabled")
    editor.client.set_configuration({"redraft": {"enable": True}})
    editor.client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams(settings=None)
    )
    await editor.wait_for_state("ready")


async def test_status_says_what_is_going_on(editor: Editor) -> None:
    await editor.start([{"mode": "fim", "when": {"regex": "a$"}, "insert": "bc", "forwards": 3}])
    editor.open("a.py", "a\n\n")
    await editor.inline("a.py", 0, 1)
    await editor.inline("a.py", 1, 0)
    status = await editor.status()
    assert status["state"] == "ready"
    assert status["model"] == "scripted"
    assert status["counts"] == {"model": 1, "no-prediction": 1}
    assert status["lastReason"] == "no-prediction"
    assert status["pending"] == 0
    assert (status["requests"], status["predictions"]) == (2, 2)
    assert status["lastLatencyMs"] >= 0
    assert editor.client.statuses[0]["busy"] is True  # type: ignore[attr-defined]
    assert editor.client.statuses[-1] == {"busy": False, "kind": "Normal", "message": ""}  # type: ignore[attr-defined]


async def test_loading_shows_progress_and_the_newest_question_waits_for_it(editor: Editor) -> None:
    await editor.start(ANY, script={"load_ms": 900}, caps=capabilities(progress=True), ready=False)
    editor.open("a.py", "\n")
    first = asyncio.ensure_future(editor.inline("a.py", 0, 0))
    assert (await editor.status())["state"] == "loading"
    assert (await editor.inline("a.py", 0, 0)) is not None
    status = await editor.wait_for_state("ready")
    assert status["counts"] == {"cancelled": 1, "model": 1}
    with pytest.raises(JsonRpcException):
        await first
    ((begin, end),) = editor.client.progress_reports.values()
    assert (begin.kind, begin.title) == ("begin", "Redraft")
    assert (end.kind, end.message) == ("end", "scripted")
    assert (await editor.inline("a.py", 0, 0)) is not None


async def test_a_question_of_while_the_model_loads_is_not_answered_for_another_text(
    editor: Editor,
) -> None:
    await editor.start(ANY, script={"load_ms": 900}, ready=False)
    editor.open("a.py", "\n")
    asked = asyncio.ensure_future(editor.inline("a.py", 0, 0))
    await editor.status()
    editor.type("a.py", 0, 0, "x")
    assert (await asked) is None
    assert (await editor.reason()) == "loading"


async def test_a_model_that_cannot_be_loaded_is_told_once(editor: Editor) -> None:
    await editor.start(ANY, script={"load_error": "the weights are cut off"}, ready=False)
    status = await editor.wait_for_state("error")
    assert "the weights are cut off" in status["message"]
    editor.open("a.py", "\n")
    for _ in range(3):
        assert (await editor.inline("a.py", 0, 0)) is None
    assert (await editor.reason()) == "model-error"
    (message,) = await told(editor)
    assert message.startswith("Redraft: the model could not be loaded: script ")
    assert message.endswith("the weights are cut off")
    assert editor.client.statuses[-1]["kind"] == "Error"  # type: ignore[attr-defined]
    good = editor.folder / "good.json"
    good.write_text('[{"insert": "better"}]')
    editor.client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams(settings={"model": f"scripted:{good}"})
    )
    await editor.wait_for_state("ready")
    assert (await editor.inline("a.py", 0, 0)) is not None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".env", "secret-file"),
        ("deploy/id_rsa", "secret-file"),
        ("generated/a.py", "excluded-by-setting"),
        ("vscode-remote://host/a.py", "unsupported-scheme"),
    ],
)
async def test_the_policy_holds_for_documents_history_and_snippets(
    editor: Editor, name: str, reason: str
) -> None:
    await editor.start(ANY, options={"exclude": ["generated/"]})
    editor.open(name, "TOKEN=1\n")
    editor.type(name, 0, 7, "23456789")
    assert (await editor.inline(name, 0, 15)) is None
    assert (await editor.reason()) == reason
    editor.open("a.py", "\n")
    editor.type("a.py", 0, 0, "x")
    await editor.inline("a.py", 0, 1)
    (call,) = editor.calls()
    assert call["related"] == []
    assert not any("TOKEN" in diff for diff in call["history"])
    assert len(call["history"]) == 1


async def test_an_allowed_secret_is_read(editor: Editor) -> None:
    await editor.start(ANY, options={"allow": [".env.example"]})
    editor.open(".env.example", "TOKEN=\n")
    assert (await editor.inline(".env.example", 0, 6)) is not None


async def test_a_client_that_can_watch_is_asked_to(editor: Editor) -> None:
    known = editor.folder / "known.py"
    known.write_text("a = 1\n")
    await editor.start(ANY, caps=capabilities(watch=True), options={"watchFiles": "auto"})
    async with asyncio.timeout(10):
        while not editor.client.registrations:  # type: ignore[attr-defined]
            await asyncio.sleep(0.02)
    assert editor.client.registrations[0].method == "workspace/didChangeWatchedFiles"  # type: ignore[attr-defined]
    editor.open("known.py", "a = 1\n")
    await editor.inline("known.py", 0, 0)  # it was opened as it was saved
    editor.client.text_document_did_close(
        lsp.DidCloseTextDocumentParams(text_document=lsp.TextDocumentIdentifier(uri=known.as_uri()))
    )
    known.write_text("a = 2\n")
    editor.client.workspace_did_change_watched_files(
        lsp.DidChangeWatchedFilesParams(
            changes=[lsp.FileEvent(uri=known.as_uri(), type=lsp.FileChangeType.Changed)]
        )
    )
    editor.open("b.py", "\n")
    await editor.inline("b.py", 0, 0)
    assert "-a = 1\n+a = 2\n" in editor.calls()[-1]["history"][0]


async def test_our_own_watcher_sees_other_programs_write(editor: Editor) -> None:
    known = editor.folder / "known.py"
    known.write_text("a = 1\n")
    await editor.start(ANY, options={"watchFiles": "auto"})
    await asyncio.sleep(0.5)
    known.write_text("a = 2\n")
    editor.open("b.py", "\n")
    async with asyncio.timeout(10):
        while True:
            editor.type("b.py", 0, 0, "x")
            await editor.inline("b.py", 0, 1, kind=1)
            if any("+a = 2" in diff for diff in editor.calls()[-1]["history"]):
                break
            await asyncio.sleep(0.1)
