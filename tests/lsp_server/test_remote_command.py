"""`redraft remote`, as it is typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fake_service import FakeService, completion, refusal

from lsp_server.cli import run
from lsp_server.remote import load_remote, notice
from lsp_server.settings import RemoteChoice, parse_settings
from model.remote.consent import ConsentError, Consents, ServiceAddress


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_allow_list_forget(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCEPTION_API_KEY", "sk-secret")
    assert run(["remote", "list"]) == 0
    assert "no service is allowed" in said(capsys)
    assert run(["remote", "allow", "https://api.inceptionlabs.ai"]) == 0
    assert "key in $INCEPTION_API_KEY, which is set" in said(capsys)
    assert run(["remote", "allow", "http://127.0.0.1:8000"]) == 0
    assert "http://127.0.0.1:8000 (no key)" in said(capsys)
    assert run(["remote", "list"]) == 0
    listed = said(capsys)
    assert "http://127.0.0.1:8000  (no key)\nhttps://api.inceptionlabs.ai" in listed
    assert "sk-secret" not in listed
    assert run(["remote", "forget", "https://api.inceptionlabs.ai/v1"]) == 0
    assert "no longer allowed" in said(capsys)
    assert [service.origin for service in Consents()] == ["http://127.0.0.1:8000"]


def test_a_key_that_is_typed_is_kept_and_never_shown(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: " sk-typed ")
    assert run(["remote", "allow", "https://api.inceptionlabs.ai", "--ask-key"]) == 0
    assert run(["remote", "list"]) == 0
    assert "sk-typed" not in said(capsys)
    address = ServiceAddress.of("https://api.inceptionlabs.ai")
    assert Consents().service(address).key({}) == "sk-typed"


def test_unencrypted_addresses_of_other_machines_need_a_word_more(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["remote", "allow", "http://10.0.0.5:8000"]) == 1
    assert "is not encrypted" in said(capsys)
    assert list(Consents()) == []
    assert run(["remote", "allow", "http://10.0.0.5:8000", "--plain-http"]) == 0


@pytest.mark.parametrize("arguments", [["allow"], ["forget"], ["try"]])
def test_an_address_is_needed(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(["remote", *arguments])
    assert "required: URL" in said(capsys)


def test_the_address_may_stand_before_or_behind_the_options(home: Path) -> None:
    for number, words in enumerate((["--key-env", "KEY", "URL"], ["URL", "--key-env", "KEY"])):
        url = f"https://host{number}.example"
        assert run(["remote", "allow", *(url if word == "URL" else word for word in words)]) == 0
    assert [service.key_variable for service in Consents()] == ["KEY", "KEY"]


@pytest.mark.parametrize("name", ["", "a b", "1KEY", "sk-1234", "KEY=1", "Schlüssel"])
def test_a_key_is_in_a_variable_that_can_exist(
    home: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(["remote", "allow", "https://host.example", "--key-env", name])
    assert "is not the name of an environment variable" in said(capsys)
    assert list(Consents()) == []


def test_a_service_that_refuses_is_told_of_once(home: Path) -> None:
    with FakeService(refusal(401, "no such key")) as service:
        assert run(["remote", "allow", service.url]) == 0
        done = subprocess.run(
            [sys.executable, "-m", "lsp_server", "remote", "try", service.url],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("no such key") == 1
    assert done.stderr.count("\n") == 1


def test_trying_a_service(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeService(completion("name")) as service:
        assert run(["remote", "try", service.url]) == 1
        assert "you have not allowed" in said(capsys)
        assert service.connections == 0
        assert run(["remote", "allow", service.url]) == 0
        assert run(["remote", "try", service.url, "--model", "m"]) == 0
        assert "answer       'name'\nmodel        m\n" in said(capsys)
        assert service.heard[0].json["prompt"].endswith('    return "hello " + ')
        service.default = refusal(400, "max_tokens is too small")
        assert run(["remote", "try", service.url]) == 1
        assert "max_tokens is too small" in said(capsys)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (RemoteChoice(), "needs the setting `remote.url`"),
        (RemoteChoice(url="nowhere"), "is not an address"),
        (RemoteChoice(url="https://h", fim_template="{suffix}{prefix}"), "must hold {prefix} and"),
    ],
)
def test_settings_that_cannot_work(home: Path, choice: RemoteChoice, words: str) -> None:
    with pytest.raises(ConsentError, match=words):
        load_remote(choice, 0)


def test_no_setting_holds_a_key_or_names_a_variable() -> None:
    for name in ("remote.key", "remote.keyEnv", "remote.headers"):
        settings, (problem,) = parse_settings({name: "AWS_SECRET_ACCESS_KEY"})
        assert f"`{name}` is not a setting" in problem
        assert settings == parse_settings({})[0]


def test_the_notice_comes_again_where_it_cannot_be_remembered(home: Path) -> None:
    service = Consents().allow(ServiceAddress.of("https://h.example"))
    predictor = load_remote(RemoteChoice(url=service.origin, model="m"), 0)
    folders = [Path("/w")]
    assert f"go to {service.origin}" in (notice(predictor, folders) or "")
    assert notice(predictor, folders) is None
    (home / "services.json").write_text("broken")
    assert notice(predictor, folders) is not None
    (home / "services.json").unlink()
    assert notice(predictor, folders) is not None
    predictor.close()
