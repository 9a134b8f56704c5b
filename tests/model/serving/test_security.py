"""Who may ask the service, and how much he may send."""

from __future__ import annotations

import socket

import pytest
from served import Serve, Served

from model.serving.security import Guard

TOKEN = "correct-horse-battery"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "192.168.0.9",
        "[::ffff:10.0.0.1]",
        "",
        "[",
        "a@b:c",
    ],
)
def test_foreign_host_names_are_refused(served: Served, host: str) -> None:
    response = served.client.get("/health", headers={"host": host})
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "host_not_allowed"


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost:80", "127.0.0.1:9", "127.1.2.3", "[::1]:80"]
)
def test_the_machines_own_names_are_served(served: Served, host: str) -> None:
    assert served.client.get("/health", headers={"host": host}).status_code == 200


def test_foreign_pages_are_refused(served: Served) -> None:
    for origin in ("https://evil.example", "null", "http://localhost:3000", "vscode-webview://x"):
        response = served.client.post("/v1/fim/completions", headers={"origin": origin}, json={})
        assert response.status_code == 403
        assert response.json()["error"]["code"] == "origin_not_allowed"
        assert "access-control-allow-origin" not in response.headers
    own = served.client.get("/health", headers={"origin": served.url})
    assert own.status_code == 200


def test_an_allowed_page_is_served_and_may_read(serve: Serve) -> None:
    page = "https://tool.example"
    served = serve(guard=Guard(origins={page}))
    answer = served.client.get("/health", headers={"origin": page})
    assert answer.headers["access-control-allow-origin"] == page
    asked = {"origin": page, "access-control-request-method": "POST"}
    assert served.client.options("/v1/fim/completions", headers=asked).status_code == 200
    assert served.client.get("/health", headers={"origin": page + ".evil"}).status_code == 403


def test_with_a_token_only_health_is_open(serve: Serve) -> None:
    served = serve(guard=Guard(token=TOKEN))
    get = served.client.get
    assert get("/health").status_code == 200
    for given in (
        "",
        "Bearer",
        "Bearer wrong",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN}x",
        "Bearer \xe9",
    ):
        response = get("/v1/models", headers={"authorization": given.encode("latin-1")})
        assert response.status_code == 401
        assert response.json()["error"]["type"] == "authentication_error"
        assert response.json()["error"]["code"] == "invalid_api_key"
    assert get("/metrics").status_code == 401
    assert get("/v1/models", headers={"authorization": f"bearer {TOKEN}"}).status_code == 200


def test_beyond_the_machine_addresses_and_named_hosts_are_served() -> None:
    from starlette.datastructures import Headers

    guard = Guard(loopback=False, hosts={"gpu.local"})
    for host, allowed in (
        *(("10.0.0.5:7012", True), ("gpu.local", True), ("[fe80::1]:7012", True)),
        *(("other.local", False), ("0.0.0.0", False)),
    ):
        refusal = guard.refusal(Headers({"host": host}), "/health")
        assert (refusal is None) is allowed, host


def test_a_body_has_a_size(serve: Serve) -> None:
    served = serve(guard=Guard(max_body=1000))
    assert served.fim("x" * 500).status_code == 200
    told = served.fim("x" * 1000)
    assert told.status_code == 413
    assert told.json()["error"]["code"] == "body_too_large"

    def chunks():  # type: ignore[no-untyped-def]
        for _ in range(50):
            yield b"x" * 100

    untold = served.client.post("/v1/fim/completions", content=chunks())
    assert untold.status_code == 413


def test_a_head_has_a_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.serving.server.HEAD_S", 0.2)
    for begun in (
        b"",
        b"GET /health HTTP/1.1\r\nHos",
        b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET",
    ):
        with socket.create_connection(("127.0.0.1", served.port), timeout=5) as slow:
            slow.sendall(begun)
            while slow.recv(4096):
                pass


def test_a_body_has_a_time(serve: Serve) -> None:
    served = serve(guard=Guard(body_seconds=1.0))
    with socket.create_connection(("127.0.0.1", served.port)) as slow:
        slow.sendall(b"POST /feedback HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        slow.settimeout(5)
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")
    assert served.fim().status_code == 200
