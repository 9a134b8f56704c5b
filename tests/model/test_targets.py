"""Whether a command could write where it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.targets import TargetError, check_file, check_folder


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("kept")
    for path in (there, tmp_path / "new.json", None, "-", "/dev/null"):
        check_file(path)
    check_folder(tmp_path / "a" / "b")
    check_folder(tmp_path)
    assert there.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [there]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is a folder, not a file"),
        ("none/new.json", "there is no folder"),
        ("file/new.json", "is not a folder"),
    ],
)
def test_what_keeps_a_file_from_being_written(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TargetError, match=said):
        check_file(tmp_path / name)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TargetError, match="is not a folder"):
        check_folder(tmp_path / "file" / "run")


def test_what_the_system_refuses_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(dir: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(TargetError, match=r"run cannot be written: Read-only file system"):
        check_folder(tmp_path / "run")
