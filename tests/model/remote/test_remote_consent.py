"""Addresses of services, and the file that says which of them may be used."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from model.remote.consent import ConsentError, Consents, ServiceAddress


@pytest.mark.parametrize(
    ("url", "origin", "base"),
    [
        (
            "https://api.inceptionlabs.ai",
            "https://api.inceptionlabs.ai",
            "https://api.inceptionlabs.ai/v1",
        ),
        ("https://Host.example:443/v1/", "https://host.example", "https://host.example/v1"),
        (" http://127.0.0.1:8000 ", "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("https://h/beta", "https://h", "https://h/beta"),
        ("http://[::1]:9/v1", "http://[::1]:9", "http://[::1]:9/v1"),
    ],
)
def test_addresses(url: str, origin: str, base: str) -> None:
    address = ServiceAddress.of(url)
    assert (address.origin, address.base) == (origin, base)


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://far.example", True),
        ("http://localhost:1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]", True),
        ("http://far.example", False),
        ("http://10.0.0.5", False),
        ("http://localhost.far.example", False),
    ],
)
def test_what_may_be_read_on_the_way(url: str, private: bool) -> None:
    assert ServiceAddress.of(url).private is private


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "not an address"),
        ("host", "not an address"),
        ("ftp://host", "not an address"),
        ("file:///etc/passwd", "not an address"),
        ("https://", "not an address"),
        ("https://host:port", "not an address"),
        ("https://me:pass@host", "must not hold a name or a password"),
        ("https://allowed.example@evil.example", "must not hold a name"),
        ("https://allowed.example\\@evil.example", "must not hold a name"),
        ("https://allowed.example\\.evil.example", "not the name of a host"),
        ("https://host/v1?key=1", "must end with its path"),
        ("https://host/v1#x", "must end with its path"),
    ],
)
def test_addresses_that_are_refused(url: str, words: str) -> None:
    with pytest.raises(ConsentError, match=words) as error:
        ServiceAddress.of(url)
    assert "pass" not in str(error.value).replace("password", "").replace("passwd", "")


def test_nothing_is_allowed_at_first_and_the_error_says_how(tmp_path: Path) -> None:
    consents = Consents(tmp_path / "services.json")
    with pytest.raises(ConsentError, match="redraft remote allow https://h") as error:
        consents.service(ServiceAddress.of("https://h/v1"))
    assert "nothing was sent" in str(error.value)
    assert list(consents) == []


def test_what_is_allowed_is_one_origin_and_its_key(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "services.json"
    Consents(path).allow(ServiceAddress.of("https://h"), key="sk-1")
    Consents(path).allow(ServiceAddress.of("https://k:8443"), key_variable="K_KEY")
    again = Consents(path)
    assert again.service(ServiceAddress.of("https://h/other")).key({}) == "sk-1"
    service = again.service(ServiceAddress.of("https://k:8443"))
    assert service.key({"K_KEY": " sk-2\n"}) == "sk-2"
    with pytest.raises(ConsentError, match="K_KEY, which is not set"):
        service.key({})
    for other in ("http://h", "https://h:8443", "https://k", "https://sub.h"):
        with pytest.raises(ConsentError, match="have not allowed"):
            again.service(ServiceAddress.of(other))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["services.json"]


def test_what_cannot_be_a_key_is_not_sent_nor_shown(tmp_path: Path) -> None:
    service = Consents(tmp_path / "s.json").allow(ServiceAddress.of("https://h"), key="sk-1")
    assert "sk-1" not in repr(service)
    variable = Consents(tmp_path / "s.json").allow(ServiceAddress.of("https://h"), "K")
    for wrong in ("sk-é", "a b", "a\nX-Header: b"):
        with pytest.raises(ConsentError, match="characters that no key has") as error:
            variable.key({"K": wrong})
        assert wrong not in str(error.value)


def test_permission_is_taken_back_with_the_key(tmp_path: Path) -> None:
    path, address = tmp_path / "services.json", ServiceAddress.of("https://h")
    Consents(path).allow(address, key="sk-1")
    assert Consents(path).forget(address)
    assert not Consents(path).forget(address)
    assert "sk-1" not in path.read_text()
    with pytest.raises(ConsentError):
        Consents(path).service(address)


def test_the_user_is_told_once_for_each_folder(tmp_path: Path) -> None:
    path, address = tmp_path / "services.json", ServiceAddress.of("https://h")
    Consents(path).allow(address)
    a, b = Path("/w/a"), Path("/w/b")
    assert [Consents(path).first_time("https://h", [a]) for _ in range(2)] == [True, False]
    assert Consents(path).first_time("https://h", [a, b])
    assert not Consents(path).first_time("https://h", [b, a])
    assert Consents(path).first_time("https://h", [])


@pytest.mark.parametrize("content", ["", "[]", '{"services": 3}', '{"services": {"https://h": 3}}'])
def test_a_broken_file_allows_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "services.json"
    path.write_text(content)
    with pytest.raises(ConsentError, match="cannot be read"):
        Consents(path)
    assert path.read_text() == content
