"""The remote predictor against a fake service on this machine: answers, failures, cancellation."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_service import FakeService, Reply, completion, edit, refusal

from diffing.edits import Edit, apply
from model.answer import answer
from model.protocol import Cancelled, Request, Stop, Unavailable
from model.remote.link import Link, RemoteError
from model.remote.pacing import Breaker, RetryBudget
from model.remote.predictor import RemotePredictor
from model.remote.wire import Wire

KEY = "sk-0123456789abcdef"
FIM = Request("fim", "a.py", "x = \n", 4)
EDIT = Request("next_edit", "a.py", "def f(a):\n    return b\n", 22)


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService(completion("1")) as service:
        yield service


@pytest.fixture
def remote(service: FakeService) -> Iterator[RemotePredictor]:
    predictor = predictor_of(service.url + "/v1")
    yield predictor
    predictor.close()


def predictor_of(url: str, key: str = KEY, **more: Any) -> RemotePredictor:
    return RemotePredictor(Link(url, key), Wire("inception", "mercury-edit-2", 8192), **more)


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


def test_one_connection_serves_many_requests(service: FakeService, remote: RemotePredictor) -> None:
    for _ in range(5):
        remote.predict(FIM, Stop(5))
    assert (len(service.heard), service.connections) == (5, 1)


def test_cancelling_hangs_up(service: FakeService, remote: RemotePredictor) -> None:
    service.replies = [Reply(hang=True)]
    stop = Stop(60)
    ended: list[object] = []

    def work() -> None:
        try:
            remote.predict(FIM, stop)
        except Cancelled as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    service.wait_for(1)
    stop.cancel()
    thread.join(5)
    assert len(ended) == 1
    assert service.hung_up.wait(5)
    assert remote.breaker.state == "closed"
    assert remote.predict(FIM, Stop(5)).edits


def test_fast_keys_leave_no_connection_behind(
    service: FakeService, remote: RemotePredictor
) -> None:
    service.default = Reply(hang=True)
    for number in range(40):
        stop = Stop(60)
        timer = threading.Timer(0.002 * (number % 10), stop.cancel)
        timer.start()
        with pytest.raises(Cancelled):
            remote.predict(FIM, stop)
    ends = time.monotonic() + 10
    while service.open and time.monotonic() < ends:
        time.sleep(0.01)
    assert service.open == 0
    assert service.connections > 0
    service.default = completion("1")
    assert remote.predict(FIM, Stop(5)).edits


def test_what_is_cancelled_already_opens_no_connection(
    service: FakeService, remote: RemotePredictor
) -> None:
    stop = Stop(5)
    stop.cancel()
    with pytest.raises(Cancelled):
        remote.predict(FIM, stop)
    assert service.connections == 0


def test_closing_ends_what_waits(service: FakeService, remote: RemotePredictor) -> None:
    service.replies = [Reply(hang=True)]
    ended: list[object] = []

    def work() -> None:
        try:
            remote.predict(FIM, Stop(60))
        except Cancelled as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    service.wait_for(1)
    remote.close()
    remote.close()
    thread.join(10)
    assert len(ended) == 1
    assert service.hung_up.wait(5)
    with pytest.raises(Cancelled):
        remote.predict(FIM, Stop(5))


def test_a_passed_deadline_hangs_up(service: FakeService, remote: RemotePredictor) -> None:
    service.replies = [Reply(hang=True)]
    made = answer(remote, FIM, Stop(0.2), threshold=0.0)
    assert (made.edits, made.suppressed) == ((), "deadline")
    assert service.hung_up.wait(5)
    assert len(service.heard) == 1


@pytest.mark.parametrize(
    "trouble",
    [refusal(500), refusal(503), refusal(429), Reply(drop=True)],
    ids=["500", "503", "429", "dropped"],
)
def test_one_more_attempt_after_what_may_pass(
    service: FakeService, remote: RemotePredictor, trouble: Reply
) -> None:
    service.replies = [trouble]
    assert remote.predict(FIM, Stop(5)).edits
    assert len(service.heard) == 2


def test_no_second_attempt_without_budget_or_time(service: FakeService) -> None:
    remote = predictor_of(service.url, budget=RetryBudget(tokens=0.5))
    service.replies = [refusal(503)]
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-failed"
    remote = predictor_of(service.url)
    service.replies = [refusal(503, headers={"Retry-After": "30"})]
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-failed"
    assert len(service.heard) == 2
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-resting"


@pytest.mark.parametrize("asked_for", ["3600", "inf", "1e999"])
def test_nobody_waits_long_for_a_second_attempt(
    service: FakeService, remote: RemotePredictor, asked_for: str
) -> None:
    service.replies = [refusal(429, headers={"Retry-After": asked_for})]
    assert remote.predict(FIM, Stop()).suppressed == "remote-failed"
    assert len(service.heard) == 1
    assert 0 < remote.breaker.pause_s <= 60


@pytest.mark.parametrize(
    "reply",
    [
        refusal(400),
        Reply(b"<html>"),
        Reply(b"[" * 100_000),
        Reply({"choices": []}),
        completion("a\x00b"),
        completion("\ud800"),
    ],
    ids=["400", "html", "deep", "no choices", "NUL", "surrogate"],
)
def test_bad_answers_are_not_asked_for_twice(
    service: FakeService, remote: RemotePredictor, reply: Reply
) -> None:
    service.replies = [reply]
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-failed"
    assert len(service.heard) == 1


def test_an_episode_of_trouble_is_told_once_and_the_service_is_left_alone(
    service: FakeService,
) -> None:
    now = [0.0]
    breaker = Breaker(clock=lambda: now[0])
    remote = predictor_of(service.url, breaker=breaker, budget=RetryBudget(tokens=0, share=0))
    service.default = refusal(500, "out of memory")
    outcomes = []
    for _ in range(10):
        try:
            outcomes.append(remote.predict(FIM, Stop(5)).suppressed)
        except Unavailable as error:
            outcomes.append(str(error))
    assert outcomes[:2] == ["remote-failed"] * 2
    assert "failed (status 500: out of memory)" in (outcomes[2] or "")
    assert outcomes[3:] == ["remote-resting"] * 7
    assert len(service.heard) == 3
    assert remote.backend["state"] == "open"
    assert "out of memory" in remote.backend["problem"]
    now[0] += 1
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-failed"
    now[0] += 2
    service.default = completion("1")
    assert remote.predict(FIM, Stop(5)).edits
    assert remote.backend["state"] == "closed"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "refuses the API key"),
        (402, "wants to be paid"),
        (404, "does not know the address or the model"),
    ],
)
def test_what_only_the_user_can_mend_is_told_at_once(
    service: FakeService, remote: RemotePredictor, status: int, words: str
) -> None:
    service.default = refusal(status, f"Incorrect key {KEY}\n<b>see</b>")
    with pytest.raises(Unavailable, match=words) as error:
        remote.predict(FIM, Stop(5))
    assert KEY not in str(error.value)
    assert "Incorrect key ... <b>see</b>" in str(error.value)
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-resting"


def test_redirects_are_not_followed(service: FakeService, remote: RemotePredictor) -> None:
    with FakeService(completion("1")) as other:
        service.default = Reply({}, 307, {"Location": other.url + "/v1/fim/completions"})
        with pytest.raises(Unavailable, match="sends elsewhere"):
            remote.predict(FIM, Stop(5))
        assert other.connections == 0
    assert len(service.heard) == 1


def test_an_answer_without_end_is_given_up(service: FakeService, remote: RemotePredictor) -> None:
    service.replies = [completion("x" * 2_000_000)]
    with pytest.raises(RemoteError, match="more than 1000000 bytes"):
        remote.link.post("/fim/completions", {}, Stop(5))


def test_nobody_listens() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(RemoteError, match="cannot be reached"):
        Link(url).post("/x", {}, Stop(5))


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for this machine that nobody vouches for, and its key."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *name]
    command += ["-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no certificate can be made here: {error}")
    return certificate, key


def encrypted(service: FakeService, certificate: tuple[Path, Path]) -> str:
    """Have the service speak TLS; its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    service.encrypt(context)
    return service.url.replace("http:", "https:")


