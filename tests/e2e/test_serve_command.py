"""`redraft serve` as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

pytestmark = pytest.mark.e2e

SERVE = [sys.executable, "-m", "lsp_server", "serve"]
TOKEN = "correct-horse-battery"


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    script = tmp_path / "script.json"
    slow = {"mode": "fim", "when": {"regex": "slow $"}, "insert": "late", "delay_ms": 20_000}
    script.write_text(json.dumps({"rules": [slow, {"mode": "fim", "insert": "1"}]}))
    return os.environ | {"REDRAFT_HOME": str(tmp_path), "REDRAFT_SCRIPT": str(script), **more}


class Process:
    def __init__(self, *arguments: str, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [*SERVE, "--port", "0", *arguments],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        said = self.process.stdout.readline()
        assert said.startswith("Redraft serves scripted at http://"), said
        self.url = said.split()[-1]

    def ask(self, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **headers}
        asked = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    one = Process(env=environment(tmp_path))
    yield one
    one.process.kill()
    one.process.wait()


def test_it_answers_and_keeps_feedback_for_tune(process: Process, tmp_path: Path) -> None:
    made = process.ask("/v1/fim/completions", {"model": "mercury-edit-2", "prompt": "x = "})
    assert made["choices"][0]["text"] == "1"
    told = {"request_id": made["id"], "user_action": "accept"}
    assert process.ask("/feedback", told) == {"status": "ok"}
    process.process.send_signal(signal.SIGTERM)
    process.process.wait(10)
    shown = subprocess.run(
        [sys.executable, "-m", "lsp_server", "feedback", "show"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "suggestions  1" in shown
    assert "accepted" in shown


@pytest.mark.parametrize(("sent", "streams"), [(signal.SIGINT, False), (signal.SIGTERM, True)])
def test_when_it_is_stopped_who_waits_is_told(
    process: Process, sent: signal.Signals, streams: bool
) -> None:
    asked = {"model": "redraft", "prompt": "slow ", "stream": streams}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(process.ask, "/v1/completions", asked)
        while process.ask("/health")["pending"] == 0:
            time.sleep(0.01)
        process.process.send_signal(sent)
        with pytest.raises(urllib.error.HTTPError, match="503") as told:
            waiting.result(30)
    assert json.load(told.value)["error"]["code"] == "shutting_down"
    _, said = process.process.communicate(timeout=10)
    assert process.process.returncode == 0
    assert said.count("\n") <= 1, said


def refused(*arguments: str, env: dict[str, str]) -> str:
    """What it says when it does not start."""
    done = subprocess.run(
        [*SERVE, "--port", "0", *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_what_it_refuses_to_start_with(tmp_path: Path) -> None:
    env = environment(tmp_path)
    assert "a token is needed" in refused("--host", "0.0.0.0", env=env)
    short = tmp_path / "token"
    short.write_text("short")
    assert "at least 16" in refused("--token-file", str(short), env=env)
    assert "nowhere" in refused("--token-file", str(tmp_path / "nowhere"), env=env)
    assert "config.json is missing" in refused("--model", str(tmp_path), env=env)


def test_beyond_the_machine_it_wants_the_token(tmp_path: Path) -> None:
    one = Process("--host", "0.0.0.0", env=environment(tmp_path, REDRAFT_TOKEN=TOKEN))
    one.url = one.url.replace("0.0.0.0", "127.0.0.1")
    try:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            one.ask("/v1/models")
        assert one.ask("/v1/models", authorization=f"Bearer {TOKEN}")["data"]
    finally:
        one.process.kill()
        one.process.wait()


def test_without_its_libraries_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None; from lsp_server.cli import run; run(['serve'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "redraft serve needs libraries that are not installed (fastapi is missing): "
        "pip install 'redraft[serve]', in a checkout pip install -e '.[serve]'\n"
    )
