"""Whatever clients, predictors and files do: clean frames, clean exits, no growth."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from raw_client import ROOT, RawClient, read_frame, write_frame

pytestmark = pytest.mark.e2e

DEAF = [{"mode": "fim", "insert": "x", "delay_ms": 20_000, "ignore_stop": True}]
"""A predictor that is inside a long computation and looks at nothing."""
ANY = [{"mode": "fim", "insert": "something"}]


def in_flight(client: RawClient) -> int:
    """A request that the deaf predictor is working on."""
    client.start()
    uri = client.open("a.py", "a\n")
    request = client.send_request("textDocument/inlineCompletion", client.inline_params(uri, 0, 1))
    while client.request("redraft/status")["predictions"] == 0:
        time.sleep(0.01)
    return request


def test_stdout_carries_frames_only(tmp_path: Path) -> None:
    noise = [{"mode": "fim", "insert": "x", "print": "a stray line"}]
    with RawClient(tmp_path, noise) as client:
        client.start()
        uri = client.open("a.py", "a\n")
        assert client.inline(uri, 0, 1)["items"][0]["insertText"] == "x"
        client.request("shutdown")
        client.notify("exit")
        assert client.stdout.read() == b""
        assert client.exit_code() == 0
        assert "a stray line" in client.errors()


def test_every_malformed_message_gets_an_answer_and_a_line_in_the_log(tmp_path: Path) -> None:
    with RawClient(tmp_path, ANY) as client:
        client.start()
        for message, code in [
            ({"jsonrpc": "2.0", "id": 902, "params": {}}, -32600),
            ({"id": 903, "method": "foo/x"}, -32600),
            ({"jsonrpc": "2.0", "id": 904, "method": 5}, -32600),
            ({"jsonrpc": "2.0", "id": None, "method": 5}, -32600),
            ({"jsonrpc": "2.0", "id": 905, "method": "textDocument/hover", "params": "x"}, -32602),
        ]:
            write_frame(client.stdin, message)
            answered = read_frame(client.stdout)
            assert (answered["id"], answered["error"]["code"]) == (message["id"], code)
            assert "data" not in answered["error"]
        client.stdin.write(b"Content-Length: 5\r\n\r\n{nope")
        client.stdin.flush()
        answered = read_frame(client.stdout)
        assert (answered["id"], answered["error"]["code"]) == (None, -32700)
        uri = client.open("a.py", "a\n")
        assert client.inline(uri, 0, 1)["items"][0]["insertText"] == "something"
        client.stdin.close()
        assert client.exit_code() == 0
        assert "Traceback" not in client.errors()
        assert "nope" not in client.errors()


@pytest.mark.parametrize("how", ["shutdown", "exit", "stdin", "both pipes", "SIGTERM", "SIGINT"])
def test_every_end_is_clean_with_a_request_in_flight(tmp_path: Path, how: str) -> None:
    with RawClient(tmp_path, DEAF) as client:
        request = in_flight(client)
        started = time.monotonic()
        expected = 0
        if how == "shutdown":
            client.request("shutdown")
            client.notify("exit")
        elif how == "exit":
            client.notify("exit")
            expected = 1
        elif how == "stdin":
            client.stdin.close()
        elif how == "both pipes":
            client.stdout.close()
            client.stdin.close()
        else:
            client.process.send_signal(getattr(signal, how))
        assert client.exit_code() == expected
        assert time.monotonic() - started < 4
        assert client.errors() == ""
        if how == "SIGTERM":
            rest = []
            while not client.stdout.closed:
                try:
                    rest.append(read_frame(client.stdout))
                except EOFError:
                    break
            assert [m["error"]["code"] for m in rest if m.get("id") == request] == [-32800]


def test_a_killed_client_takes_the_server_with_it(tmp_path: Path) -> None:
    client = (
        "import subprocess, sys, time\n"
        "server = subprocess.Popen([sys.executable, '-m', 'lsp_server', 'lsp'],\n"
        "    stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    editor = subprocess.Popen(
        [sys.executable, "-c", client],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )
    assert editor.stdout is not None
    server = psutil.Process(int(editor.stdout.readline()))
    time.sleep(1)
    editor.kill()
    editor.wait()
    editor.stdout.close()
    assert gone(server, 5)


def test_the_server_leaves_when_the_editors_process_is_gone(tmp_path: Path) -> None:
    """Another process may hold the pipe open."""
    editor = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with RawClient(tmp_path, ANY) as client:
        params = {"processId": editor.pid, "rootUri": None, "capabilities": {}}
        client.request("initialize", params)
        client.notify("initialized", {})
        time.sleep(1)
        editor.kill()
        editor.wait()
        assert client.exit_code(10) == 0


def gone(process: psutil.Process, timeout: float) -> bool:
    """Whether a process ends in time; one that waits to be reaped has ended."""
    ends = time.monotonic() + timeout
    while time.monotonic() < ends:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_every_request_is_answered(tmp_path: Path) -> None:
    with RawClient(tmp_path, ANY) as client:
        early = client.answer(client.send_request("redraft/status"))
        assert early["error"]["code"] == -32002
        client.start()
        for method, params, code in [
            ("textDocument/inlineCompletion", {"position": 3}, -32602),
            ("textDocument/inlineCompletion", None, -32602),
            ("redraft/nextEdit", [], -32602),
            ("workspace/executeCommand", {"command": 3}, -32602),
            ("workspace/executeCommand", {"command": "no.such"}, -32602),
            ("no/suchMethod", {}, -32601),
            ("initialize", {"capabilities": {}, "processId": None, "rootUri": None}, -32600),
        ]:
            response = client.answer(client.send_request(method, params))
            assert response["error"]["code"] == code, method
        client.notify("no/suchNotification", {"a": 1})
        client.notify("textDocument/didChange", {"nonsense": True})
        client.notify("textDocument/didFocus", None)
        client.change((tmp_path / "never-opened.py").as_uri(), 2, [{"text": "x"}])
        client.stdin.write(b"Content-Length: 9\r\n\r\nnot json!")
        assert client.request("redraft/status")["state"] == "ready"
        client.request("shutdown")
        assert client.answer(client.send_request("redraft/status"))["error"]["code"] == -32600
        client.notify("exit")
        assert client.exit_code() == 0


def test_huge_and_strange_documents_are_followed_in_silence(tmp_path: Path) -> None:
    with RawClient(tmp_path, ANY) as client:
        client.start()
        for name, text, reason in [
            ("huge.py", "x = 1  # a line of code\n" * 2_200_000, "too-large"),
            ("line.py", "x" * 5_000_000, "line-too-long"),
            ("nul.bin", "\x7fELF\0\1\2" * 1000, "binary"),
            ("decoded.bin", "\ufffd\x01\x02PNG" * 1000, "binary"),
        ]:
            uri = client.open(name, text)
            for version in range(2, 5):
                place = {"line": 0, "character": 0}
                change = {"range": {"start": place, "end": place}, "text": "y"}
                client.change(uri, version, [change])
                assert client.inline(uri, 0, 1) == {"items": []}
            status = client.request("redraft/status")
            assert status["lastReason"] == reason
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        uri = client.open("small.py", "a\n")
        assert client.inline(uri, 0, 1)["items"]
        assert client.request("redraft/status")["predictions"] == 1


def test_no_growth_over_two_thousand_requests(tmp_path: Path) -> None:
    rules = [
        {"mode": "fim", "when": {"regex": "7$"}, "raise": "failed"},
        {"mode": "fim", "when": {"regex": "[13]$"}, "insert": "suggested_text()"},
        {"mode": "next_edit", "replace": {"old": "foo", "new": "bar"}},
    ]
    with RawClient(tmp_path, rules) as client:
        client.start()
        text = "foo\n" + "a line of text\n" * 2000
        uri = client.open("a.py", text)
        process = psutil.Process(client.process.pid)
        sizes = []
        version = 1
        for number in range(2000):
            version += 1
            place = {"line": 1 + number * 37 % 1900, "character": 0}
            change = {"range": {"start": place, "end": place}, "text": str(number % 10)}
            client.change(uri, version, [change])
            if number % 4:
                client.inline(uri, place["line"], 1, kind=1)
            else:
                document = {"uri": uri, "version": version}
                client.request("redraft/nextEdit", {"textDocument": document, "position": place})
            client.notifications.clear()
            if number % 200 == 199:
                sizes.append(process.memory_info().rss / 2**20)
        assert client.request("redraft/status")["requests"] == 2000
        # The document itself grows by 2 kB, caches fill early; after that nothing may be kept.
        assert sizes[-1] - sizes[2] < 8, sizes


def test_tcp_serves_one_client_and_ends_with_it(tmp_path: Path) -> None:
    with RawClient(tmp_path, ANY, command=("lsp", "--tcp", "--port", "0")) as client:
        port = listening_port(client)
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            stream = connection.makefile("rwb")
            params = {"processId": None, "rootUri": None, "capabilities": {}}
            write_frame(
                stream, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            )
            capabilities = read_frame(stream)["result"]["capabilities"]
            assert capabilities["inlineCompletionProvider"] == {}
            write_frame(stream, {"jsonrpc": "2.0", "id": 2, "method": "shutdown"})
            assert read_frame(stream)["result"] is None
            write_frame(stream, {"jsonrpc": "2.0", "method": "exit"})
            assert client.exit_code() == 0


def test_a_port_in_use_is_said_and_gives_exit_code_two(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with RawClient(tmp_path, ANY, command=("lsp", "--tcp", "--port", str(port))) as client:
            assert client.exit_code() == 2
            expected = f"redraft: cannot listen on 127.0.0.1:{port}: the port is in use"
            assert expected in client.errors()


def listening_port(client: RawClient) -> int:
    ends = time.monotonic() + 10
    while time.monotonic() < ends:
        if "listening on 127.0.0.1:" in (said := client.errors()):
            return int(said.rsplit(":", 1)[1])
        time.sleep(0.02)
    raise AssertionError(client.errors())
