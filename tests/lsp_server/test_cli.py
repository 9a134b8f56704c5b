"""The command line, without servers."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_server import __version__
from lsp_server.cli import COMMANDS, run
from lsp_server.settings import settings_markdown


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"redraft {__version__}\n"
    assert run([]) == 2
    assert "predict" in capsys.readouterr().err


def test_settings_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["settings"]) == 0
    assert capsys.readouterr().out == settings_markdown()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run([command, "--help"])
    assert caught.value.code == 0
    assert COMMANDS[command].help in capsys.readouterr().out.lower()


def test_the_server_starts_without_torch() -> None:
    code = "import sys, lsp_server.cli, lsp_server.server, lsp_server.transport; "
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_library_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(options: argparse.Namespace) -> int:
        raise ModuleNotFoundError(
            "No module named 'tree_sitter.binding'", name="tree_sitter.binding"
        )

    monkeypatch.setitem(COMMANDS, "settings", replace(COMMANDS["settings"], run=fails))
    assert run(["settings"]) == 2
    assert "redraft settings: a library is not installed (tree_sitter)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "/x/out"), "/x/out: Permission denied"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "should hold text"),
    ],
)
def test_what_the_system_refuses_is_one_line(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(options: argparse.Namespace) -> int:
        raise error

    monkeypatch.setitem(COMMANDS, "settings", replace(COMMANDS["settings"], run=fails))
    assert run(["settings"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_number_out_of_bounds_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(["lsp", "--tcp", "--port", "99999"])
    assert caught.value.code == 2
    assert "99999 is out of bounds: it must be from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "train --shards {0} --run {0}/run --recipe nosuch",
            "there is no recipe nosuch; ours are ",
        ),
        ("export --run {0} --out {0}/out --recipe nosuch", "there is no recipe nosuch; ours are "),
        ("train --shards {0} --run {0}/file --recipe cpu", "/file is not a folder"),
        ("pack --data {0} --out {0}/file/x", "/file is not a folder"),
        ("bench --json {0}/none/x.json", "there is no folder"),
        ("bench --client --json {0}/none/x.json", "there is no folder"),
        ("models export embedded --out {0}/file/x", "/file is not a folder"),
        ("simulate {0}/none.jsonl --record {0}/record", "none.jsonl"),
        ("simulate {0}/file --record {0}/record", "holds no case with `expected`"),
    ],
)
def test_what_is_wrong_with_the_words_is_said_first(
    words: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where matplotlib is not installed, and before a model is loaded."""
    (tmp_path / "file").touch()
    monkeypatch.setattr("model.evaluation.picture.find_spec", lambda name: None)
    monkeypatch.setattr("model.evaluation.loading.load", lambda *_, **__: pytest.fail("loaded"))
    assert run(words.format(tmp_path).split()) in (1, 2)
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
