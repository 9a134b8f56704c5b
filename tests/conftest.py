"""No test touches what Redraft has learned of whoever runs it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

HOME = tempfile.TemporaryDirectory(prefix="redraft-tests-")
os.environ["REDRAFT_HOME"] = HOME.name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for a user's data, empty."""
    folder = tmp_path / "home"
    monkeypatch.setenv("REDRAFT_HOME", str(folder))
    return folder
