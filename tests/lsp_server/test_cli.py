"""The command line, without servers."""

from __future__ import annotations

import subprocess
import sys

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
