"""The server with the model that is shipped in the package."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from lsp_editor import ROOT, Editor, capabilities

pytestmark = [pytest.mark.e2e, pytest.mark.weights]

EMBEDDED = {"REDRAFT_SCRIPT": ""}
PATIENT = {"deadlineMs": 60_000, "gate": "eager", "threads": 1}


async def test_real_suggestions_for_real_keystrokes(editor: Editor) -> None:
    await editor.start(
        environment=EMBEDDED, options=PATIENT, caps=capabilities(progress=True), ready=False
    )
    async with asyncio.timeout(120):
        status = await editor.wait_until(lambda s: s["state"] != "loading", timeout=120)
    assert status["state"] == "ready", status["message"]
    assert status["model"]
    assert status["device"]
    text = (
        "class Box:\n    def __init__(self, width, height, depth):\n        self.width = width\n"
        "        self.height = height\n        self.depth = dept\n"
    )
    editor.open("box.py", text)
    editor.type("box.py", 4, 25, "h")
    editor.change("box.py", (4, 20, 4, 26, ""))
    async with asyncio.timeout(60):
        item = await editor.inline("box.py", 4, 20, kind=1)
    report = (await editor.status())["lastPrediction"]
    assert report["forwards"] > 0
    assert 0 <= report["confidence"] <= 1
    assert item is not None
    assert item.insert_text.split()[0] == "depth"


async def test_a_rename_leads_to_an_edit_elsewhere(editor: Editor) -> None:
    await editor.start(environment=EMBEDDED, options=PATIENT, ready=False)
    await editor.wait_until(lambda s: s["state"] == "ready", timeout=120)
    text = (
        "def total(prices, rate):\n    subtotal = sum(prices)\n    tax = subtotal * rate\n"
        "    return subtotal + tax\n"
    )
    editor.open("total.py", text)
    editor.change("total.py", (1, 4, 1, 12, "net"))
    async with asyncio.timeout(60):
        result = await editor.next_edit("total.py", 1, 7, context={"triggerKind": 1})
    assert [e["text"] for e in result["edits"]][:1] == ["net"], result
    assert result["edits"][0]["range"]["start"]["line"] in (2, 3)


async def test_truncated_weights_give_one_message_and_a_silent_server(
    editor: Editor, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(ROOT / "model" / "embedded", cut)
    weights = sorted(cut.glob("*.safetensors"))[0]
    with weights.open("r+b") as file:
        file.truncate(weights.stat().st_size // 2)
    await editor.start(options={"model": str(cut)}, ready=False)
    status = await editor.wait_until(lambda s: s["state"] != "loading", timeout=60)
    assert status["state"] == "error"
    assert weights.name in status["message"]
    editor.open("a.py", "x\n")
    assert (await editor.inline("a.py", 0, 1)) is None
    assert (await editor.reason()) == "model-error"
    assert [m.message for m in editor.client.messages] == [f"Redraft: {status['message']}"]
