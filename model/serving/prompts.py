"""The edit prompt: one text with tags, as several editors render it, and what it asks.

Responsible for finding file, region, cursor, snippets and edits in the text although no client escapes tags that
stand in the user's own files. Knows nothing of HTTP or of models. Where two readings are possible none is taken: a
wrong region would be written over the user's code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from diffing.secret_files import is_secret
from model.protocol import Request, Snippet
from model.serving.diffs import split_diffs

SNIPPETS = "recently_viewed_code_snippets"
SNIPPET = "recently_viewed_code_snippet"
FILE = "current_file_content"
REGION = "code_to_edit"
HISTORY = "edit_diff_history"
CURSOR = "<|cursor|>"
FILE_PATH = "current_file_path:"
SNIPPET_PATH = "code_snippet_file_path:"
DIAGNOSTICS, STAGED, SYNTAX = "diagnostics", "staged_git_diff", "treesitter_context"
"""Snippets of this name are no files: cursortab.nvim sends what it knows under them."""

_LOCATED = re.compile(r"in the file located at `?([^\s`]+?)`?[.,]?(?:\s|$)")


class PromptError(ValueError):
    """The text is no edit prompt, or can be read in two ways; `code` names which."""

    def __init__(self, message: str, code: str = "invalid_prompt") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """What an edit prompt says. `cursor` and `region` are code point offsets into `text`, which ends with a line end
    whether the client sent one or not; `history` is normalised and oldest first."""

    path: str
    text: str
    cursor: int
    region: tuple[int, int]
    history: tuple[str, ...] = ()
    related: tuple[Snippet, ...] = ()
    diagnostics: tuple[str, ...] = ()

    @property
    def region_text(self) -> str:
        return self.text[self.region[0] : self.region[1]]

    @property
    def secret(self) -> bool:
        """Whether the file's name is one that may hold secrets."""
        return _is_secret(self.path)

    def request(self, max_tokens: int) -> Request:
        return Request(
            mode="next_edit",
            path=self.path,
            text=self.text,
            cursor=self.cursor,
            history=self.history,
            related=self.related,
            diagnostics=self.diagnostics,
            max_tokens=max_tokens,
            region=self.region,
        )


@dataclass(frozen=True, slots=True)
class _Tag:
    """One occurrence of a tag; `end` lies behind the line end that belongs to it."""

    start: int
    end: int


def parse(prompt: str) -> EditPrompt:
    """Read an edit prompt. `PromptError` when it is none or can be read in two ways.

    Sections are found from the outside: lines of diffs begin with a sign, so the last history is the real one, and
    what ends the file stands before it.
    """
    head, history, after = _cut_history(prompt)
    file, snippets, tight = _cut_file(head, tight_after=after is not None)
    path, body = _headed(file, FILE_PATH)
    if not path:
        located = _LOCATED.search(after or "")
        path = located[1] if located else ""
    text, cursor, region = _with_region(body, tight=tight)
    related, diagnostics, staged = _sorted_snippets(_snippets(snippets))
    diffs = [*split_diffs(staged, path), *split_diffs(history, path)]
    return EditPrompt(
        path,
        text,
        cursor,
        region,
        tuple(diff for name, diff in diffs if not _is_secret(name)),
        related,
        diagnostics,
    )


def _tags(text: str, name: str) -> list[_Tag]:
    """Where the tag stands alone on its line; where it never does, wherever it stands."""
    literal = re.escape(f"<|{name}|>")
    alone = list(re.finditer(rf"(?m)^{literal}\r?(?:\n|\Z)", text))
    found = alone or re.finditer(literal + r"(?:\r?\n)?", text)
    return [_Tag(match.start(), match.end()) for match in found]


def _cut_history(prompt: str) -> tuple[str, str, str | None]:
    """What stands before the history, the history, and what stands after it (None without one)."""
    opens, closes = _tags(prompt, HISTORY), _tags(prompt, "/" + HISTORY)
    for close in reversed(closes):
        before = [tag for tag in opens if tag.end <= close.start]
        if before:
            return (
                prompt[: before[-1].start],
                prompt[before[-1].end : close.start],
                prompt[close.end :],
            )
    return prompt, "", None


def _cut_file(head: str, *, tight_after: bool) -> tuple[str, str, bool]:
    """The current file's section, the snippets' section, and whether sections follow each other without a blank line,
    as only Zed writes them."""
    closes = _tags(head, "/" + FILE)
    if not closes:
        raise PromptError(f"the prompt has no <|/{FILE}|>")
    close = closes[-1]
    opens = [tag for tag in _tags(head, FILE) if tag.end <= close.start]
    if not opens:
        raise PromptError(f"the prompt has no <|{FILE}|> before <|/{FILE}|>")
    fitting = [
        (tag, section)
        for tag in opens
        if (section := _section_before(head[: tag.start])) is not None
    ]
    if len(fitting) > 1:
        raise PromptError(
            f"<|{FILE}|> can be read in {len(fitting)} ways: a file in the prompt holds the same tags",
            "ambiguous_prompt",
        )
    opened, snippets = fitting[0] if fitting else (opens[0], "")
    before = head[: opened.start]
    tight = tight_after and not head[close.end :].strip("\r\n ") and close.end == len(head)
    tight = tight and before.endswith(f"<|/{SNIPPETS}|>\n")
    return head[opened.end : close.start], snippets, tight


