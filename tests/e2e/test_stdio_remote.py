"""The remote backend as a user meets it: an editor, a server, and a fake service that keeps what it hears."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fake_service import FakeService, Heard, Reply, completion, edit, refusal
from lsp_editor import Editor
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcRequestCancelled
from raw_client import RawClient

from model.remote.consent import Consents, ServiceAddress

pytestmark = pytest.mark.e2e

KEY = "sk-test-0123456789"
SECRET = "SWORDFISH"
FUNCTION = "def f(a):\n    return b\n"


def replies(heard: Heard) -> Reply:
    if heard.path == "/v1/fim/completions":
        return completion("completed")
    return edit("```\n" + FUNCTION.replace("return b", "return a") + "```")


@pytest_asyncio.fixture
async def service() -> AsyncIterator[FakeService]:
    with FakeService(replies) as service:
        yield service


def allow(home: Path, service: FakeService, **more: Any) -> None:
    Consents(home / "services.json").allow(ServiceAddress.of(service.url), **more)


async def start(editor: Editor, service: FakeService, *, ready: bool = True, **more: Any) -> None:
    options = {"backend": "remote", "remote.url": service.url, "deadlineMs": 10_000}
    await editor.start(
        options=options | more.pop("options", {}),
        environment={"REDRAFT_HOME": os.environ["REDRAFT_HOME"], **more.pop("environment", {})},
        ready=ready,
        **more,
    )


def messages(editor: Editor) -> list[str]:
    return [message.message for message in editor.client.messages]


async def test_nothing_is_sent_before_the_user_has_allowed_the_service(
    home: Path, editor: Editor, service: FakeService
) -> None:
    await start(editor, service, ready=False)
    status = await editor.wait_for_state("error")
    assert f"redraft remote allow {service.url}" in status["message"]
    editor.open("a.py", FUNCTION)
    editor.type("a.py", 1, 12, "c")
    assert (await editor.inline("a.py", 1, 13)) is None
    assert (await editor.reason()) == "model-error"
    assert service.connections == 0
    assert len(messages(editor)) == 1


async def test_completion_and_next_edit_from_an_allowed_service(
    home: Path, editor: Editor, service: FakeService
) -> None:
    allow(home, service, key_variable="TEST_KEY")
    await start(editor, service, environment={"TEST_KEY": KEY})
    editor.open("a.py", "x = \n")
    item = await editor.inline("a.py", 0, 4)
    assert item is not None
    assert item.insert_text == "completed"
    editor.open("b.py", FUNCTION.replace("f(a)", "f(b)"))
    editor.change("b.py", (0, 6, 0, 7, "a"))
    result = await editor.next_edit("b.py", 0, 7)
    (change,) = result["edits"]
    assert (change["text"], change["range"]["start"]) == ("a", {"line": 1, "character": 11})
    assert {one.headers["Authorization"] for one in service.heard} == {f"Bearer {KEY}"}
    status = await editor.status()
    assert status["backend"]["kind"] == "remote"
    assert status["backend"]["url"] == service.url + "/v1"
    assert status["backend"]["state"] == "closed"
    assert (status["model"], status["device"]) == ("mercury-edit-2", service.url + "/v1")
    (message,) = messages(editor)
    assert "the remote backend is on. Text around your cursor" in message
    assert service.url in message


async def test_switching_the_backend_on_is_told_once_in_each_folder(
    home: Path, editor: Editor, service: FakeService, tmp_path: Path
) -> None:
    allow(home, service)
    await start(editor, service)
    assert len(messages(editor)) == 1
    await editor.stop()
    editor.started = False
    await start(editor, service)
    assert messages(editor) == []
    other = Editor(tmp_path / "other")
    other.folder.mkdir()
    try:
        await start(other, service)
        assert len(messages(other)) == 1
    finally:
        await other.stop()


async def test_settings_that_come_later_cannot_switch_it_on_silently(
    home: Path, editor: Editor, service: FakeService
) -> None:
    await editor.start([{"mode": "fim", "insert": "local"}])
    assert (await editor.status())["backend"] == {"kind": "local"}
    settings = {"backend": "remote", "remote": {"url": service.url}}
    editor.client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams(settings={"redraft": settings})  # type: ignore[arg-type]
    )
    await editor.wait_for_state("error")
    status = await editor.status()
    assert (status["model"], status["device"]) == ("", "")
    backend = status["backend"]
    assert (backend["kind"], backend["url"], backend["state"]) == ("remote", service.url, "error")
    assert (
        f"which you have not allowed; nothing was sent. To allow it: redraft remote allow {service.url}"
        in backend["problem"]
    )
    editor.open("a.py", "x = \n")
    assert (await editor.inline("a.py", 0, 4)) is None
    assert service.connections == 0
    editor.client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams(settings={"redraft": {}})  # type: ignore[arg-type]
    )
    await editor.wait_for_state("ready")
    item = await editor.inline("a.py", 0, 4)
    assert item is not None
    assert item.insert_text == "local"


async def test_a_missing_key_is_one_clear_error(
    home: Path, editor: Editor, service: FakeService
) -> None:
    allow(home, service, key_variable="TEST_KEY_THAT_IS_NOT_SET")
    await start(editor, service, ready=False)
    status = await editor.wait_for_state("error")
    assert "TEST_KEY_THAT_IS_NOT_SET, which is not set" in status["message"]


async def test_a_newer_request_hangs_up_on_the_service(
    home: Path, editor: Editor, service: FakeService
) -> None:
    allow(home, service)
    service.replies = [Reply(hang=True)]
    await start(editor, service, options={"deadlineMs": 60_000})
    editor.open("a.py", "x = \n")
    first = asyncio.ensure_future(editor.inline("a.py", 0, 4))
    await asyncio.to_thread(service.wait_for, 1)
    second = await editor.inline("a.py", 0, 4)
    assert second is not None
    assert await asyncio.to_thread(service.hung_up.wait, 10)
    with pytest.raises(JsonRpcRequestCancelled):
        await first


async def test_trouble_is_told_once_whatever_is_typed(
    home: Path, editor: Editor, service: FakeService
) -> None:
    allow(home, service, key="sk-kept")
    service.default = refusal(500, "no memory for sk-kept")
    await start(editor, service)
    editor.open("a.py", "x = \n")
    for number in range(12):
        editor.type("a.py", 0, 4 + number, "y")
        assert (await editor.inline("a.py", 0, 5 + number)) is None
    status = await editor.status()
    told = [words for words in messages(editor) if "trouble" in words]
    assert len(told) == 1
    assert "status 500: no memory for ..." in told[0]
    assert status["backend"]["state"] in ("open", "half-open")
    assert "no memory" in status["backend"]["problem"]
    assert status["counts"]["unavailable"] == 1
    assert "status 500" in status["message"]
    assert editor.client.statuses[-1]["kind"] == "Warning"  # type: ignore[attr-defined]
    assert status["counts"]["remote-resting"] >= 1
    assert len(service.heard) < 12
    service.default = completion("better")
    async with asyncio.timeout(20):
        while (await editor.inline("a.py", 0, 16)) is None:
            await asyncio.sleep(0.2)
    status = await editor.status()
    assert (status["message"], status["backend"]["state"]) == ("", "closed")
    assert editor.client.statuses[-1]["kind"] == "Normal"  # type: ignore[attr-defined]


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


async def test_no_byte_of_an_excluded_file_is_sent(
    home: Path, editor: Editor, service: FakeService
) -> None:
    """Secrets are in open documents, in edits, in files on disk, in git's changes, in imports and in diagnostics."""
    allow(home, service)
    folder = editor.folder
    excluded = [".env", "server.pem", "id_rsa", "secrets_of_mine.py", "conf/credentials.json"]
    (folder / "conf").mkdir()
    for name in excluded:
        (folder / name).write_text("KEY = 'before'\n")
    (folder / "shared.py").write_text("def shared():\n    return 'SHARED_MARK'\n")
    (folder / "seen_on_disk.py").write_text("nothing\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-qm", "x")
    for name in excluded:
        (folder / name).write_text(f"KEY = '{SECRET}'\n")
    (folder / "shared.py").write_text("def shared():\n    return 'SHARED_MARK', 'GIT_MARK'\n")
    options = {"exclude": ["secrets_of_mine.py"], "gitHistory": True, "watchFiles": "on"}
    await start(editor, service, options=options)
    diagnostics = [
        {
            "severity": 1,
            "message": f"{SECRET} is not defined",
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}},
        }
    ]
    for name in excluded:
        editor.open(name, f"KEY = '{SECRET}'\n")
        editor.type(name, 0, 7, SECRET)
        assert (await editor.inline(name, 0, 8, kind=1)) is None
        assert (await editor.reason()) in ("secret-file", "excluded-by-setting")
        result = await editor.next_edit(name, 0, 8, diagnostics=diagnostics)
        assert result["edits"] == []
        (folder / name).write_text(f"KEY = '{SECRET} on disk'\n")
    assert service.connections == 0

    editor.open("shared.py", (folder / "shared.py").read_text())
    editor.type("shared.py", 1, 12, "TYPED_MARK ")
    text = f"import secrets_of_mine, shared\nfrom conf import credentials\n{FUNCTION}"
    editor.open("a.py", text)
    editor.type("a.py", 2, 6, "a")
    await editor.inline("a.py", 3, 12, kind=1)
    await editor.next_edit("a.py", 3, 10)
    await editor.next_edit("shared.py", 1, 10)
    for name in ("seen_on_disk.py", *excluded):
        (folder / name).write_text(
            f"KEY = '{SECRET} again'\n" if name in excluded else "DISK_MARK\n"
        )
    async with asyncio.timeout(20):  # the last proof that changes on disk have been seen
        while "DISK_MARK" not in service.everything():
            editor.type(
                "a.py", 3, 12, "x"
            )  # a suggestion that is alive would not be asked for again
            await editor.next_edit("a.py", 3, 13)
            await asyncio.sleep(0.1)
    heard = service.everything()
    assert {one.path for one in service.heard} == {"/v1/fim/completions", "/v1/edit/completions"}
    for mark in ("SHARED_MARK", "GIT_MARK", "TYPED_MARK"):
        assert mark in heard
    assert SECRET not in heard
    assert "before" not in heard
    for name in excluded:
        assert f"path: {name}" not in heard
        assert f"a/{name}" not in heard


