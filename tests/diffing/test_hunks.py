"""Unified diffs both ways, with everything that breaks other tools inside of the lines."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unidiff import PatchSet

from diffing.hunks import (
    DiffHunk,
    Hunk,
    apply_unified,
    change_groups,
    parse_unified,
    reverse_unified,
    substitutions,
    unified_diff,
)

PIECES = [
    *("a\n", "b\n", "\n", "c", "\r\n", "\r", "\f", "\v", "\x1c", "\x85", "\u2028", "😀", "\ud800"),
    *("- x\n", "--- a/z\n", "+++ b/z\n", "@@ -1 +1 @@\n", "\\ No newline at end of file\n"),
    *("diff --git a/x b/x\n", " \n", "+\n"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(TEXTS, TEXTS, st.integers(0, 4))
def test_round_trip(old, new, context):
    diff = unified_diff(old, new, "src/a b.py", context)
    assert (diff == "") == (old == new)
    assert apply_unified(old, diff) == new
    assert reverse_unified(new, diff) == old
    if diff:
        assert diff.endswith("\n")
        (file,) = parse_unified(diff)
        assert file.path == "src/a b.py"
        (patch,) = PatchSet([line + "\n" for line in diff.split("\n")[:-1]])
        assert len(patch) == len(file.hunks)


def test_a_plain_diff():
    old = "".join(f"line {i}\n" for i in range(1, 30))
    new = old.replace("line 5\n", "line five\n").replace("line 20\n", "")
    assert unified_diff(old, new, "src/app.py", 1) == (
        "--- a/src/app.py\n+++ b/src/app.py\n"
        "@@ -4,3 +4,3 @@\n line 4\n-line 5\n+line five\n line 6\n"
        "@@ -19,3 +19,2 @@\n line 19\n-line 20\n line 21\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "body"),
    [
        ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
        ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
        ("", "a", "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"),
        (
            "x=1",
            "x=2",
            "@@ -1 +1 @@\n-x=1\n\\ No newline at end of file\n+x=2\n\\ No newline at end of file\n",
        ),
        ("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        (
            "a\nz",
            "b\nz",
            "@@ -1,2 +1,2 @@\n-a\n+b\n z\n\\ No newline at end of file\n",
        ),
        ("a\fb\rc\u2028d\n", "a\fb\rX\u2028d\n", None),
    ],
)
def test_ends_of_file(old, new, body):
    diff = unified_diff(old, new, "f")
    if body is None:
        body = f"@@ -1 +1 @@\n-{old}+{new}"
    assert diff == "--- a/f\n+++ b/f\n" + body
    assert apply_unified(old, diff) == new
    assert reverse_unified(new, diff) == old


def test_first_line_moves_the_hunks():
    diff = unified_diff("b\n", "c\n", "f", first_line=10)
    assert "@@ -11 +11 @@" in diff
    assert apply_unified("a\n" * 10 + "b\n", diff) == "a\n" * 10 + "c\n"


def test_git_applies_what_we_write_and_we_apply_what_git_writes(tmp_path):
    old = "a\fb\r\nsecond\u2028half\n" + "same\n" * 10 + "last é"
    new = "a\fB\r\nsecond\u2028half\n" + "same\n" * 9 + "added\nlast 😀"
    for name, text in (("old", old), ("new", new)):
        (tmp_path / name).write_bytes(text.encode())
    git = ["git", "-c", "core.autocrlf=false"]
    written = subprocess.run(
        [*git, "diff", "--no-index", "--no-color", "old", "new"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    ).stdout.decode()
    assert apply_unified(old, written) == new
    assert reverse_unified(new, written) == old
    subprocess.run(
        [*git, "apply", "--whitespace=nowarn"],
        cwd=tmp_path,
        input=unified_diff(old, new, "old").encode(),
        check=True,
    )
    assert (tmp_path / "old").read_bytes().decode() == new


@pytest.mark.parametrize("path", ['tab\t "quoted" \\ new\nline é.py', "plain name.py", "a/b/c"])
def test_unusual_paths(path):
    diff = unified_diff("a\n", "b\n", path)
    assert parse_unified(diff)[0].path == path
    assert apply_unified("a\n", diff) == "b\n"


def test_paths_that_git_quotes():
    quoted = '--- "a/\\303\\244\\t.py"\n+++ "b/\\303\\244\\t.py"\n@@ -1 +1 @@\n-a\n+b\n'
    assert parse_unified(quoted)[0].path == "ä\t.py"
    gone = "--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert parse_unified(gone)[0].path == "x.py"


def test_parse_keeps_context_and_passes_over_comments():
    diff = "// User accepted prediction:\n" + unified_diff("a\nb\nc\n", "a\nB\nc\nd\n", "f.py")
    (file,) = parse_unified(diff)
    assert file.hunks == (
        DiffHunk(0, 0, ((" ", "a\n"), ("-", "b\n"), ("+", "B\n"), (" ", "c\n"), ("+", "d\n"))),
    )
    assert file.hunks[0].old_lines == ("a\n", "b\n", "c\n")
    assert file.hunks[0].change_groups() == [
        Hunk(1, ("b\n",), 1, ("B\n",)),
        Hunk(3, (), 3, ("d\n",)),
    ]
    assert parse_unified("") == []


@pytest.mark.parametrize(
    "diff",
    [
        "@@ -1 +1 @@\n-a\n+b\n",
        "--- a/f\n+++ b/f\n@@ -1,3 +1 @@\n-a\n+b\n",
        "some words\n",
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n?b\n",
    ],
)
def test_malformed_diffs_are_refused(diff):
    with pytest.raises(ValueError, match="diff"):
        parse_unified(diff)


def test_a_hunk_that_does_not_fit_is_refused():
    diff = unified_diff("a\nb\n", "a\nc\n", "f")
    with pytest.raises(ValueError, match="hunk 1 does not fit"):
        apply_unified("a\nX\n", diff)
    with pytest.raises(ValueError, match="hunk 1 does not fit"):
        reverse_unified("a\nb\n", diff)
    with pytest.raises(ValueError, match="2 files"):
        apply_unified("a\nb\n", diff + diff.replace("/f", "/g"))


def test_change_groups_use_the_line_ends_of_the_text():
    assert change_groups("a\rb\rc", "a\rB\rc") == [Hunk(1, ("b\r",), 1, ("B\r",))]
    assert change_groups("a\n", "a\nb") == [Hunk(1, (), 1, ("b",))]
    assert change_groups("same", "same") == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("foo(a)\n", "bar(a)\n", [("foo", "bar")]),
        ("x = user_name\n", "x = user_id\n", [("user_name", "user_id")]),
        ("getUserName()\n", "getUserId()\n", [("getUserName", "getUserId")]),
        ("if a == 10:\n", "if a != 12:\n", [("==", "!="), ("10", "12")]),
        ("print('old name')\n", "print('new name')\n", [("old", "new")]),
        ("f(a)\n", "f(a, b)\n", []),
        ("f(a, b)\n", "f(a)\n", []),
        ("    x = 1\n", "  x = 1\n", []),
        ("größe = 1\n", "länge = 1\n", [("größe", "länge")]),
        ("a.b.c\n", "a.q.r.c\n", [("b", "q.r")]),
        ("foo\nfoo\n", "bar\nbar\n", [("foo", "bar")]),
        ("foo(1)\n", "# why\nbar(1)\n", []),
    ],
)
def test_substitutions(old, new, expected):
    diff = unified_diff(old, new, "f")
    if expected:
        assert substitutions(diff) == expected
        (file,) = parse_unified(diff)
        assert substitutions(file) == substitutions(file.hunks[0]) == expected
    else:
        assert [pair for pair in substitutions(diff) if pair[0] != "foo"] == []


def test_substitutions_of_a_rename_over_many_lines():
    old = "total = 0\nfor x in xs:\n    total += x\nprint(total)\n"
    new = old.replace("total", "result")
    assert substitutions(unified_diff(old, new, "f")) == [("total", "result")]
    assert substitutions(change_groups(old, new)[0]) == [("total", "result")]
