"""Servers for tests, driven over stdio, and Neovims of every version that is supported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsp_editor import Editor
from nvim_editor import VERSIONS, Nvim, find_nvim


@pytest_asyncio.fixture
async def editor(tmp_path: Path) -> AsyncIterator[Editor]:
    """An editor whose server the test starts with the rules it needs."""
    folder = tmp_path / "work"
    folder.mkdir()
    editor = Editor(folder)
    yield editor
    if editor.started:
        await editor.stop()


def _nvim(version: str, home: Path) -> Iterator[Nvim]:
    path, why = find_nvim(version)
    if path is None:
        pytest.skip(why)
    nvim = Nvim(path, home)
    yield nvim
    nvim.stop()


@pytest.fixture(scope="session", params=VERSIONS)
def shared_nvim(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nvim]:
    """One process of each version for all tests that do not need their own."""
    yield from _nvim(request.param, tmp_path_factory.mktemp("nvim"))


@pytest.fixture
def nvim(shared_nvim: Nvim, tmp_path: Path) -> Nvim:
    """A Neovim that the test starts with the rules it needs; its server has seen other tests."""
    return shared_nvim.use(tmp_path)


@pytest.fixture(params=VERSIONS)
def own_nvim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Nvim]:
    """A Neovim and a server that are new, for tests that end them."""
    for nvim in _nvim(request.param, tmp_path):
        yield nvim.use(tmp_path)


@pytest.fixture(params=VERSIONS)
def faked_nvim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Nvim]:
    """A new Neovim, for tests that stand in for the server."""
    for nvim in _nvim(request.param, tmp_path):
        yield nvim.use(tmp_path)


@pytest.fixture
def newest_nvim(tmp_path: Path) -> Iterator[Nvim]:
    """A new Neovim of the newest version only."""
    for nvim in _nvim(next(iter(VERSIONS)), tmp_path):
        yield nvim.use(tmp_path)