def test_a_certificate_of_nobody_is_refused(
    service: FakeService, certificate: tuple[Path, Path]
) -> None:
    url = encrypted(service, certificate)
    with pytest.raises(RemoteError, match="no certificate that can be trusted") as error:
        Link(url, KEY).post("/x", {}, Stop(5))
    assert error.value.lasting
    assert service.heard == []


def test_cancelling_hangs_up_on_an_encrypted_connection(
    service: FakeService, certificate: tuple[Path, Path]
) -> None:
    """In a process that trusts the certificate, as the system's store is set for a whole process."""
    url = encrypted(service, certificate)
    service.replies = [completion("1"), Reply(hang=True)]
    program = (
        "import sys, threading\n"
        "from model.protocol import Cancelled, Stop\n"
        "from model.remote.link import Link\n"
        "link, stop = Link(sys.argv[1]), Stop(60)\n"
        "print(link.post('/x', {}, Stop(30))['choices'][0]['text'], flush=True)\n"
        "threading.Timer(0.2, stop.cancel).start()\n"
        "try: link.post('/x', {}, stop)\n"
        "except Cancelled: print('cancelled', flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SSL_CERT_FILE": str(certificate[0])},
    )
    with process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["1\n", "cancelled\n"]
        assert service.hung_up.wait(5)
        process.kill()


def test_the_key_and_the_text_are_never_logged(
    service: FakeService, remote: RemotePredictor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "model")
    service.replies = [refusal(503, KEY), refusal(500, KEY), completion("1")]
    private = Request("fim", "a.py", "PRIVATE = \n", 10)
    remote.predict(private, Stop(5))
    remote.predict(private, Stop(5))
    assert "one more attempt" in caplog.text
    ours = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith("model"))
    assert KEY not in ours
    assert "PRIVATE" not in ours


def test_one_sentence_where_the_package_is_absent() -> None:
    program = (
        "import sys; sys.modules['httpx2'] = None\n"
        "from model.remote.link import Link, MissingPackageError\n"
        "try: Link('http://127.0.0.1:1')\n"
        "except MissingPackageError as error: print(error)"
    )
    command = [sys.executable, "-c", program]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "pip install 'redraft[remote]'" in made.stdout, made.stderr


def test_torch_is_not_loaded_for_a_service() -> None:
    program = "import lsp_server.remote, model.remote.place, sys; print('torch' in sys.modules)"
    command = [sys.executable, "-c", program]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    assert made.stdout == "False\n"


def test_stop_calls_back_once_whenever_it_is_asked_to() -> None:
    stop, calls = Stop(), []
    stop.on_cancel(lambda: calls.append("before"))
    assert calls == []
    stop.cancel()
    stop.cancel()
    stop.on_cancel(lambda: calls.append("after"))
    assert calls == ["before", "after"]


def test_waiting_for_a_second_attempt_ends_when_cancelled(
    service: FakeService, remote: RemotePredictor
) -> None:
    service.replies = [refusal(503, headers={"Retry-After": "4"})]
    stop = Stop(60)
    timer = threading.Timer(0.1, stop.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        remote.predict(FIM, stop)
    assert len(service.heard) == 1
