"""What of other files, and of diffs, is worth a place in the prompt.

Responsible for ranking related files, for cutting them down to the definitions of names that are
used near the region, and for taking diffs apart into hunks. Knows nothing of tokens beyond a
function that says what fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from model.protocol import Request, Snippet

NAME_WINDOW = 64
BODY_LINES = 12

_NAME = re.compile(r"[^\W\d]\w{2,}")
_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|static|final|abstract|async|pub|override|inline|declare|const)\s+)*"
    r"(?:def|class|function|func|fn|interface|type|struct|enum|const|let|var|val|trait|record|module|namespace)\b"
    r"\s*(?:\([^)]*\)\s*)?\*?([^\W\d]\w*)"
)
_ASSIGNMENT = re.compile(r"([^\W\d]\w*)\s*(?::[^=]+)?=(?!=)")
_TYPED_FUNCTION = re.compile(r"\s*(?:[\w<>\[\],.*&:]+\s+)+[*&]?([^\W\d]\w*)\s*\([^;]*$")
_STATEMENT = re.compile(
    r"\s*(?:return|if|else|for|while|switch|case|throw|raise|new|await|yield|import|from)\b"
)


def split_diff(diff: str) -> tuple[str, list[str]]:
    """A unified diff as (what stands before the first hunk, the hunks), all with their line
    ends.
    """
    parts = re.split(r"^(?=@@ )", diff, flags=re.M)
    return parts[0], parts[1:]


def diff_path(diff: str) -> str:
    """The path a unified diff is about, empty when it names none."""
    match = re.search(r"^\+\+\+ (?:b/)?([^\t\n]+)", diff, flags=re.M)
    return match[1].strip() if match else ""


def nearby_names(text: str, start: int, end: int, cursor: int) -> frozenset[str]:
    """Names in the lines around a region, in a window that moves in steps of `NAME_WINDOW` lines.

    The name that the cursor touches is left out: it may be half typed.
    """
    line = text.count("\n", 0, start)
    first = max(0, line // NAME_WINDOW - 1) * NAME_WINDOW
    rows = text.split("\n")
    last = (text.count("\n", 0, end) // NAME_WINDOW + 2) * NAME_WINDOW
    names = set(_NAME.findall("\n".join(rows[first:last])))
    touched = re.search(r"\w*\Z", text[max(0, cursor - 200) : cursor])
    behind = re.match(r"\w*", text[cursor : cursor + 200])
    word = (touched[0] if touched else "") + (behind[0] if behind else "")
    names.discard(word)
    return frozenset(names)


def defined_name(line: str) -> str | None:
    """The name that a line of any common language defines; None when it defines none."""
    for pattern in (_DEFINITION, _ASSIGNMENT, _TYPED_FUNCTION):
        match = pattern.match(line)
        if match and not (pattern is _TYPED_FUNCTION and _STATEMENT.match(line)):
            return match[1]
    return None


@lru_cache(maxsize=64)
def definitions(text: str) -> tuple[tuple[int, str], ...]:
    """(line number, name) of every line that defines a name."""
    named = ((number, defined_name(line)) for number, line in enumerate(text.split("\n")))
    return tuple((number, name) for number, name in named if name)


def ranked(request: Request, names: frozenset[str]) -> list[Snippet]:
    """Related files other than the request's own, most useful first; of two with one path the last
    is kept.

    Files of the newest edits come first, then those that define more of the names.
    """
    files = {snippet.path: snippet for snippet in request.related if snippet.path != request.path}
    edited = {diff_path(diff): number for number, diff in enumerate(request.history)}

    def order(snippet: Snippet) -> tuple[int, int, str]:
        defined = {name for _, name in definitions(snippet.text)}
        return -edited.get(snippet.path, -1), -len(names & defined), snippet.path

    return sorted(files.values(), key=order)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block(lines: list[str], at: int) -> list[int]:
    """Line numbers of a definition: decorators and comments above it, its head, the first lines of
    its body.
    """
    first = at
    while first > 0 and at - first < 3 and re.match(r"\s*(@|#|//|/?\*)", lines[first - 1]):
        first -= 1
    last = at + 1
    depth = _indent(lines[at])
    while last < len(lines) and last - at <= BODY_LINES:
        line = lines[last]
        if line.strip() and _indent(line) <= depth:
            if line.strip()[0] in ")]}":
                last += 1
                if not line.rstrip().endswith((":", "{", "(")):
                    break
                continue
            break
        last += 1
    while last > at + 1 and not lines[last - 1].strip():
        last -= 1
    return list(range(first, last))


def _owners(lines: list[str], at: int) -> list[int]:
    """Heads of the definitions around a line."""
    owners = []
    depth = _indent(lines[at])
    for number in range(at - 1, -1, -1):
        if depth == 0:
            break
        line = lines[number]
        if line.strip() and _indent(line) < depth:
            depth = _indent(line)
            if defined_name(line):
                owners.append(number)
    return owners


def excerpt(text: str, names: frozenset[str], fits: Callable[[str], bool]) -> str:
    """The definitions of `names` in a text, in file order, as many of the first as fit; empty when
    none does.

    Excerpts are whole lines of the text; a blank line stands where lines are left out.
    """
    lines = text.split("\n")
    chosen: set[int] = set()
    best = ""
    for number, name in definitions(text):
        if number in chosen or name not in names:
            continue
        wider = chosen.union(_block(lines, number), _owners(lines, number))
        joined = _join(lines, wider)
        if not fits(joined):
            continue
        chosen, best = wider, joined
    return best


def _join(lines: list[str], chosen: set[int]) -> str:
    out: list[str] = []
    last = None
    for number in sorted(chosen):
        if last is not None and number != last + 1 and lines[number].strip():
            out.append("")
        out.append(lines[number])
        last = number
    return "".join(line + "\n" for line in out)
