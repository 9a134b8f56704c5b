"""Where a command will write: whether it can, found out before the work is done that would be lost.

Responsible for files and folders that a user names. Leaves no trace of having looked. Knows nothing of what is written.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


class TargetError(OSError):
    """Nothing can be written there; the message is for the user."""


def check_file(path: str | Path | None) -> None:
    """Raises `TargetError` unless a file can be written at `path`; `None` and `-` are no files."""
    if path is None or str(path) == "-":
        return
    path = Path(path)
    if path.is_dir():
        raise TargetError(f"{path} is a folder, not a file that could be written")
    if not path.exists():
        _check_inside(path.parent, path)
    elif not os.access(path, os.W_OK):
        raise TargetError(f"{path} cannot be written: Permission denied")


def check_folder(path: Path) -> None:
    """Raises `TargetError` unless files can be written into a folder that is there or can be made."""
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    _check_inside(there, path)


def _check_inside(folder: Path, target: Path) -> None:
    if not folder.exists():
        raise TargetError(f"{target} cannot be written: there is no folder {folder}")
    if not folder.is_dir():
        raise TargetError(f"{target} cannot be written: {folder} is not a folder")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise TargetError(f"{target} cannot be written: {error.strerror}") from error
