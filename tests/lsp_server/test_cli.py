"""The command line, without servers."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace

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
