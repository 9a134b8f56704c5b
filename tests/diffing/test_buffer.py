"""The buffer against a naive reference that re-reads the whole text, encoded, for every change."""

from __future__ import annotations

import random
import re

import pytest

from diffing.buffer import TextBuffer
from diffing.edits import apply
from diffing.positions import split_lines

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
PIECES = [
    *("a", "b", " ", "\t", "x = 1", "\n", "\n", "\r\n", "\r\n", "\r", "\f", "\v", "\x1c"),
    *("\x85", "\u2028", "\u2029", "é", "e\u0301", "漢", "😀", "👩\u200d👧", "\ud800", "\udc00", ""),
]


def naive_offset(text: str, line: int, column: int, encoding: str) -> int:
    """The specification's words, one by one: walk over the lines, then over the encoded line."""
    start = 0
    for end in re.finditer("\r\n|\n|\r", text):
        if line == 0:
            content = text[start : end.start()]
            break
        line -= 1
        start = end.end()
    else:
        if line:
            return len(text)
        content = text[start:]
    codec, width = CODECS[encoding]
    encoded = [char.encode(codec, "surrogatepass") for char in content]
    taken = 0
    for index, char in enumerate(encoded):
        taken += len(char)
        if taken > column * width:
            return start + index
    return start + len(content)


def naive_change(text, start, end, new_text, encoding):
    a, b = naive_offset(text, *start, encoding), naive_offset(text, *end, encoding)
    return text[:a] + new_text + text[b:]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_a_hundred_thousand_random_changes(encoding):
    rng = random.Random(f"buffer {encoding}")
    text, buffer = "", TextBuffer("", encoding)
    for step in range(100_000):
        if step % 1_000 == 0 or len(text) > 160:
            text = "".join(rng.choices(PIECES, k=20))
            buffer.replace_all(text)
        start = (rng.randrange(buffer.line_count + 1), rng.randrange(12))
        if rng.random() < 0.4:
            end = start
        else:
            end = (start[0] + rng.choice((0, 0, 1, 1, 3)), rng.randrange(12))
            start, end = sorted((start, end))
        new_text = "".join(rng.choices(PIECES, k=rng.randrange(4)))
        before = text
        text = naive_change(text, start, end, new_text, encoding)
        edit = buffer.change(start, end, new_text)
        assert buffer.text == text, (step, before, start, end, new_text)
        assert len(buffer) == len(text)
        assert before[: edit.start] + new_text + before[edit.end :] == text
        if step % 50 == 0:
            assert apply(before, [edit]) == text
            lines = split_lines(text)
            if not lines or lines[-1][-1] in "\r\n":
                lines.append("")
            assert [buffer.line_text(i) for i in range(buffer.line_count)] == [
                line.rstrip("\r\n")
                if line.endswith("\r\n")
                else line.removesuffix("\n").removesuffix("\r")
                for line in lines
            ]
            offset = rng.randrange(len(text) + 1)
            back = naive_offset(text, *buffer.position_at(offset), encoding)
            assert back == offset - (text[offset - 1 : offset + 1] == "\r\n")


def test_line_ends_form_anew_when_their_halves_meet():
    buffer = TextBuffer("a\rb\nc")
    assert buffer.line_count == 3
    buffer.change((1, 0), (1, 1), "")  # \r and \n are neighbours now
    assert (buffer.text, buffer.line_count) == ("a\r\nc", 2)
    buffer.change((1, 0), (1, 0), "\n")
    assert (buffer.text, buffer.line_count) == ("a\r\n\nc", 3)
    buffer = TextBuffer("a\nb")
    buffer.change((0, 1), (0, 1), "\r")
    assert (buffer.text, buffer.line_count) == ("a\r\nb", 2)
    buffer = TextBuffer("a\r")
    buffer.change((9, 9), (9, 9), "\n")
    assert (buffer.text, buffer.line_count, buffer.line_text(0)) == ("a\r\n", 2, "a")


def test_form_feed_does_not_end_a_line():
    buffer = TextBuffer("a\fb\nc\n", "utf-8")
    edit = buffer.change((1, 0), (1, 1), "Z")
    assert buffer.text == "a\fb\nZ\n"
    assert (edit.start, edit.end) == (4, 5)


def test_positions_are_clamped():
    buffer = TextBuffer("abc\r\n😀", "utf-16")
    assert buffer.offset_at((0, 10)) == 3
    assert buffer.offset_at((1, 1)) == 5  # inside the surrogate pair
    assert buffer.offset_at((7, 7)) == 6
    assert buffer.position_at(6) == (1, 2)
    assert buffer.position_at(4) == (0, 3)
    edit = buffer.change((9, 9), (0, 1), "")  # the wrong way round
    assert buffer.text == "a"
    assert (edit.start, edit.end) == (1, 6)


def test_a_change_in_a_large_file_touches_few_lines():
    """The lines before and after an edit are the same objects as before it: nothing was rebuilt."""
    text = "".join(f"line {i}\n" for i in range(100_000))
    buffer = TextBuffer(text)
    before = list(buffer._lines)
    buffer.change((50_000, 4), (50_000, 4), "x")
    buffer.change((50_000, 5), (50_000, 5), "\n")
    assert buffer.line_count == 100_002
    assert all(a is b for a, b in zip(before[:50_000], buffer._lines[:50_000], strict=True))
    assert all(a is b for a, b in zip(before[50_001:], buffer._lines[50_002:], strict=True))
    assert buffer.line_text(50_000) == "linex"
    assert buffer.line_text(50_001) == " 50000"
    assert buffer._text is None
    assert buffer.position_at(buffer.offset_at((99_999, 3))) == (99_999, 3)
