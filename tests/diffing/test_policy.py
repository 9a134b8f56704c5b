"""Which files may be read. A wrong verdict here sends a secret into a prompt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import diffing.policy as policy_module
from diffing.policy import (
    MAX_LINE_CHARS,
    MAX_TEXT_CHARS,
    FilePolicy,
    content_reason,
    path_of,
)


def write(path: Path, text: str = "x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "name",
    [
        *(
            ".env",
            ".env.local",
            ".ENV",
            "prod.env",
            ".envrc",
            "server.pem",
            "Server.PEM",
            "tls.key",
        ),
        *(
            "id_rsa",
            "id_rsa.old",
            "id_ed25519",
            "credentials",
            "credentials.json",
            "Credentials.yml",
        ),
        *(
            ".netrc",
            ".npmrc",
            ".pypirc",
            "a.p12",
            "a.pfx",
            "a.jks",
            ".aws/credentials",
            ".aws/config",
        ),
        *("secrets.yaml", "secrets.py", ".git/config", "sub/.git/HEAD", ".ssh/known_hosts"),
        *(
            "deep/in/the/tree/.env.production",
            ".env/inside",
            ".git-credentials",
            "terraform.tfvars",
        ),
    ],
)
def test_secrets_are_never_read(tmp_path, name):
    policy = FilePolicy([tmp_path])
    assert policy.verdict(tmp_path / name) == "secret-file"
    assert policy.verdict(name) == "secret-file"
    assert policy.verdict((tmp_path / name).as_uri()) == "secret-file"
    assert policy.verdict(tmp_path / name, opened=True) == "secret-file"
    assert FilePolicy([]).verdict("/elsewhere/" + name) == "secret-file"


@pytest.mark.parametrize(
    "name",
    ["app.py", "environment.py", "src/keyboard.ts", "env.py", "id.rs", "gitignore.md", "monkey.js"],
)
def test_source_files_may_be_read(tmp_path, name):
    assert FilePolicy([tmp_path]).verdict(tmp_path / name) is None


def test_where_the_workspace_lies_does_not_decide_about_its_files(tmp_path):
    root = tmp_path / "credentials-api" / "docs"
    root.mkdir(parents=True)
    policy = FilePolicy([root], exclude=["docs"], allow=["credentials-api", "tmp"])
    assert policy.verdict(root / "app.py") is None
    assert policy.verdict(root / "docs" / "a.md") == "excluded-by-setting"
    assert policy.verdict(root / ".env") == "secret-file"
    assert policy.verdict(root / "credentials" / "key.txt") == "secret-file"
    # Outside of the workspace every name on the way counts.
    assert policy.verdict(tmp_path / "credentials-api" / "app.py") == "secret-file"
    (tmp_path / ".ssh").mkdir()
    assert FilePolicy([tmp_path / ".ssh"]).verdict("config") == "secret-file"


def test_a_link_to_a_secret_is_a_secret(tmp_path):
    write(tmp_path / ".env", "TOKEN=1\n")
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".env")
    (tmp_path / "folder").symlink_to(write(tmp_path / ".ssh" / "config").parent)
    policy = FilePolicy([tmp_path])
    assert policy.verdict(tmp_path / "notes.txt") == "secret-file"
    assert policy.verdict(tmp_path / "folder" / "config") == "secret-file"
    assert policy.read(tmp_path / "notes.txt") == (None, "secret-file")
    # Allowing the link by its name does not allow what it points to.
    assert FilePolicy([tmp_path], allow=["notes.txt"]).verdict("notes.txt") == "secret-file"
    assert FilePolicy([tmp_path], allow=["notes.txt", ".env"]).verdict("notes.txt") is None


def test_dots_in_a_path_hide_nothing(tmp_path):
    policy = FilePolicy([tmp_path])
    assert policy.verdict(f"{tmp_path}/src/../.env") == "secret-file"
    assert policy.verdict("file://" + str(tmp_path) + "/src/%2e%2e/%2Eenv") == "secret-file"


def test_the_users_globs_add_to_the_built_in_list(tmp_path):
    policy = FilePolicy([tmp_path], exclude=["*.sql", "private/", "/top.py", "!.env", "!*.pem"])
    assert policy.verdict("dump.sql") == "excluded-by-setting"
    assert policy.verdict("DUMP.SQL") == "excluded-by-setting"
    assert policy.verdict("a/private/b/c.py") == "excluded-by-setting"
    assert policy.verdict("top.py") == "excluded-by-setting"
    assert policy.verdict("a/top.py") is None
    assert policy.verdict(".env") == "secret-file"
    assert policy.verdict("a.pem") == "secret-file"
    absolute = FilePolicy([tmp_path], exclude=["/elsewhere/**"])
    assert absolute.verdict("/elsewhere/deep/x.py") == "excluded-by-setting"


def test_absolute_globs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "private" / "work"
    policy = FilePolicy([root], exclude=["~/private/**"], allow=[f"{root}/a/**", "/tmp"])
    assert policy.verdict("b.py") == "excluded-by-setting"
    assert policy.verdict("a/.env") is None
    assert policy.verdict(".env") == "secret-file"
    assert FilePolicy([], allow=[".env.example"]).verdict("/elsewhere/.env.example") is None
    assert FilePolicy([], allow=["elsewhere"]).verdict("/elsewhere/.env") == "secret-file"


def test_a_malformed_glob_is_refused(tmp_path):
    with pytest.raises(ValueError, match="pattern"):
        FilePolicy([tmp_path], exclude=["a/!!\\"])


def test_only_the_allow_list_overrides(tmp_path):
    write(tmp_path / ".gitignore", "gen/\n")
    policy = FilePolicy(
        [tmp_path], exclude=["*.sql"], allow=[".env.example", "keep.sql", "gen/api.py"]
    )
    assert policy.verdict(".env.example") is None
    assert policy.verdict(".env") == "secret-file"
    assert policy.verdict("keep.sql") is None
    assert policy.verdict("drop.sql") == "excluded-by-setting"
    assert policy.verdict("gen/api.py") is None
    assert policy.verdict("gen/other.py") == "git-ignored"


@pytest.mark.parametrize(
    "uri",
    [
        "vscode-remote://ssh/home/x.py",
        "http://host/x.py",
        "git:/repo/x.py",
        "vscode-notebook-cell:/x.ipynb#a",
        "output:log",
    ],
)
def test_other_schemes_fail_closed(tmp_path, uri):
    assert FilePolicy([tmp_path], allow=["*"]).verdict(uri) == "unsupported-scheme"


def test_file_and_untitled_uris(tmp_path):
    policy = FilePolicy([tmp_path])
    assert policy.verdict((tmp_path / "ä b.py").as_uri()) is None
    assert policy.verdict("untitled:Untitled-1") is None
    assert policy.verdict("untitled:.env") == "secret-file"
    write(tmp_path / ".gitignore", "*\n")
    assert FilePolicy([tmp_path]).verdict("untitled:Untitled-1") is None
    assert path_of("file:///a/%C3%A4%20b.py") == Path("/a/ä b.py")
    assert path_of("file:///c%3A/x/y.py") == Path("c:/x/y.py")
    assert path_of("file://server/share/x.py") == Path("//server/share/x.py")
    assert path_of("C:\\x.py") == Path("C:\\x.py")


def test_gitignore(tmp_path):
    write(tmp_path / ".gitignore", "*.log\nbuild/\n!keep.log\n[bad\n")
    write(tmp_path / "sub" / ".gitignore", "!special.log\nlocal.py\n/anchored.py\n")
    write(tmp_path / ".git" / "info" / "exclude", "mine.py\n")
    policy = FilePolicy([tmp_path])
    ignored = ["a.log", "x/a.log", "build/x.py", "x/build/y/z.py", "sub/local.py", "sub/d/local.py"]
    ignored += ["sub/anchored.py", "mine.py", "sub/a.log", "build/keep.log"]
    for name in ignored:
        assert policy.verdict(name) == "git-ignored", name
        assert policy.verdict(name, opened=True) is None, name
    kept = ["keep.log", "sub/special.log", "local.py", "sub/d/anchored.py", "building/x.py"]
    for name in kept:
        assert policy.verdict(name) is None, name
    assert policy.ignores_folder("build")
    assert policy.ignores_folder(".git")
    assert policy.ignores_folder("x/build/y")
    assert not policy.ignores_folder("sub")
    assert not policy.ignores_folder(tmp_path)
    relaxed = FilePolicy([tmp_path], respect_gitignore=False)
    assert relaxed.verdict("a.log") is None


def test_gitignore_files_are_read_anew_after_refresh(tmp_path):
    policy = FilePolicy([tmp_path])
    assert policy.verdict("gen/a.py") is None
    write(tmp_path / ".gitignore", "gen\n")
    policy.refresh()
    assert policy.verdict("gen/a.py") == "git-ignored"


def test_the_deepest_workspace_folder_decides(tmp_path):
    outer, inner, beside = tmp_path / "outer", tmp_path / "outer" / "inner", tmp_path / "beside"
    write(outer / ".gitignore", "*\n")
    write(inner / ".gitignore", "out.py\n")
    beside.mkdir()
    policy = FilePolicy([outer, inner, beside])
    assert policy.verdict(outer / "a.py") == "git-ignored"
    assert policy.verdict(inner / "a.py") is None
    assert policy.verdict(inner / "out.py") == "git-ignored"
    assert policy.verdict(beside / "a.py") is None
    assert policy.folder_of(inner / "x" / "a.py") == inner
    assert policy.folder_of(tmp_path / "a.py") is None


def test_rules_of_the_repository_above_the_workspace_folder(tmp_path):
    (tmp_path / ".git").mkdir()
    write(tmp_path / ".gitignore", "*.log\n/packages/one/dist\npackages/two\n")
    policy = FilePolicy([tmp_path / "packages" / "one"])
    assert policy.verdict("a.log") == "git-ignored"
    assert policy.verdict("dist/a.js") == "git-ignored"
    assert policy.verdict("src/a.js") is None
    assert FilePolicy([tmp_path / "packages" / "two"]).verdict("a.js") is None


def test_files_outside_of_all_folders(tmp_path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    write(tmp_path / "repo" / ".gitignore", "gen.py\n")
    policy = FilePolicy([tmp_path / "work"])
    assert policy.verdict(tmp_path / "repo" / "gen.py") == "git-ignored"
    assert policy.verdict(tmp_path / "repo" / "a.py") is None
    assert policy.verdict(tmp_path / "plain" / "a.py") is None


def test_a_workspace_folder_behind_a_link(tmp_path):
    write(tmp_path / "real" / ".gitignore", "gen.py\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    policy = FilePolicy([tmp_path / "link"], exclude=["/only/here.py"])
    assert policy.verdict("gen.py") == "git-ignored"
    assert policy.verdict(tmp_path / "link" / "only" / "here.py") == "excluded-by-setting"
    assert policy.verdict(tmp_path / "real" / "only" / "here.py") == "excluded-by-setting"
    assert policy.verdict("a.py") is None


def test_content_reasons():
    assert content_reason("def f():\n    pass\n") is None
    assert content_reason("") is None
    assert content_reason("a\0b") == "binary"
    assert content_reason("x" * (MAX_TEXT_CHARS + 1)) == "too-large"
    line = "x" * MAX_LINE_CHARS
    assert content_reason(f"{line}\n{line}\r\n{line}\r{line}") is None
    assert content_reason(f"a\n{line}x\nb") == "line-too-long"
    assert content_reason("x" * 5_000_000) == "line-too-long"
    assert content_reason("x = 1\n" * 1_000_000) is None


def test_read(tmp_path, monkeypatch):
    policy = FilePolicy([tmp_path])
    write(tmp_path / "a.py", "ä\n")
    assert policy.read("a.py") == ("ä\n", None)
    (tmp_path / "crlf.py").write_bytes(b"a\r\nb\r")
    assert policy.read("crlf.py") == ("a\r\nb\r", None)
    (tmp_path / "latin.py").write_bytes(b"\xe4\n")
    (tmp_path / "nul.py").write_bytes(b"a\0b")
    assert policy.read("latin.py") == (None, "binary")
    assert policy.read("nul.py") == (None, "binary")
    assert policy.read("missing.py") == (None, "unreadable")
    assert policy.read(tmp_path) == (None, "unreadable")
    write(tmp_path / ".env")
    assert policy.read(".env") == (None, "secret-file")
    monkeypatch.setattr(policy_module, "MAX_FILE_BYTES", 3)
    write(tmp_path / "big.py", "1234")
    assert policy.read("big.py") == (None, "too-large")
    assert policy.read("a.py") == ("ä\n", None)


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    assert FilePolicy([tmp_path]).read("pipe.py") == (None, "unreadable")
