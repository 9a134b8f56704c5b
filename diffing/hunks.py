r"""Changed lines: groups of them, unified diffs both ways, and the substitutions seen in them.

Responsible for the text form of a change. Knows nothing of files on disk, of history or of models.

In a unified diff only `\n` ends a line; a carriage return, form feed or U+2028 stays inside of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from unidiff import PatchSet
from unidiff.errors import UnidiffParseError

from diffing.line_diff import Range, changed_ranges
from diffing.positions import split_lines

NO_NEWLINE = "\\ No newline at end of file\n"
# Longest run of tokens that still counts as one thing replaced by another.
MAX_SUBSTITUTION_TOKENS = 6

_TOKEN = re.compile(
    r"[^\W\d]\w*|\d[\w.]*|\.\.\.|->|=>|::|&&|\|\||\?\?|\?\.|\+\+|--|\*\*|//|<<|>>|[-+*/%&|^!<>=:]=+|[^\w\s]"
)
_UNUSUAL = re.compile(r'[\x00-\x1f\x7f"\\]')


@dataclass(frozen=True)
class Hunk:
    """A maximal run of changed lines without context; lines count from 0 and keep their ends."""

    old_start: int
    old_lines: tuple[str, ...]
    new_start: int
    new_lines: tuple[str, ...]


@dataclass(frozen=True)
class DiffHunk:
    """A hunk of a unified diff. `lines` pairs a tag (" ", "-" or "+") with a line that keeps its
    end.

    `old_start` and `new_start` count from 0 and are where the hunk's lines begin, also where there
    are none.
    """

    old_start: int
    new_start: int
    lines: tuple[tuple[str, str], ...]

    @property
    def old_lines(self) -> tuple[str, ...]:
        """Context and removed lines."""
        return tuple(line for tag, line in self.lines if tag != "+")

    @property
    def new_lines(self) -> tuple[str, ...]:
        """Context and added lines."""
        return tuple(line for tag, line in self.lines if tag != "-")

    def change_groups(self) -> list[Hunk]:
        """The runs of changed lines of this hunk."""
        groups = []
        old_line, new_line = self.old_start, self.new_start
        removed: list[str] = []
        added: list[str] = []
        for tag, line in [*self.lines, (" ", "")]:
            if tag == "-":
                removed.append(line)
            elif tag == "+":
                added.append(line)
            else:
                if removed or added:
                    groups.append(Hunk(old_line, tuple(removed), new_line, tuple(added)))
                old_line += len(removed) + 1
                new_line += len(added) + 1
                removed, added = [], []
        return groups


@dataclass(frozen=True)
class FileDiff:
    """The hunks of one file.

    `path` has no `a/` or `b/`; it is the new one where the file was renamed.
    """

    path: str
    hunks: tuple[DiffHunk, ...]


def change_groups(old: str, new: str) -> list[Hunk]:
    """Maximal runs of changed lines between two texts, in order. Lines end as in LSP."""
    old_lines, new_lines = split_lines(old), split_lines(new)
    return [
        Hunk(i1, tuple(old_lines[i1:i2]), j1, tuple(new_lines[j1:j2]))
        for i1, i2, j1, j2 in changed_ranges(old_lines, new_lines)
    ]


def diff_lines(text: str) -> list[str]:
    r"""The lines of a text as a unified diff counts them: split after `\n` only, ends kept."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def unified_diff(old: str, new: str, path: str, context: int = 3, *, first_line: int = 0) -> str:
    """The unified diff from `old` to `new`; empty when they are equal.

    `first_line` is the number of lines of the file before the two texts, when they are only parts
    of it.
    """
    old_lines, new_lines = diff_lines(old), diff_lines(new)
    ranges = changed_ranges(old_lines, new_lines)
    if not ranges:
        return ""
    parts = [f"--- {_quoted('a/' + path)}\n+++ {_quoted('b/' + path)}\n"]
    for group in _grouped(ranges, context):
        i1, j1 = max(group[0][0] - context, 0), max(group[0][2] - context, 0)
        i2 = min(group[-1][1] + context, len(old_lines))
        j2 = min(group[-1][3] + context, len(new_lines))
        old_range, new_range = _range(first_line + i1, i2 - i1), _range(first_line + j1, j2 - j1)
        parts.append(f"@@ -{old_range} +{new_range} @@\n")
        position = i1
        for a1, a2, b1, b2 in group:
            _put(parts, " ", old_lines[position:a1])
            _put(parts, "-", old_lines[a1:a2])
            _put(parts, "+", new_lines[b1:b2])
            position = a2
        _put(parts, " ", old_lines[position:i2])
    return "".join(parts)


def _grouped(ranges: Sequence[Range], context: int) -> list[list[Range]]:
    """Ranges whose context lines would touch, together."""
    groups = [[ranges[0]]]
    for item in ranges[1:]:
        if item[0] - groups[-1][-1][1] <= 2 * context:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _range(start: int, length: int) -> str:
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _put(parts: list[str], tag: str, lines: Iterable[str]) -> None:
    for line in lines:
        parts.append(tag + line)
        if not line.endswith("\n"):
            parts.append("\n" + NO_NEWLINE)


def _quoted(path: str) -> str:
    """A path as git writes it: quoted when it holds control characters, quotes or backslashes."""
    if not _UNUSUAL.search(path):
        return path
    return '"' + _UNUSUAL.sub(_escape, path) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return "\\" + char if char in '"\\' else f"\\{ord(char):03o}"


