"""What the doctor finds."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lsp_server import doctor
from model.remote.consent import Consents, ServiceAddress


def test_weights_that_are_whole_and_weights_that_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(64)}, path)
    assert doctor._weights(path).verdict == "ok"
    assert "1 tensors" in doctor._weights(path).says
    path.write_bytes(path.read_bytes()[:-40])
    assert doctor._weights(path).verdict == "wrong"
    path.write_bytes(b"")
    assert doctor._weights(path).verdict == "wrong"


def test_the_exit_code_tells_of_problems(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fine(options: argparse.Namespace):  # type: ignore[no-untyped-def]
        yield doctor.Finding("ok", "this", "is fine")

    def broken(options: argparse.Namespace):  # type: ignore[no-untyped-def]
        yield from ()
        raise OSError("no such luck")

    options = argparse.Namespace(no_load=True)
    monkeypatch.setattr(doctor, "CHECKS", (fine,))
    assert doctor.run(options) == 0
    monkeypatch.setattr(doctor, "CHECKS", (fine, broken))
    assert doctor.run(options) == 1
    said = capsys.readouterr().out
    assert "OSError: no such luck" in said
    assert "1 problem found" in said


def test_a_chosen_model_is_named(home: Path, tmp_path: Path) -> None:
    options = argparse.Namespace(no_load=True)
    assert not any("models use" in finding.says for finding in doctor._model_files(options))
    (home).mkdir()
    (home / "model.json").write_text('{"model": "someone/small", "instruct": true}')
    (first, *_) = doctor._model_files(options)
    assert first.says == "someone/small is used (`redraft models use`)"


def test_services_that_text_may_be_sent_to(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = argparse.Namespace()
    (finding,) = doctor._services(options)
    assert (finding.verdict, finding.says) == ("ok", "none is allowed: no text leaves this machine")
    Consents().allow(ServiceAddress.of("https://a.example"), key="sk-1")
    Consents().allow(ServiceAddress.of("https://b.example"), key_variable="B_KEY")
    monkeypatch.delenv("B_KEY", raising=False)
    first, second = doctor._services(options)
    assert (first.verdict, first.says) == ("note", "https://a.example is allowed, with a key")
    assert (second.verdict, "B_KEY" in second.says) == ("wrong", True)


def test_a_folder_of_the_user_that_cannot_be_written(home: Path) -> None:
    (finding,) = doctor._home(argparse.Namespace())
    assert (finding.verdict, finding.says) == ("ok", f"{home} can be written")
    assert not home.exists()
    home.touch()
    (finding,) = doctor._home(argparse.Namespace())
    assert finding.verdict == "wrong"
    assert f"{home} is not a folder; no feedback and no choice of yours is kept" in finding.says
