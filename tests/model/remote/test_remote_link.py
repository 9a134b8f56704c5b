"""The connection to a service: how many there are, who ends them and when, and whom they trust."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_service import FakeService, Reply, completion, refusal
from remotes import FIM, KEY

from model.answer import answer
from model.protocol import Cancelled, Stop, Unavailable
from model.remote.link import Link, RemoteError
from model.remote.predictor import RemotePredictor


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


def test_stop_calls_back_once_whenever_it_is_asked_to() -> None:
    stop, calls = Stop(), []
    stop.on_cancel(lambda: calls.append("before"))
    assert calls == []
    stop.cancel()
    stop.cancel()
    stop.on_cancel(lambda: calls.append("after"))
    assert calls == ["before", "after"]


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
