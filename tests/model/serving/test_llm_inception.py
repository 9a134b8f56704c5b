"""`llm-inception`, the plugin of the command `llm` for Mercury, unchanged: on a terminal it draws an answer while it is
denoised. Its address is a constant, so the requests of its process are led to our service.

Skipped where it is not installed: `pip install llm-inception rich`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from served import Served
from test_sdks import ASKED, Babbler

from model.serving.service import Options, Service

pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
if not (find_spec("llm_inception") and find_spec("rich")):
    pytest.skip("llm-inception is not installed", allow_module_level=True)

LED = """
import os, sys
import httpx
here, send = httpx.URL(os.environ["LED_TO"]), httpx.HTTPTransport.handle_request

def led(self, request):
    assert request.url.host == "api.inceptionlabs.ai"
    request.url = request.url.copy_with(scheme="http", host=here.host, port=here.port)
    request.headers["host"] = here.netloc.decode()
    return send(self, request)

httpx.HTTPTransport.handle_request = led
from llm.cli import cli
cli(sys.argv[1:])
"""
TOKENS = 24
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture(scope="module")
def babbler() -> Iterator[Served]:
    served = Served(Service(Babbler(), Options()))
    yield served
    served.stop()


def run_llm(served: Served, folder: Path, *arguments: str, terminal: bool) -> str:
    """What the command writes, on a wide terminal or into a pipe."""
    own = {"LED_TO": served.url, "LLM_INCEPTION_KEY": "none", "LLM_USER_PATH": str(folder)}
    env = os.environ | own | {"COLUMNS": "2000", "LINES": "200", "TERM": "xterm"}
    asked = ["prompt", "-m", "inception/babbler", "-o", "max_tokens", str(TOKENS), *arguments]
    command = [sys.executable, "-c", LED, *asked, ASKED[0]["content"]]
    if not terminal:
        return subprocess.run(
            command, env=env, check=True, capture_output=True, text=True, timeout=120
        ).stdout
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    seen = b""
    while piece := _read(ours):
        seen += piece
    _, told = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0, told
    return seen.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def words(text: str) -> list[str]:
    return CONTROL.sub(" ", text).split()


def test_the_answer_is_drawn_while_it_is_denoised(babbler: Served, tmp_path: Path) -> None:
    body = {"model": "babbler", "messages": ASKED, "max_tokens": TOKENS}
    plain = babbler.client.post("/v1/chat/completions", json=body).json()
    answer = plain["choices"][0]["message"]["content"]
    assert answer.strip()
    piped = run_llm(babbler, tmp_path, "-o", "no_diffusion", "true", terminal=False)
    assert words(piped) == words(answer)
    drawn = run_llm(babbler, tmp_path, terminal=True)
    frames = [words(frame) for frame in drawn.split("\x1b[2K")]
    assert frames[-1] == words(answer)
