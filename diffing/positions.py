"""Where a place in a text is: offsets, lines and columns in each of LSP's three encodings.

Responsible for splitting a text into lines as LSP does and for turning positions into code point
offsets and back. Knows nothing of documents that change, of files or of edits.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from itertools import accumulate
from typing import Literal, NamedTuple

Encoding = Literal["utf-8", "utf-16", "utf-32"]


class Position(NamedTuple):
    """A zero-based line and a column in it.

    Whoever holds it says in which unit the column counts; code points when nobody does.
    """

    line: int
    character: int


def split_lines(text: str) -> list[str]:
    r"""Split after each `\n`, `\r\n` and `\r`, and nowhere else; the lines keep their ends.

    Joining the result gives `text` back. As with `str.splitlines` there is no empty last line:
    "a\n" is one line.
    """
    return list(io.StringIO(text, newline=""))


def line_end_length(line: str) -> int:
    r"""Length of the line end of `line`: 2 for `\r\n`, 1 for `\n` or `\r`, 0 without one."""
    if line.endswith("\r\n"):
        return 2
    return 1 if line.endswith(("\n", "\r")) else 0


def without_line_end(line: str) -> str:
    """`line` without the line end that it carries."""
    length = line_end_length(line)
    return line[:-length] if length else line


def encoded_length(text: str, encoding: Encoding) -> int:
    """Length of `text` in units of `encoding`.

    A lone surrogate counts three bytes or one utf-16 unit.
    """
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _units(char: str, encoding: Encoding) -> int:
    code = ord(char)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


def index_of_column(line: str, column: int, encoding: Encoding) -> int:
    """Index of the character of `line` (given without its end) that holds unit number `column`.

    A column past the end gives the end, a negative one 0, one inside a character the start of that
    character.
    """
    if column <= 0:
        return 0
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    seen = 0
    for index, char in enumerate(line):
        seen += _units(char, encoding)
        if seen > column:
            return index
    return len(line)


class LineIndex:
    """Lines and positions of a text that does not change.

    The last line may be empty: "a\\n" has two lines, and so has every text that ends with a line
    end.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = split_lines(text)
        if not self._lines or line_end_length(self._lines[-1]):
            self._lines.append("")
        self._starts = [0, *accumulate(map(len, self._lines))]

    @property
    def line_count(self) -> int:
        """Number of lines, at least one."""
        return len(self._lines)

    def line_start(self, line: int) -> int:
        """Code point offset of the start of `line`. IndexError when there is no such line."""
        if not 0 <= line < len(self._lines):
            raise IndexError(f"line {line} of {len(self._lines)}")
        return self._starts[line]

    def line_with_end(self, line: int) -> str:
        """The line and its line end. IndexError when there is no such line."""
        if line < 0:
            raise IndexError(f"line {line} of {len(self._lines)}")
        return self._lines[line]

    def line_text(self, line: int) -> str:
        """The line without its line end. IndexError when there is no such line."""
        return without_line_end(self.line_with_end(line))

    def line_of(self, offset: int) -> int:
        """The line that holds the character at `offset`, which is clamped to the text."""
        return min(max(bisect_right(self._starts, offset) - 1, 0), len(self._lines) - 1)

    def offset_at(self, position: Position | tuple[int, int], encoding: Encoding = "utf-32") -> int:
        """Code point offset of a position, clamped as LSP says.

        A line past the last gives the end of the text, a column past the line its end (before the
        line end), a column inside a character the start of that character. Negative numbers count
        as 0.
        """
        line, column = position
        if line >= len(self._lines):
            return len(self.text)
        line = max(line, 0)
        return self._starts[line] + index_of_column(self.line_text(line), column, encoding)

    def position_at(self, offset: int, encoding: Encoding = "utf-32") -> Position:
        r"""Position of a code point offset, which is clamped to the text.

        Between `\r` and `\n` means before both.
        """
        offset = min(max(offset, 0), len(self.text))
        line = self.line_of(offset)
        before = self.line_text(line)[: offset - self._starts[line]]
        return Position(line, encoded_length(before, encoding))
