"""Uncommitted changes, asked from a real git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import diffing.git_changes as git_changes
from diffing.git_changes import uncommitted_changes
from diffing.hunks import apply_unified
from diffing.policy import FilePolicy

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q")
    old = {
        "src/app.py": "".join(f"line {i}\n" for i in range(20)),
        "ä b.py": "one\r\ntwo\n",
        ".env": "TOKEN=old\n",
        "gone.py": "x\n",
        "same.py": "x\n",
    }
    for name, text in old.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path, old


def edit(path: Path, text: str, time: int) -> None:
    path.write_bytes(text.encode())
    os.utime(path, (time, time))


def test_changes_in_order_of_time(repository):
    folder, old = repository
    new = {"src/app.py": old["src/app.py"].replace("line 3\n", "three\f\n"), "ä b.py": "one\r\n2"}
    edit(folder / "src" / "app.py", new["src/app.py"], 2_000)
    edit(folder / "ä b.py", new["ä b.py"], 1_000)
    edit(folder / ".env", "TOKEN=new\n", 3_000)
    (folder / "gone.py").unlink()
    (folder / "untracked.py").write_text("x\n")
    (folder / "data.bin").write_bytes(b"\0\1\3")
    (folder / "staged.py").write_text("new\n")
    git(folder, "add", "staged.py")
    changes = uncommitted_changes(folder, FilePolicy([folder]))
    assert [path for path, _ in changes] == ["ä b.py", "src/app.py", "staged.py"]
    for path, diff in changes[:2]:
        assert diff.startswith("--- a/")
        assert apply_unified(old[path], diff) == new[path]
    assert changes[2][1] == "--- /dev/null\n+++ b/staged.py\n@@ -0,0 +1 @@\n+new\n"


def test_paths_count_from_the_workspace_folder(repository):
    folder, old = repository
    edit(folder / "src" / "app.py", old["src/app.py"] + "more\n", 1_000)
    edit(folder / "same.py", "y\n", 2_000)
    changes = uncommitted_changes(folder / "src", FilePolicy([folder / "src"]))
    assert [path for path, _ in changes] == ["app.py"]
    assert changes[0][1].startswith("--- a/app.py\n+++ b/app.py\n@@ -18,3 +18,4 @@")


def test_the_policy_and_the_limits_hold(repository, monkeypatch):
    folder, old = repository
    edit(folder / "src" / "app.py", old["src/app.py"] + "more\n", 1_000)
    edit(folder / "same.py", "y\n", 2_000)
    edit(folder / "ä b.py", "long\n" * 3_000, 3_000)
    policy = FilePolicy([folder], exclude=["same.py"])
    assert [path for path, _ in uncommitted_changes(folder, policy)] == ["src/app.py"]
    policy = FilePolicy([folder])
    assert [p for p, _ in uncommitted_changes(folder, policy)] == ["src/app.py", "same.py"]
    assert [p for p, _ in uncommitted_changes(folder, policy, max_files=2)] == ["same.py"]
    assert [p for p, _ in uncommitted_changes(folder, policy, max_chars=80)] == ["same.py"]
    monkeypatch.setattr(git_changes, "MAX_FILE_BYTES", 10)
    assert [p for p, _ in uncommitted_changes(folder, policy)] == ["same.py"]


def test_secrets_are_not_even_asked_for(repository, monkeypatch):
    folder, _ = repository
    edit(folder / ".env", "TOKEN=new\n", 1_000)
    edit(folder / "same.py", "y\n", 2_000)
    seen = []
    run = subprocess.run

    def watched(*args, **kwargs):
        done = run(*args, **kwargs)
        seen.append((args[0], kwargs["env"], done.stdout))
        return done

    monkeypatch.setattr(git_changes.subprocess, "run", watched)
    assert len(uncommitted_changes(folder, FilePolicy([folder]))) == 1
    for command, environment, output in seen:
        assert b"TOKEN" not in output
        assert environment["GIT_OPTIONAL_LOCKS"] == "0"
        assert {"HEAD", "--no-color", "--no-ext-diff", "--no-textconv"} <= set(command)


def test_the_repositorys_own_programs_are_not_run(repository):
    folder, _ = repository
    script = folder / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "diff.py.textconv"):
        git(folder, "config", name, str(script))
    git(folder, "config", "diff.noprefix", "true")
    git(folder, "config", "color.ui", "always")
    (folder / ".gitattributes").write_text("*.py diff=py\n")
    (folder / "ran").unlink(missing_ok=True)
    edit(folder / "same.py", "y\n", 1_000)
    changes = uncommitted_changes(folder, FilePolicy([folder]))
    assert changes == [("same.py", "--- a/same.py\n+++ b/same.py\n@@ -1 +1 @@\n-x\n+y\n")]
    assert not (folder / "ran").exists()


def test_without_repository_commit_git_or_folder(tmp_path, monkeypatch):
    policy = FilePolicy([tmp_path])
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert uncommitted_changes(tmp_path, policy) == []
    assert uncommitted_changes(tmp_path / "missing", policy) == []
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("x\n")
    assert uncommitted_changes(tmp_path, policy) == []
    monkeypatch.setenv("PATH", "")
    assert uncommitted_changes(tmp_path, policy) == []


def test_a_slow_git_is_given_up(tmp_path, monkeypatch, caplog):
    if sys.platform == "win32":
        pytest.skip("needs a shell script")
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nexec sleep 30\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert uncommitted_changes(tmp_path, FilePolicy([tmp_path]), timeout=0.05) == []
    assert "not used" in caplog.text
