"""A text that changes a little at a time, as an editor's document does.

Responsible for applying changes that are given by position, at a cost that depends on the change
and not on the length of the text. Knows nothing of versions, files or edit history.
"""

from __future__ import annotations

from diffing.edits import Edit
from diffing.positions import (
    Encoding,
    Position,
    encoded_length,
    index_of_column,
    line_end_length,
    split_lines,
    without_line_end,
)


class TextBuffer:
    """The lines of a text that changes.

    Positions that come in and go out count units of `encoding`; `Edit`s count code points.
    Every line but the last ends with a line end and the last has none, so it may be empty.
    """

    def __init__(self, text: str = "", encoding: Encoding = "utf-16") -> None:
        self.encoding: Encoding = encoding
        self._set(text)

    def _set(self, text: str) -> None:
        self._lines = _lines_to_the_end(text)
        self._text: str | None = text
        self._length = len(text)
        # Start of one line, remembered so that edits in the same neighbourhood need not count from
        # the top.
        self._known_line = 0
        self._known_start = 0

    def __len__(self) -> int:
        return self._length

    @property
    def text(self) -> str:
        """The whole text; joined when it is asked for and kept until the next change."""
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    @property
    def line_count(self) -> int:
        """Number of lines, at least one."""
        return len(self._lines)

    def line_text(self, line: int) -> str:
        """The line without its line end. IndexError when there is no such line."""
        if line < 0:
            raise IndexError(f"line {line} of {len(self._lines)}")
        return without_line_end(self._lines[line])

    def change(
        self, start: Position | tuple[int, int], end: Position | tuple[int, int], new_text: str
    ) -> Edit:
        """Replace what lies between two positions and return the edit that was made.

        Positions are clamped as LSP says. An end that lies before the start is swapped with it.
        """
        first_line, first_index = self._locate(start)
        last_line, last_index = self._locate(end)
        if (last_line, last_index) < (first_line, first_index):
            first_line, first_index, last_line, last_index = (
                last_line,
                last_index,
                first_line,
                first_index,
            )
        line_start = self._line_start(first_line)
        edit_start = line_start + first_index
        if last_line == first_line:
            edit_end = line_start + last_index
        else:
            edit_end = self._line_start(last_line) + last_index
        prefix = self._lines[first_line][:first_index]
        middle = prefix + new_text + self._lines[last_line][last_index:]
        # A line feed that now follows a lone carriage return ends the same line as it.
        if not prefix and middle.startswith("\n") and first_line:
            before = self._lines[first_line - 1]
            if before.endswith("\r"):
                first_line -= 1
                line_start -= len(before)
                middle = before + middle
        if last_line == len(self._lines) - 1:
            self._lines[first_line:] = _lines_to_the_end(middle)
        else:
            self._lines[first_line : last_line + 1] = split_lines(middle)
        self._known_line, self._known_start = first_line, line_start
        self._length += len(new_text) - (edit_end - edit_start)
        self._text = None
        return Edit(edit_start, edit_end, new_text)

    def replace_all(self, text: str) -> Edit:
        """Replace the whole text and return the edit that was made."""
        edit = Edit(0, self._length, text)
        self._set(text)
        return edit

    def offset_at(self, position: Position | tuple[int, int]) -> int:
        """Code point offset of a position, clamped as LSP says."""
        line, index = self._locate(position)
        return self._line_start(line) + index

    def position_at(self, offset: int) -> Position:
        r"""Position of a code point offset, which is clamped to the text.

        Between `\r` and `\n` means before both.
        """
        offset = min(max(offset, 0), self._length)
        line, start = self._known_line, self._known_start
        if offset < start // 2:
            line, start = 0, 0
        while start > offset:
            line -= 1
            start -= len(self._lines[line])
        last = len(self._lines) - 1
        while line < last and start + len(self._lines[line]) <= offset:
            start += len(self._lines[line])
            line += 1
        self._known_line, self._known_start = line, start
        before = self.line_text(line)[: offset - start]
        return Position(line, encoded_length(before, self.encoding))

    def _locate(self, position: Position | tuple[int, int]) -> tuple[int, int]:
        """Line and index in it (code points) of a position, clamped."""
        line, column = position
        if line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        line = max(line, 0)
        return line, index_of_column(self.line_text(line), column, self.encoding)

    def _line_start(self, line: int) -> int:
        """Offset of a line, counted from the top or from the line that was last asked for."""
        known = self._known_line
        if line < known - line:
            start = sum(map(len, self._lines[:line]))
        elif line < known:
            start = self._known_start - sum(map(len, self._lines[line:known]))
        else:
            start = self._known_start + sum(map(len, self._lines[known:line]))
        self._known_line, self._known_start = line, start
        return start


def _lines_to_the_end(text: str) -> list[str]:
    """The lines of the end of a text: the last is the one without a line end."""
    lines = split_lines(text)
    if not lines or line_end_length(lines[-1]):
        lines.append("")
    return lines
