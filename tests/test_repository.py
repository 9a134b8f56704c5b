"""What holds for the repository as a whole."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from lsp_server.settings import settings_markdown

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "diffing": {"diffing"},
    "model": {"diffing", "model"},
    "lsp_server": {"diffing", "model", "lsp_server"},
}


def imported(path: Path) -> set[str]:
    """Top-level names of everything a module imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_one_way(package: str) -> None:
    ours = set(MAY_IMPORT)
    for path in (ROOT / package).rglob("*.py"):
        wrong = (imported(path) & ours) - MAY_IMPORT[package]
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_lower_rooms_know_nothing_of_the_higher() -> None:
    for path in (ROOT / "diffing").rglob("*.py"):
        assert not imported(path) & {"torch", "lsprotocol", "pygls", "tokenizers"}, path
    for path in (ROOT / "model").rglob("*.py"):
        assert not imported(path) & {"lsprotocol", "pygls"}, path
    for path in (ROOT / "lsp_server").rglob("*.py"):
        assert "tokenizers" not in imported(path), path


def between(text: str, marker: str) -> str:
    match = re.search(rf"<!-- {marker} -->\n(.*?)<!-- /{marker} -->", text, re.DOTALL)
    assert match, f"README.md lacks the {marker} markers"
    return match[1]


def test_the_readme_has_the_settings_of_the_code() -> None:
    table = between((ROOT / "README.md").read_text(encoding="utf-8"), "settings")
    assert table.strip() == settings_markdown().strip(), "run: redraft settings"


def test_no_file_is_too_large_for_the_repository() -> None:
    for package in MAY_IMPORT:
        for path in (ROOT / package).rglob("*"):
            assert path.stat().st_size <= 45_000_000, path


def test_modules_say_what_they_are_responsible_for() -> None:
    for package in MAY_IMPORT:
        for path in (ROOT / package).rglob("*.py"):
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path
