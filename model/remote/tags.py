"""The edit prompt of Inception's wire: a file, its history and its neighbours between tags.

Responsible for writing the prompt and for taking an answer out of its fence and tags. Text of the user that looks like
a tag is written with an invisible mark inside, which is taken out of the answer again. Knows nothing of HTTP, of
budgets or of edits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from model.protocol import Snippet

SNIPPETS, SNIPPET = "recently_viewed_code_snippets", "recently_viewed_code_snippet"
FILE, REGION, CURSOR, HISTORY = (
    *("current_file_content", "code_to_edit"),
    *("cursor", "edit_diff_history"),
)
NO_EDIT = "None"

_NAMES = "|".join((SNIPPETS, SNIPPET, FILE, REGION, CURSOR, HISTORY))
_TAG = re.compile(rf"<(?=\|/?(?:{_NAMES})\|>)")
_MARKS = ("\u2060", "\u200b", "\ufeff", "\u2063")
_FENCE = re.compile(r"^[ \t]*(`{3,})([^`\n]*)$", re.M)


def opening(name: str) -> str:
    return f"<|{name}|>"


def closing(name: str) -> str:
    return f"<|/{name}|>"


@dataclass(frozen=True, slots=True)
class Escape:
    """Hides tags in texts, and brings them back. `mark` stands in none of the texts."""

    mark: str

    @classmethod
    def of(cls, texts: Iterable[str]) -> Escape:
        """The escape for some texts; one without effect where they hold no tag, or every mark there is."""
        known = [text for text in texts if "<" in text]
        if not any(_TAG.search(text) for text in known):
            return cls("")
        free = (mark for mark in _MARKS if not any(f"<{mark}|" in text for text in known))
        return cls(next(free, ""))

    def hide(self, text: str) -> str:
        return _TAG.sub("<" + self.mark, text) if self.mark else text

    def hide_around(self, text: str, cursor: int) -> tuple[str, str]:
        """The hidden text before and after a cursor, which may stand inside of what looks like a tag."""
        hidden = self.hide(text)
        if self.mark:
            cursor += sum(match.start() < cursor for match in _TAG.finditer(text))
        return hidden[:cursor], hidden[cursor:]

    def show(self, text: str) -> str:
        return text.replace(f"<{self.mark}|", "<|") if self.mark else text


@dataclass(frozen=True, slots=True)
class Document:
    """A file as the prompt shows it: `region`, with the cursor at offset `cursor` of it, is what may be rewritten."""

    path: str
    before: str
    region: str
    cursor: int
    after: str


def edit_prompt(
    document: Document, snippets: Sequence[Snippet], history: Sequence[str], escape: Escape
) -> str:
    """The one user message of `/v1/edit/completions`. A last line end of the region stands before its closing tag."""
    hide = escape.hide
    before_cursor, after_cursor = escape.hide_around(document.region, document.cursor)
    after_cursor = after_cursor.removesuffix("\n")
    shown = [
        f"{opening(SNIPPET)}\ncode_snippet_file_path: {hide(one.path)}\n"
        f"{hide(one.text.removesuffix(chr(10)))}\n{closing(SNIPPET)}\n"
        for one in snippets
    ]
    diffs = "".join(hide(diff if diff.endswith("\n") else diff + "\n") for diff in history)
    return (
        f"{opening(SNIPPETS)}\n{''.join(shown)}{closing(SNIPPETS)}\n\n"
        f"{opening(FILE)}\ncurrent_file_path: {hide(document.path)}\n{hide(document.before)}"
        f"{opening(REGION)}\n{before_cursor}{opening(CURSOR)}{after_cursor}\n{closing(REGION)}\n"
        f"{hide(document.after.removesuffix(chr(10)))}\n{closing(FILE)}\n\n"
        f"{opening(HISTORY)}\n{diffs}{closing(HISTORY)}\n"
    )


def rewritten(content: str, region: str, escape: Escape) -> str | None:
    """The region as the answer wants it, without its last line end; None for "no edit".

    Tolerates a fence with or without a language, one that is not closed, none at all, words around it, and tags of
    the prompt that are said again.
    """
    body = _unfenced(content.replace("\r\n", "\n"), region)
    if opening(REGION) in body:
        body = body.split(opening(REGION), 1)[1].removeprefix("\n")
        body = _unfenced(body, region) if "```" in body else body
    for end in (closing(REGION), closing(FILE), opening(HISTORY)):
        body = body.split(end, 1)[0]
    body = body.replace(opening(CURSOR), "")
    if not body.strip() or body.strip() == NO_EDIT:
        return None
    return escape.show(body)


def _unfenced(content: str, region: str) -> str:
    """What stands between the first and the last fence, where there are more fences than the region has itself."""
    fences = list(_FENCE.finditer(content))
    own = len(_FENCE.findall(region))
    if len(fences) <= own:
        return content
    start = fences[0].end() + 1
    closed = len(fences) > own + 1 and not fences[-1][2].strip()
    end = fences[-1].start() if closed else len(content)
    return content[start:end].removesuffix("\n") if closed else content[start:]
