"""With the local backend no connection is opened, whatever the session does: a spy inside the server notes them all."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from fake_service import FakeService, completion
from lsp_editor import ROOT, Editor, capabilities, suggestion_id

from model.remote.consent import Consents, ServiceAddress

pytestmark = pytest.mark.e2e

SPY = Path(__file__).with_name("socket_spy")
TEXT = (
    "def total(prices, rate):\n    subtotal = sum(prices)\n    tax = subtotal * rate\n"
    "    return subtotal + tax\n"
)
RULES = [
    {"mode": "fim", "insert": "subtotal"},
    {"mode": "next_edit", "replace": {"old": "subtotal", "new": "net"}},
]


class Spied:
    """What the spy of one server has noted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment = {"SOCKET_SPY": str(path), "PYTHONPATH": f"{SPY}{os.pathsep}{ROOT}"}

    @property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    def about(self, kind: str) -> list[str]:
        return [line for line in self.lines if line.startswith(kind)]


@pytest.fixture
def spied(tmp_path: Path) -> Spied:
    return Spied(tmp_path / "sockets.txt")


def connections(editor: Editor) -> list[Any]:
    """Sockets of the internet families that the server's process has open, of whatever library."""
    return psutil.Process(editor.process.pid).net_connections("inet")


async def whole_session(editor: Editor) -> None:
    """Typing, both kinds of suggestion, accepting, rejecting, a change on disk, settings, status."""
    editor.open("total.py", TEXT)
    editor.change("total.py", (1, 4, 1, 12, "net"))
    result = await editor.next_edit("total.py", 1, 7, context={"triggerKind": 1})
    assert result["edits"], await editor.reason()
    await editor.command(
        "github.copilot.didAcceptNextEditSuggestionItem", suggestion_id(result["edits"][0])
    )
    editor.open("other.py", "from total import total\n\nprint(total([1], \n")
    editor.type("other.py", 2, 17, "2")
    item = await editor.inline("other.py", 2, 18, kind=1)
    if item is not None:
        await editor.command("redraft.reject", suggestion_id(item))
    (editor.folder / "third.py").write_text("changed = 'on disk'\n")
    await asyncio.sleep(0.3)
    await editor.inline("other.py", 2, 18, kind=1)
    assert (await editor.status())["counts"]["model"] >= 1
    assert connections(editor) == []


def only_git(spied: Spied) -> bool:
    programs = [line.split()[1] for line in spied.about("subprocess.Popen")]
    return all(Path(program).name == "git" for program in programs)


def repository(folder: Path) -> None:
    (folder / "third.py").write_text("as = 'it was'\n")
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *who, *command], cwd=folder, check=True, capture_output=True)


LOCAL = {"gitHistory": True, "watchFiles": "on", "deadlineMs": 60_000, "gate": "eager"}


async def test_a_session_with_scripted_answers(home: Path, editor: Editor, spied: Spied) -> None:
    repository(editor.folder)
    Consents(home / "services.json").allow(ServiceAddress.of("http://127.0.0.1:9"))
    options = LOCAL | {"remote.url": "http://127.0.0.1:9"}
    await editor.start(
        RULES, options=options, environment={**spied.environment, "REDRAFT_HOME": str(home)}
    )
    await whole_session(editor)
    await editor.stop()
    assert spied.lines[0] == "spy is there"
    assert spied.about("socket.") == []
    assert only_git(spied)


@pytest.mark.weights
async def test_a_session_with_the_embedded_model(home: Path, editor: Editor, spied: Spied) -> None:
    repository(editor.folder)
    environment = {**spied.environment, "REDRAFT_HOME": str(home), "REDRAFT_SCRIPT": ""}
    await editor.start(
        options=LOCAL | {"threads": 1},
        environment=environment,
        caps=capabilities(progress=True),
        ready=False,
    )
    await editor.wait_until(lambda status: status["state"] == "ready", timeout=120)
    await whole_session(editor)
    status = await editor.status()
    assert status["backend"] == {"kind": "local"}
    assert status["predictions"] >= 2
    await editor.stop()
    assert spied.lines[0] == "spy is there"
    assert spied.about("socket.") == []
    assert only_git(spied)


async def test_the_spy_sees_the_remote_backend(home: Path, editor: Editor, spied: Spied) -> None:
    """The one connection that there is goes to the service; without it the spy would prove nothing."""
    with FakeService(completion("x")) as service:
        Consents(home / "services.json").allow(ServiceAddress.of(service.url))
        await editor.start(
            options={"backend": "remote", "remote.url": service.url, "deadlineMs": 10_000},
            environment={**spied.environment, "REDRAFT_HOME": str(home)},
        )
        assert spied.about("socket.") == []
        editor.open("a.py", "y = \n")
        assert (await editor.inline("a.py", 0, 4)) is not None
        port = service.url.rsplit(":", 1)[1]
        assert spied.about("socket.connect") == [f"socket.connect ('127.0.0.1', {port})"]
        assert len(connections(editor)) == 1