def test_the_key_and_the_text_are_not_logged(home: Path, tmp_path: Path) -> None:
    with FakeService(replies) as service:
        allow(home, service, key=KEY)
        service.replies = [refusal(503, KEY), completion(SECRET), refusal(401, f"{KEY} is wrong")]
        with RawClient(tmp_path, environment={"REDRAFT_HOME": str(home)}) as client:
            client.start(**{"backend": "remote", "remote.url": service.url, "logLevel": "debug"})
            uri = client.open("a.py", f"{SECRET} = \n")
            client.inline(uri, 0, 12)
            client.change(uri, 2, [{"text": f"{SECRET} =  \n"}])
            client.inline(uri, 0, 13)
            status = client.request("redraft/status")
            assert service.heard[0].headers["Authorization"] == f"Bearer {KEY}"
            assert len(service.heard) == 3
            client.request("shutdown")
            client.notify("exit")
            client.exit_code()
            log = client.errors()
            shown = str(client.notifications)
        assert "trouble" in log
        assert "trouble" in shown
        for words in (log, shown, str(status)):
            assert KEY not in words
        assert SECRET not in log


async def test_what_is_excluded_later_is_forgotten(
    home: Path, editor: Editor, service: FakeService
) -> None:
    """An edit in the session, a change known from git, and an edit in a file that is gone since."""
    allow(home, service)
    folder = editor.folder
    for name in ("from_git.py", "edited.py", "gone.py"):
        (folder / name).write_text("KEY = 'before'\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    (folder / "from_git.py").write_text("KEY = 'FROM_GIT'\n")
    await start(editor, service, options={"gitHistory": True})
    for name in ("edited.py", "gone.py"):
        editor.open(name, "KEY = 'before'\n")
        editor.change(name, (0, 7, 0, 13, f"IN_{name[:4].upper()}"))
    editor.open("a.py", FUNCTION)
    editor.change("a.py", (1, 11, 1, 12, "c"))
    await editor.next_edit("a.py", 1, 12)
    for mark in ("FROM_GIT", "IN_EDIT", "IN_GONE"):
        assert mark in service.everything()
    service.heard.clear()
    editor.client.text_document_did_close(
        lsp.DidCloseTextDocumentParams(
            text_document=lsp.TextDocumentIdentifier(uri=editor.uri("gone.py"))
        )
    )
    (folder / "gone.py").unlink()
    settings = {
        **{"backend": "remote", "remote.url": service.url, "deadlineMs": 10_000},
        "exclude": ["from_git.py", "edited.py", "gone.py"],
    }
    editor.client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams(settings=settings)  # type: ignore[arg-type]
    )
    editor.change("a.py", (1, 11, 1, 12, "d"))
    await editor.next_edit("a.py", 1, 12)
    assert len(service.heard) == 1
    for mark in ("FROM_GIT", "IN_EDIT", "IN_GONE", "before"):
        assert mark not in service.everything()