def _unquoted(path: str) -> str:
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    known = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11}
    raw = bytearray()
    # Octal escapes stand for bytes, so the name is put together as bytes and decoded at the end.
    for match in re.finditer(r"\\([0-7]{3}|.)|([^\\]+)", path[1:-1], re.DOTALL):
        escape, plain = match.groups()
        if plain is not None:
            raw += plain.encode("utf-8", "surrogatepass")
        elif len(escape) == 3:
            raw.append(int(escape, 8) & 0xFF)
        elif escape in known:
            raw.append(known[escape])
        else:
            raw += escape.encode("utf-8", "surrogatepass")
    return raw.decode("utf-8", "replace")


def parse_unified(diff: str) -> list[FileDiff]:
    """The files of a unified diff, in order. ValueError when it is malformed or holds no file.

    Lines before the first header (a comment, git's own headers) are passed over, and so are binary
    files.
    """
    if not diff.strip():
        return []
    try:
        patches = PatchSet(diff_lines(diff))
    except UnidiffParseError as error:
        raise ValueError(f"malformed unified diff: {error}") from error
    if not patches:
        raise ValueError("no file header (--- and +++) in the diff")
    files = []
    for patch in patches:
        if patch.is_binary_file:
            continue
        hunks = []
        for hunk in patch:
            lines: list[tuple[str, str]] = []
            for line in hunk:
                if line.line_type == "\\":
                    if lines:
                        tag, value = lines[-1]
                        lines[-1] = (tag, value.removesuffix("\n"))
                elif line.line_type:
                    lines.append((line.line_type, line.value))
            old_start = hunk.source_start - (1 if hunk.source_length else 0)
            new_start = hunk.target_start - (1 if hunk.target_length else 0)
            hunks.append(DiffHunk(old_start, new_start, tuple(lines)))
        target = _unquoted(patch.target_file)
        path = _unquoted(patch.source_file) if target == "/dev/null" else target
        files.append(FileDiff(re.sub(r"^[ab]/", "", path), tuple(hunks)))
    return files


def apply_unified(text: str, diff: str) -> str:
    """`text` with the diff of one file applied exactly where it says.

    ValueError when a hunk does not fit.
    """
    return _apply(text, diff, reverse=False)


def reverse_unified(text: str, diff: str) -> str:
    """The text from which the diff of one file leads to `text`.

    ValueError when a hunk does not fit.
    """
    return _apply(text, diff, reverse=True)


def before_newest(text: str, history: Sequence[str]) -> str | None:
    """The text before the newest diff that fits it, `history` being oldest first; None where none fits."""
    for diff in reversed(history):
        try:
            return reverse_unified(text, diff)
        except ValueError:
            continue
    return None


def _apply(text: str, diff: str, reverse: bool) -> str:
    files = parse_unified(diff)
    if len(files) > 1:
        raise ValueError(f"the diff is of {len(files)} files, not of one")
    lines = diff_lines(text)
    parts: list[str] = []
    position = 0
    for number, hunk in enumerate(files[0].hunks if files else (), 1):
        old, new, start = hunk.old_lines, hunk.new_lines, hunk.old_start
        if reverse:
            old, new, start = new, old, hunk.new_start
        if start < position or tuple(lines[start : start + len(old)]) != old:
            raise ValueError(f"hunk {number} does not fit at line {start + 1}")
        parts.extend(lines[position:start])
        parts.extend(new)
        position = start + len(old)
    parts.extend(lines[position:])
    return "".join(parts)


def substitutions(change: str | FileDiff | DiffHunk | Hunk) -> list[tuple[str, str]]:
    """Tokens that a change replaces by others, as (old, new).

    Each pair comes once, in order of appearance.

    A token is a whole identifier, a number or an operator, also inside of strings: `foo(a)` ->
    `bar(a)` gives [("foo", "bar")]. Insertions and deletions of tokens are no substitutions.
    """
    if isinstance(change, str):
        groups = [
            g for file in parse_unified(change) for h in file.hunks for g in h.change_groups()
        ]
    elif isinstance(change, FileDiff):
        groups = [group for hunk in change.hunks for group in hunk.change_groups()]
    elif isinstance(change, DiffHunk):
        groups = change.change_groups()
    else:
        groups = [change]
    found: dict[tuple[str, str], None] = {}
    for group in groups:
        if len(group.old_lines) == len(group.new_lines):
            pairs = list(zip(group.old_lines, group.new_lines, strict=True))
        else:
            pairs = [("".join(group.old_lines), "".join(group.new_lines))]
        for old, new in pairs:
            for pair in _token_pairs(old, new):
                found[pair] = None
    return list(found)


def _token_pairs(old: str, new: str) -> Iterable[tuple[str, str]]:
    before, after = list(_TOKEN.finditer(old)), list(_TOKEN.finditer(new))
    if max(len(before), len(after)) > 400:
        return
    matcher = SequenceMatcher(None, [m[0] for m in before], [m[0] for m in after], False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "replace":
            continue
        if i2 - i1 == j2 - j1:
            yield from ((a[0], b[0]) for a, b in zip(before[i1:i2], after[j1:j2], strict=True))
        elif max(i2 - i1, j2 - j1) <= MAX_SUBSTITUTION_TOKENS:
            yield (
                old[before[i1].start() : before[i2 - 1].end()],
                new[after[j1].start() : after[j2 - 1].end()],
            )