def _section_before(before: str) -> str | None:
    """The snippets' section if it, or nothing, is all that stands before the file; otherwise None."""
    if not before.strip():
        return ""
    opens, closes = _tags(before, SNIPPETS), _tags(before, "/" + SNIPPETS)
    if not opens or not closes or before[closes[-1].end :].strip():
        return None
    section = before[opens[0].end : closes[-1].start]
    if section.strip() and not section.rstrip().endswith(f"<|/{SNIPPET}|>"):
        return None
    return section


def _headed(section: str, label: str) -> tuple[str, str]:
    """The path in a section's first line, and the section without it; no path where the line has none."""
    line, _, rest = section.partition("\n")
    if not line.startswith(label):
        return "", section
    return line[len(label) :].strip(), rest


def _with_region(body: str, *, tight: bool) -> tuple[str, int, tuple[int, int]]:
    """The file's text without tags, the cursor and the region in it."""
    opened, closed = _only(body, REGION), _only(body, "/" + REGION)
    if closed.start < opened.end:
        raise PromptError(f"<|/{REGION}|> stands before <|{REGION}|>")
    before, after = body[: opened.start], body[closed.end :]
    region = _without_end(body[opened.end : closed.start])
    if after:
        after = _without_end(after)
        verbatim = tight and (region.endswith("\n") or after[:1] in ("", "\n", "\r"))
        after = after if verbatim else "\n" + after
    before, region, after, cursor = _without_cursor(before, region, after)
    text = before + region + after
    if not text.endswith("\n"):
        text += "\n"
    return text, cursor, (len(before), len(before) + len(region))


def _without_end(text: str) -> str:
    """Without the one line end that every client puts before a closing tag."""
    return text[:-1] if text.endswith("\n") else text


def _only(body: str, name: str) -> _Tag:
    found = _tags(body, name)
    if not found:
        raise PromptError(f"the current file has no <|{name}|>")
    if len(found) > 1:
        raise PromptError(
            f"<|{name}|> stands {len(found)} times in the current file: which one marks the region cannot be told",
            "ambiguous_prompt",
        )
    return found[0]


def _without_cursor(before: str, region: str, after: str) -> tuple[str, str, str, int]:
    """The three parts without the cursor's tag, and the cursor; one outside the region counts where none is in it."""
    for part in (region, before + region + after):
        count = part.count(CURSOR)
        if count > 1:
            raise PromptError(
                f"{CURSOR} stands {count} times in the text: which one is the cursor cannot be told",
                "ambiguous_prompt",
            )
        if count == 1:
            break
    else:
        raise PromptError(f"the current file has no {CURSOR}")
    if CURSOR in region:
        cursor = len(before) + region.index(CURSOR)
        return before, region.replace(CURSOR, ""), after, cursor
    if CURSOR in before:
        return before.replace(CURSOR, ""), region, after, before.index(CURSOR)
    cursor = len(before) + len(region) + after.index(CURSOR)
    return before, region, after.replace(CURSOR, ""), cursor


def _snippets(section: str) -> Iterator[Snippet]:
    """The snippets; one ends at the last closing tag before the next one begins."""
    label = re.escape(SNIPPET_PATH)
    starts = [
        match.start() for match in re.finditer(rf"(?m)^<\|{SNIPPET}\|>\r?\n(?={label})", section)
    ]
    for start, end in zip(starts, [*starts[1:], len(section)], strict=False):
        block = section[start:end]
        body = block[block.index("\n") + 1 :]
        closes = _tags(body, "/" + SNIPPET)
        path, text = _headed(body[: closes[-1].start] if closes else body, SNIPPET_PATH)
        yield Snippet(path, text.rstrip("\r\n"))


def _sorted_snippets(
    snippets: Iterator[Snippet],
) -> tuple[tuple[Snippet, ...], tuple[str, ...], str]:
    """Snippets of files, diagnostics, and a diff of what is staged."""
    files: list[Snippet] = []
    diagnostics: list[str] = []
    staged = ""
    for one in snippets:
        if one.path == DIAGNOSTICS:
            diagnostics += [line for line in one.text.split("\n") if line.strip()]
        elif one.path == STAGED:
            staged = one.text
        elif one.path != SYNTAX and one.text.strip() and not _is_secret(one.path):
            files.append(one)
    return tuple(files), tuple(diagnostics), staged


def _is_secret(path: str) -> bool:
    """Whether a name, wherever the file is, is one of those that hold secrets."""
    name = PurePosixPath(path.replace("\\", "/")).name
    return bool(name) and is_secret(Path("/") / name, Path("/"))
