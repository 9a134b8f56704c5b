"""Calls and definitions as text with arguments, found without a parser.

Responsible for finding a name followed by brackets, over several lines if need be, for telling a definition from a call
in the syntax of Python, JavaScript, TypeScript, Go, Java and C, and for adding, dropping and reordering what stands in
the brackets. Knows nothing of changes or drafts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_LINES = 24
_NAME = r"[^\W\d]\w*"
_DEFINES = re.compile(r"\b(?:def|function|func|fn|fun)\b[^=]*\Z")
_NO_TYPES = (
    "return if while for switch new else await throw catch print raise yield assert in not and or "
    "elif case del go defer import from"
)
_NO_TYPE = frozenset(_NO_TYPES.split())
_TYPED_HEAD = re.compile(r"\s*(?:[\w<>\[\],.:?]+[\s*&]+)*[*&]*\Z")
_BODY = re.compile(
    r"\s*(?::[^{;=]*)?(?:\s*(?:const|override|noexcept|final|throws\s[\w., ]+))*\s*\{"
)


@dataclass(frozen=True, slots=True)
class Brackets:
    """`name(parts)` in `text`, the lines from `first` on; `start` and `end` enclose what stands in the brackets.

    `spans` are the offsets of the parts without white space around them; `head` is what stands before the name on its
    line.
    """

    name: str
    head: str
    defines: bool
    first: int
    text: str
    start: int
    end: int
    spans: tuple[tuple[int, int], ...]

    @property
    def parts(self) -> list[str]:
        return [self.text[a:b] for a, b in self.spans]

    @property
    def last(self) -> int:
        """The line behind the last one."""
        return self.first + self.text.count("\n") + 1

    def inserted(self, at: int, part: str) -> str:
        """The text with `part` as part number `at`; one a line where the parts stand so."""
        if not self.spans:
            return self.text[: self.start] + part + self.text[self.start :]
        separator = ", "
        if len(self.spans) > 1 or "\n" in self.text[self.start : self.spans[0][0]]:
            before = self.start if len(self.spans) == 1 else self.spans[-2][1]
            gap = self.text[before : self.spans[-1][0]]
            if "\n" in gap and "#" not in gap and "//" not in gap:
                separator = "," + gap[gap.index("\n") :]
        if at < len(self.spans):
            place = self.spans[at][0]
            return self.text[:place] + part + separator + self.text[place:]
        place = self.spans[-1][1]
        return self.text[:place] + separator + part + self.text[place:]

    def dropped(self, at: int) -> str:
        """The text without part number `at`."""
        if at + 1 < len(self.spans):
            a, b = self.spans[at][0], self.spans[at + 1][0]
        else:
            a, b = (self.spans[at - 1][1] if at else self.spans[at][0]), self.spans[at][1]
        return self.text[:a] + self.text[b:]

    def with_parts(self, parts: Sequence[str]) -> str:
        """The text with as many other parts in the places of the present ones."""
        out, done = [], 0
        for (a, b), part in zip(self.spans, parts, strict=True):
            out += [self.text[done:a], part]
            done = b
        return "".join(out) + self.text[done:]


def split_parts(text: str, start: int) -> tuple[int, list[tuple[int, int]]] | None:
    """Where the bracket opened before `start` closes, and the comma-separated spans; None when it does not close."""
    spans: list[tuple[int, int]] = []
    depth, begin, at, quote = 0, start, start, ""
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote or char == "\n":
                quote = ""
        elif char in "\"'`":
            quote = char
        elif char in "([{":
            depth += 1
        elif (char in ")]}" and depth == 0) or (char == "," and depth == 0):
            piece = text[begin:at]
            if piece.strip():
                left = begin + len(piece) - len(piece.lstrip())
                spans.append((left, begin + len(piece.rstrip())))
            if char != ",":
                return at, spans
            begin = at + 1
        elif char in ")]}":
            depth -= 1
        at += 1
    return None


def _is_definition(head: str, rest: str) -> bool:
    if _DEFINES.search(head):
        return True
    words = re.findall(r"\w+", head)
    if head.rstrip()[-1:] in (".", "=") or any(word in _NO_TYPE for word in words):
        return False
    if _BODY.match(rest) and _TYPED_HEAD.match(head):
        return True
    return (
        bool(words)
        and rest.strip() in (";", "")
        and bool(_TYPED_HEAD.match(head))
        and ":" not in head
    )


def brackets_of(lines: Sequence[str], rows: Iterable[int], name: str = _NAME) -> Iterator[Brackets]:
    """Every `name(...)` that begins on one of the rows; `name` is a regular expression."""
    wanted = re.compile(rf"(?<![\w$])({name})\(")
    for row in rows:
        line = lines[row]
        for match in wanted.finditer(line):
            text = line
            found = split_parts(text, match.end())
            if found is None:
                text = "\n".join(lines[row : row + MAX_LINES])
                found = split_parts(text, match.end())
            if found is None:
                continue
            end, spans = found
            stop = text.find("\n", end)
            text = text if stop < 0 else text[:stop]
            head = line[: match.start()]
            defines = _is_definition(head, text[end + 1 :])
            yield Brackets(match[1], head, defines, row, text, match.end(), end, tuple(spans))


def parameter_name(part: str, path: str) -> str:
    """The name that a parameter declares; empty for none (`*`, patterns)."""
    text = re.sub(r"^(?:@\w+(?:\([^()]*\))?\s*)+", "", part.strip()).lstrip("*&.")
    typed_after = path.endswith((".go", ".rs"))
    text = re.split(r"=", text, maxsplit=1)[0]
    if ":" in text and "::" not in text:
        text = text.split(":", 1)[0].rstrip("? ")
        typed_after = False
    words = re.findall(_NAME, re.sub(r"<[^<>]*>|\[[^\]]*\]", "", text))
    if not words or text[:1] in "{[(":
        return ""
    return words[0] if typed_after else words[-1]


def has_default(part: str) -> bool:
    return "=" in part.replace("=>", "") or part.lstrip().startswith("*") or "?:" in part


def parameter_type(part: str, name: str) -> str:
    """What of a parameter is not its name."""
    return re.sub(rf"\b{re.escape(name)}\b", "", part, count=1).strip(" :") if name else ""
