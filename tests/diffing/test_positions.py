"""Lines end as in LSP, and positions are clamped as LSP says, in all three encodings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffing.positions import (
    LineIndex,
    Position,
    encoded_length,
    line_end_length,
    split_lines,
    without_line_end,
)

ORDINARY = "\f\v\x1c\x1d\x1e\x85\u2028\u2029"
TEXTS = st.text(st.sampled_from("ab\n\r\f\u2028é😀e\u0301\ud800"), max_size=30)


def test_only_three_line_ends():
    assert split_lines("a\nb\r\nc\rd") == ["a\n", "b\r\n", "c\r", "d"]
    assert split_lines(f"x{ORDINARY}y\nz") == [f"x{ORDINARY}y\n", "z"]
    assert split_lines("\r\r\n\n\r") == ["\r", "\r\n", "\n", "\r"]
    assert split_lines("") == []


@given(TEXTS)
def test_lines_join_to_the_text(text: str):
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line_end_length(line) for line in lines[:-1])
    assert not any({"\n", "\r"} & set(without_line_end(line)) for line in lines)


def test_line_index():
    index = LineIndex("ab\r\ncd\n")
    assert index.line_count == 3
    assert [index.line_start(i) for i in range(3)] == [0, 4, 7]
    assert [index.line_text(i) for i in range(3)] == ["ab", "cd", ""]
    assert index.line_with_end(0) == "ab\r\n"
    assert LineIndex("").line_count == 1
    with pytest.raises(IndexError):
        index.line_start(3)
    with pytest.raises(IndexError):
        index.line_text(-1)


def test_clamping():
    index = LineIndex("ab\r\ncd\rlast")
    assert index.offset_at(Position(0, 99)) == 2  # before the line end, not between \r and \n
    assert index.offset_at((1, 99)) == 6
    assert index.offset_at((2, 99)) == index.offset_at((99, 0)) == 11
    assert index.offset_at((-1, -1)) == 0
    assert index.position_at(3) == (0, 2)  # between \r and \n
    assert index.position_at(999) == (2, 4)
    assert index.position_at(-5) == (0, 0)


@pytest.mark.parametrize(
    ("encoding", "columns"),
    [
        ("utf-8", {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 6: 2, 7: 3, 8: 4, 9: 4, 10: 5, 11: 5}),
        ("utf-16", {0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 5: 4, 6: 5, 7: 5}),
        ("utf-32", {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 5}),
    ],
)
def test_columns_of_wide_characters(encoding, columns):
    # a letter, two bytes, four bytes (a surrogate pair), a letter, a combining mark of two bytes
    index = LineIndex("aé😀e\u0301\n")
    assert {column: index.offset_at((0, column), encoding) for column in columns} == columns


def test_lone_surrogates_have_a_length():
    assert encoded_length("\ud800", "utf-8") == 3
    assert encoded_length("\ud800", "utf-16") == 1
    assert encoded_length("a\udfff😀", "utf-16") == 4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@given(TEXTS)
def test_every_offset_survives_the_round_trip(encoding, text: str):
    index = LineIndex(text)
    for offset in range(len(text) + 1):
        inside_line_end = text[offset - 1 : offset + 1] == "\r\n"
        expected = offset - 1 if inside_line_end else offset
        assert index.offset_at(index.position_at(offset, encoding), encoding) == expected
