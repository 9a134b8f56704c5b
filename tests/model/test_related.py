from __future__ import annotations

import pytest

from model.protocol import Request, Snippet
from model.related import defined_name, excerpt, nearby_names, ranked, split_diff


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("def load(path):", "load"),
        ("    async def load(path):", "load"),
        ("export const total = (a) => a;", "total"),
        ("func (s *Server) Start() error {", "Start"),
        ("    public static List<String> names(int n) {", "names"),
        ("LIMIT: int = 3", "LIMIT"),
        ("return load(path)", None),
        ("if x == y:", None),
        ("load(path)", None),
    ],
)
def test_definitions_of_many_languages(line: str, name: str | None) -> None:
    assert defined_name(line) == name


SOURCE = """\
import os


class Store:
    kind = 1

    def load(self, key):
        return self.rows[key]

    def save(self, key, row):
        self.rows[key] = row


def other():
    return 3
"""


def test_an_excerpt_holds_the_class_head_and_the_method_in_use() -> None:
    text = excerpt(SOURCE, frozenset({"save"}), lambda part: True)
    assert text == ("class Store:\n\n    def save(self, key, row):\n        self.rows[key] = row\n")


def test_definitions_that_do_not_fit_are_left_out() -> None:
    names = frozenset({"load", "other"})
    text = excerpt(SOURCE, names, lambda part: part.count("\n") <= 2)
    assert text == "def other():\n    return 3\n"


def test_an_excerpt_of_nothing_is_empty() -> None:
    assert excerpt(SOURCE, frozenset({"absent"}), lambda part: True) == ""


def test_files_of_newer_edits_come_first_then_those_that_define_more() -> None:
    edit = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-x\n+y\n"
    files = [
        Snippet("a.py", "x = 1\n"),
        Snippet("b.py", "def used():\n    pass\n"),
        Snippet("old.py", ""),
        Snippet("new.py", ""),
        Snippet("app.py", ""),
    ]
    request = Request(
        "next_edit",
        "app.py",
        "",
        0,
        history=(edit.format("old.py"), edit.format("new.py")),
        related=tuple(files),
    )
    order = [snippet.path for snippet in ranked(request, frozenset({"used"}))]
    assert order == ["new.py", "old.py", "b.py", "a.py"]


def test_the_word_at_the_cursor_is_no_name_yet() -> None:
    text = "alpha = beta(gam"
    assert nearby_names(text, 0, len(text), len(text)) == {"alpha", "beta"}


def test_a_diff_comes_apart_into_whole_hunks() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-@@ x\n+y\n@@ -9 +9 @@ def f\n-1\n+2\n"
    head, hunks = split_diff(diff)
    assert head == "--- a\n+++ b\n"
    assert hunks == ["@@ -1 +1 @@\n-@@ x\n+y\n", "@@ -9 +9 @@ def f\n-1\n+2\n"]
    assert head + "".join(hunks) == diff
