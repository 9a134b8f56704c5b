"""`redraft bench --client` against a real server process with a scripted predictor."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lsp_server.cli import run

RULES = [
    {"mode": "fim", "when": {"regex": "[a-z(.,]$"}, "insert": "something_long", "confidence": 0.9},
    {
        "mode": "next_edit",
        "when": {"history": "+def __pow__(self, partner"},
        "replace": {"old": "other", "new": "partner"},
    },
    {"mode": "next_edit", "insert": "# x", "confidence": 0.1},
]


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"rules": RULES}))
    return f"scripted:{path}"


def test_every_kind_of_key_is_measured(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "bench.json"
    arguments = ["--lines", "50", "--keys", "3", "--limit", "1", "--json", str(report)]
    assert run(["bench", "--client", "--model", script, *arguments]) == 0
    printed = capsys.readouterr().out
    assert "initialize answered after" in printed
    data: dict[str, Any] = json.loads(report.read_text())
    start = data["start"]
    assert 0 < start["initialized_ms"] < start["ready_ms"] < start["first_answer_ms"]
    found = {(one["mode"], one["kind"]): one for one in data["groups"]}
    for mode in ("fim", "next_edit"):
        assert found[mode, "first"]["requests"] == 1
        assert found[mode, "above"]["requests"] == 3
    assert found["next_edit", "all warm"]["requests"] == 2 + 3 + 3 + 3
    assert found["next_edit", "all warm"]["shown"] == 0
    assert found["fim", "key after a rest"]["requests"] == 6
    for kind in ("accept at once", "accept after a look"):
        assert found["next_edit", kind]["requests"] == 4
        assert found["next_edit", kind]["shown"] == 1
    live = [one for one in data["samples"] if one["kind"] == "through"]
    assert len(live) >= 40
    assert {one["source"] for one in live} == {"live"}, "typing a suggestion asks no model"
    assert all(one["shown"] for one in live)
    if sys.platform == "linux":
        assert "server memory" in printed
        assert data["memory"][1][1] > 10_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the memory of a process")
def test_memory_is_told_as_requests_go_on(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--memory", "400", "--model", script]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[1].startswith("after 200 requests: ")
    assert rows[2].startswith("after 400 requests: ")
    assert rows[3].startswith("first ")
    assert rows[3].endswith("in the second half unknown")
    assert rows[4].startswith("the model was asked ")


def test_a_model_that_cannot_be_loaded_ends_the_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = f"scripted:{tmp_path / 'missing.json'}"
    assert run(["bench", "--client", "--lines", "50", "--model", model]) == 2
    assert "redraft bench: " in capsys.readouterr().err
