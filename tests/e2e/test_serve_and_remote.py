"""Redraft as a client of Redraft: a server with the remote backend, and `redraft serve` with the embedded model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsp_editor import ROOT, Editor

from lsp_server.cli import COMMANDS
from model.remote.consent import Consents, ServiceAddress

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.weights,
    pytest.mark.skipif("serve" not in COMMANDS, reason="this Redraft has no service"),
]

TEXT = (
    "def total(prices, rate):\n    subtotal = sum(prices)\n    tax = subtotal * rate\n"
    "    return subtotal + tax\n"
)


@pytest.fixture
def service(home: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a service on a port of its own, which wants a token."""
    token = tmp_path / "token"
    token.write_text("a-token-for-tests")
    log = (tmp_path / "serve.txt").open("w+b")
    command = [sys.executable, "-m", "lsp_server", "serve", "--port", "0", "--threads", "1"]
    process = subprocess.Popen(
        [*command, "--token-file", str(token)],
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "PYTHONPATH": str(ROOT), "REDRAFT_HOME": str(home)},
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    if found is None:
        process.wait(10)
        log.seek(0)
        pytest.skip(f"the service does not start here: {line}{log.read().decode()[-200:]}")
    yield found[0]
    process.terminate()
    process.wait(30)
    process.stdout.close()
    log.close()


async def test_the_service_answers_what_the_local_model_would(
    home: Path, editor: Editor, service: str
) -> None:
    Consents(home / "services.json").allow(ServiceAddress.of(service), key="a-token-for-tests")
    await editor.start(
        options={
            "backend": "remote",
            "remote.url": service,
            "remote.model": "redraft-135m",
            "deadlineMs": 60_000,
        },
        environment={"REDRAFT_HOME": str(home)},
    )
    editor.open("total.py", TEXT)
    editor.change("total.py", (1, 4, 1, 12, "net"))
    result = await editor.next_edit("total.py", 1, 7, context={"triggerKind": 1})
    assert [edit["text"] for edit in result["edits"]][:1] == ["net"], await editor.status()
    editor.open(
        "box.py", "class Box:\n    def __init__(self, width, depth):\n        self.width = \n"
    )
    item = await editor.inline("box.py", 2, 21, kind=1)
    assert item is not None, await editor.status()
    assert item.insert_text.split()[0] == "width"
    backend = (await editor.status())["backend"]
    assert (backend["kind"], backend["state"], backend["problem"]) == ("remote", "closed", "")
