"""The remote predictor against a fake service on this machine: what is asked, and what becomes of the answer."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fake_service import FakeService, Reply, edit
from remotes import FIM, KEY, predictor_of

from diffing.edits import Edit, apply
from model.answer import answer
from model.protocol import Request, Stop
from model.remote.predictor import RemotePredictor

EDIT = Request("next_edit", "a.py", "def f(a):\n    return b\n", 22)


def test_a_completion_from_request_to_answer(service: FakeService, remote: RemotePredictor) -> None:
    made = answer(remote, FIM, Stop(5), threshold=remote.threshold("fim", "quiet"))
    assert made.edits == (Edit(4, 4, "1"),)
    assert (made.shown, made.suppressed, made.confidence) == (True, None, 0.5)
    assert (made.model, made.source, made.tokens) == ("mercury-edit-2", "remote", 7)
    assert made.features["inserted"] > 0
    (heard,) = service.heard
    assert heard.path == "/v1/fim/completions"
    assert heard.headers["Authorization"] == f"Bearer {KEY}"
    assert 0 < float(heard.headers["X-Stainless-Read-Timeout"]) <= 5
    assert heard.json["prompt"] == "x = "


def test_an_edit_from_request_to_answer(service: FakeService, remote: RemotePredictor) -> None:
    service.default = edit("```\ndef f(a):\n    return a\n```")
    made = answer(remote, EDIT, Stop(5), threshold=0.0)
    assert apply(EDIT.text, made.edits) == "def f(a):\n    return a\n"
    assert made.shown
    assert service.heard[0].path == "/v1/edit/completions"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (edit("```\nNone\n```"), "no-prediction"),
        (edit("```\ndef f(a):\n    return <|endoftext|>\n```"), "control-token"),
        (edit("```\ndef f(a):\n    retur", "length"), "truncated"),
    ],
)
def test_the_filters_of_local_answers_hold_for_remote_ones(
    service: FakeService, remote: RemotePredictor, reply: Reply, reason: str
) -> None:
    service.default = reply
    made = answer(remote, EDIT, Stop(5), threshold=0.0)
    assert (made.shown, made.suppressed) == (False, reason)


def test_windows_line_ends_stay(service: FakeService, remote: RemotePredictor) -> None:
    service.default = edit("```\na = 1\nb = 2\nc = 3\n```")
    text = "a = 1\r\nb = x\r\n"
    made = answer(remote, Request("next_edit", "a.py", text, 9), Stop(5), threshold=0.0)
    assert apply(text, made.edits) == "a = 1\r\nb = 2\r\nc = 3\r\n"
    assert "\\r" not in service.heard[0].body.decode()


def test_text_of_every_sort_arrives(service: FakeService, remote: RemotePredictor) -> None:
    text = "é 😀 \u2028 \x07 \ud800 x = "
    remote.predict(Request("fim", "a.py", text, len(text)), Stop(5))
    assert service.heard[0].json["prompt"] == text
    assert service.heard[0].headers["Content-Type"] == "application/json"


def test_without_a_key_none_is_sent(service: FakeService) -> None:
    predictor_of(service.url, key="").predict(FIM, Stop(5))
    assert "Authorization" not in service.heard[0].headers


def test_torch_is_not_loaded_for_a_service() -> None:
    program = "import lsp_server.remote, model.remote.place, sys; print('torch' in sys.modules)"
    command = [sys.executable, "-c", program]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    assert made.stdout == "False\n"
