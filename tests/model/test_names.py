from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.names import plural, rename_in_line, renaming, singular, split_words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("get_user_name", ["get", "user", "name"]),
        ("getUserName", ["get", "User", "Name"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("MAX_SIZE", ["MAX", "SIZE"]),
        ("_private2", ["private", "2"]),
        ("__init__", ["init"]),
        ("größe_max", ["größe", "max"]),
    ],
)
def test_names_split_at_case_and_underscores(name: str, words: list[str]) -> None:
    assert [word for _, word in split_words(name)] == words


def test_the_core_of_a_renaming_leaves_out_what_both_share() -> None:
    change = renaming("get_user_name", "get_account_name")
    assert change is not None
    assert (change.old, change.new, change.shared) == (("user",), ("account",), 2)


def test_a_word_added_keeps_the_whole_names() -> None:
    change = renaming("name", "user_name")
    assert change is not None
    assert (change.old, change.new) == (("name",), ("user", "name"))


def test_equal_words_are_no_renaming() -> None:
    assert renaming("userName", "user_name") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("item = ITEMS[Item]", "entry = ENTRIES[Entry]"),
        ("self._item(itemCount)", "self._entry(entryCount)"),
        ("items_by_id", "entries_by_id"),
        ("itemize(x)", "itemize(x)"),
    ],
)
def test_renaming_inside_a_line(line: str, expected: str) -> None:
    change = renaming("item", "entry")
    assert change is not None
    assert rename_in_line(line, change, inside=True) == expected


def test_two_words_for_one_join_in_the_style_of_the_name() -> None:
    change = renaming("size", "max_size")
    assert change is not None
    assert rename_in_line("size Size SIZE", change, inside=False) == "max_size MaxSize MAX_SIZE"


@pytest.mark.parametrize(
    ("one", "many"), [("entry", "entries"), ("box", "boxes"), ("name", "names"), ("day", "days")]
)
def test_plurals(one: str, many: str) -> None:
    assert plural(one) == many
    assert singular(many) == one


@pytest.mark.parametrize("word", ["class", "this", "bus", "is"])
def test_words_that_only_look_plural(word: str) -> None:
    assert singular(word) is None


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True))
def test_separators_and_words_make_up_the_name(name: str) -> None:
    joined = "".join(separator + word for separator, word in split_words(name))
    assert name.startswith(joined)
    assert set(name[len(joined) :]) <= {"_"}
