"""Servers for tests, driven over stdio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from lsp_editor import Editor


@pytest_asyncio.fixture
async def editor(tmp_path: Path) -> AsyncIterator[Editor]:
    """An editor whose server the test starts with the rules it needs."""
    folder = tmp_path / "work"
    folder.mkdir()
    editor = Editor(folder)
    yield editor
    if editor.started:
        await editor.stop()
