"""Edit prompts are read alike whoever wrote them, and never wrongly where the text holds the tags itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from edit_prompt_shapes import SHAPES, Situation, kilo
from hypothesis import example, given, settings
from hypothesis import strategies as st

from model.protocol import Snippet
from model.serving.diffs import split_diffs
from model.serving.prompts import PromptError, parse

TAGS = (
    *("<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>"),
    *("<|current_file_content|>", "<|/current_file_content|>"),
    *("<|edit_diff_history|>", "<|/edit_diff_history|>"),
    *("<|recently_viewed_code_snippets|>", "<|/recently_viewed_code_snippets|>"),
    *("<|recently_viewed_code_snippet|>", "<|/recently_viewed_code_snippet|>"),
)
PLAIN = Situation(
    "src/app.py",
    ("import sys", "", "def main():", "    total = 1", "    print(count)", "", "main()"),
    *(2, 4, 4, 10),
    snippets=(("src/util.py", ("def helper():", "    return 1")), ("b.py", ("x = 1",))),
    edits=(
        ("src/util.py", 1, ("def help():",), ("def helper():",)),
        ("src/app.py", 4, ("    count = 1",), ("    total = 1",)),
    ),
)
CODE = (
    "x = 1",
    "",
    "    return 🙂",
    "naïve = '日本'",
    "```",
    "```python",
    "=======",
    "\tif a:",
    "--- a",
    "+++ b",
)
line = st.sampled_from(CODE) | st.text(
    st.characters(blacklist_characters="\n\r<|", blacklist_categories=("Cs",)), max_size=12
)
mentioning = st.tuples(line, st.sampled_from(TAGS), line).map(lambda t: f"# {t[0]}{t[1]}{t[2]}.")
quoted = line | mentioning.filter(lambda text: "<|cursor|>" not in text)


@st.composite
def situations(draw: st.DrawFn, lines: st.SearchStrategy[str]) -> Situation:
    rows = tuple(draw(st.lists(lines, min_size=1, max_size=9)))
    if not rows[-1]:  # the last line end is not told apart from none
        rows = (*rows, "end")
    first = draw(st.integers(0, len(rows) - 1))
    last = draw(st.integers(first, len(rows) - 1))
    row = draw(st.integers(first, last))
    column = draw(st.integers(0, len(rows[row])))
    some = st.lists(lines, max_size=3).map(tuple)
    edits = draw(st.lists(st.tuples(st.just("a b.py"), st.integers(1, 9), some, some), max_size=3))
    # What is removed may look like a header of a diff: "-" and "-- a/x" is "--- a/x".
    kept = tuple(edit for edit in edits if edit[2] or edit[3])
    snippets = draw(st.lists(st.tuples(st.sampled_from(("s.py", "t u.ts")), some), max_size=2))
    full = tuple((path, (*text, "last")) for path, text in snippets)
    return Situation("dir/a b.py", rows, first, last, row, column, full, kept)


@pytest.mark.parametrize("client", SHAPES)
def test_every_client_is_read_alike(client: str) -> None:
    found = parse(SHAPES[client](PLAIN))
    assert found.path == "src/app.py"
    assert found.text == PLAIN.text
    assert found.text[: found.cursor].endswith("    print(")
    assert found.region_text == "def main():\n    total = 1\n    print(count)"
    assert found.history == PLAIN.diffs
    assert found.related == (
        Snippet("src/util.py", "def helper():\n    return 1"),
        Snippet("b.py", "x = 1"),
    )
    assert found.request(64) == parse(kilo(PLAIN)).request(64)


def is_read(it: Situation, client: str) -> None:
    found = parse(SHAPES[client](it))
    assert (found.text, found.cursor, found.region) == (it.text, it.cursor, it.region)
    assert found.history == it.diffs
    wanted = [Snippet(path, "\n".join(lines)) for path, lines in it.snippets]
    assert list(found.related) == wanted


@pytest.mark.parametrize("client", SHAPES)
@given(situations(line))
@settings(max_examples=40, deadline=None)
def test_any_code_is_read_exactly(client: str, it: Situation) -> None:
    is_read(it, client)


@pytest.mark.parametrize("client", SHAPES)
@given(situations(quoted))
@settings(max_examples=40, deadline=None)
def test_code_that_mentions_the_tags_is_read_exactly(client: str, it: Situation) -> None:
    is_read(it, client)


@pytest.mark.parametrize("client", SHAPES)
@given(situations(line | mentioning | st.sampled_from(TAGS)))
@example(replace(PLAIN, lines=("a", "<|code_to_edit|>", "b", "c", "d")))
@settings(max_examples=60, deadline=None)
def test_lines_that_are_tags_are_refused_rather_than_misread(client: str, it: Situation) -> None:
    try:
        found = parse(SHAPES[client](it))
    except PromptError:
        return
    assert (found.text, found.cursor, found.region) == (it.text, it.cursor, it.region)
    assert found.history == it.diffs


@given(st.text(max_size=60) | st.lists(st.sampled_from((*TAGS, "\n", "x"))).map("".join))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused(prompt: str) -> None:
    try:
        found = parse(prompt)
    except PromptError:
        return
    first, last = found.region
    assert 0 <= first <= last <= len(found.text)
    assert 0 <= found.cursor <= len(found.text)


@pytest.mark.parametrize("client", SHAPES)
def test_crlf_stays_in_text_and_region(client: str) -> None:
    it = replace(PLAIN, lines=tuple(row + "\r" for row in PLAIN.lines))
    found = parse(SHAPES[client](it))
    assert found.text == it.text
    assert found.region_text == "def main():\r\n    total = 1\r\n    print(count)\r"


def test_a_whole_prompt_with_crlf() -> None:
    found = parse(kilo(PLAIN).replace("\n", "\r\n"))
    assert found.path == "src/app.py"
    assert found.text.replace("\r\n", "\n") == PLAIN.text
    assert found.text[found.cursor :].startswith("count)")
    assert len(found.history) == 2


def test_diagnostics_and_staged_changes_are_no_files() -> None:
    staged = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b"
    it = replace(
        PLAIN, snippets=(("diagnostics", ("line 3: error",)), ("staged_git_diff", (staged,)))
    )
    found = parse(kilo(it))
    assert found.related == ()
    assert found.diagnostics == ("line 3: error",)
    assert found.history == (staged + "\n", *PLAIN.diffs)


def test_secrets_are_left_out() -> None:
    it = replace(
        PLAIN,
        snippets=((".env", ("KEY=1",)), ("keep.py", ("k",))),
        edits=(("conf/.env.local", 1, ("KEY=1",), ("KEY=2",)), *PLAIN.edits),
    )
    found = parse(kilo(it))
    assert found.related == (Snippet("keep.py", "k"),)
    assert found.history == PLAIN.diffs
    assert not found.secret
    assert parse(kilo(replace(PLAIN, path="/home/me/secrets/deploy.pem"))).secret
    assert not parse(kilo(replace(PLAIN, path="/home/me/secrets/a.py"))).secret


def test_the_tags_outside_of_the_region_are_text() -> None:
    lines = ("CURSOR = '<|cursor|>'", "a", "b", "# <|cursor|> <|cursor|>")
    found = parse(kilo(Situation("p.py", lines, 1, 2, 2, 1)))
    assert found.text == "\n".join(lines) + "\n"
    assert found.text[found.cursor - 3 :] == "a\nb\n# <|cursor|> <|cursor|>\n"


def test_what_is_missing_is_named() -> None:
    prompt = kilo(PLAIN)
    for tag in ("<|/current_file_content|>", "<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>"):
        with pytest.raises(PromptError, match=tag.strip("<>|/")):
            parse(prompt.replace(tag, ""))
    with pytest.raises(PromptError):
        parse("fix my code")
    two = kilo(replace(PLAIN, lines=("a", "b", "c", "d", "x <|cursor|> here", "f"), column=1))
    with pytest.raises(PromptError, match="2 times") as caught:
        parse(two)
    assert caught.value.code == "ambiguous_prompt"


def test_removed_lines_that_look_like_headers() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ new\n x\n"
    assert split_diffs(diff + diff, "y") == [("x.sql", diff), ("x.sql", diff)]


def test_hunks_without_a_header_are_of_the_current_file() -> None:
    assert split_diffs("@@ -1 +1 @@\n-a\n+b\n", "y.py") == [
        ("y.py", "--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-a\n+b\n")
    ]
