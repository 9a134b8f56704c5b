"""One situation in an editor, and how four clients write it down as an edit prompt.

Written after the description of their prompts, to be read by the tests; the clients' own code is not in here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Situation:
    """Lines without ends; `first` and `last` (inclusive) are the region's, `row` and `column` the cursor's."""

    path: str
    lines: tuple[str, ...]
    first: int
    last: int
    row: int
    column: int
    snippets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    edits: tuple[tuple[str, int, tuple[str, ...], tuple[str, ...]], ...] = field(default=())
    """(path, line from 1, old lines, new lines), oldest first."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def cursor(self) -> int:
        return sum(len(line) + 1 for line in self.lines[: self.row]) + self.column

    @property
    def region(self) -> tuple[int, int]:
        start = sum(len(line) + 1 for line in self.lines[: self.first])
        return start, start + len("\n".join(self.lines[self.first : self.last + 1]))

    @property
    def marked(self) -> tuple[str, ...]:
        line = self.lines[self.row]
        changed = line[: self.column] + "<|cursor|>" + line[self.column :]
        return (*self.lines[: self.row], changed, *self.lines[self.row + 1 :])

    def hunk(self, edit: tuple[str, int, tuple[str, ...], tuple[str, ...]]) -> str:
        _, line, old, new = edit
        rows = [f"@@ -{line},{len(old)} +{line},{len(new)} @@"]
        return "\n".join([*rows, *("-" + row for row in old), *("+" + row for row in new)])

    @property
    def diffs(self) -> tuple[str, ...]:
        return tuple(
            f"--- a/{edit[0]}\n+++ b/{edit[0]}\n{self.hunk(edit)}\n" for edit in self.edits
        )


def _delimited(tag: str, body: str) -> str:
    return f"<|{tag}|>\n{body}\n<|/{tag}|>\n"


def zed(it: Situation) -> str:
    """Sections without a blank line between them; the text after the region stands as it is, with its line end."""
    snippets = "".join(
        _delimited(
            "recently_viewed_code_snippet",
            f"code_snippet_file_path: {path}\n" + "\n".join(lines) + "\n",
        )
        for path, lines in it.snippets
    )
    before = "".join(line + "\n" for line in it.marked[: it.first])
    region = "\n".join(it.marked[it.first : it.last + 1])
    after = "".join("\n" + line for line in it.marked[it.last + 1 :]) + "\n"
    file = f"current_file_path: {it.path}\n{before}" + _delimited("code_to_edit", region) + after
    history = "".join(
        ("// User accepted prediction:\n" if number == 1 else "")
        + f"--- a/{edit[0]}\n+++ b/{edit[0]}\n{it.hunk(edit)}\n"
        for number, edit in enumerate(it.edits)
    )
    return (
        _delimited("recently_viewed_code_snippets", snippets)
        + _delimited("current_file_content", file)
        + _delimited("edit_diff_history", history)
    )


def _joined(it: Situation) -> list[str]:
    return [
        *it.marked[: it.first],
        "<|code_to_edit|>",
        *it.marked[it.first : it.last + 1],
        "<|/code_to_edit|>",
        *it.marked[it.last + 1 :],
    ]


def _snippet_lines(it: Situation) -> list[str]:
    rows: list[str] = []
    for path, lines in it.snippets:
        rows += ["<|recently_viewed_code_snippet|>", f"code_snippet_file_path: {path}"]
        rows += [*lines, "<|/recently_viewed_code_snippet|>"]
    return rows


def continue_dev(it: Situation) -> str:
    """Lines joined, a blank line between sections, and instructions behind them that name the tags."""
    history = "\n".join(
        f"--- {edit[0]}\tbefore\n+++ {edit[0]}\tafter\n{it.hunk(edit)}\n" for edit in it.edits
    )
    return "\n".join(
        [
            *("<|recently_viewed_code_snippets|>", *_snippet_lines(it)),
            *("<|/recently_viewed_code_snippets|>", ""),
            *("<|current_file_content|>", f"current_file_path: {it.path}", *_joined(it), ""),
            *("<|/current_file_content|>", ""),
            *("<|edit_diff_history|>", history, "<|/edit_diff_history|>", ""),
            f"The file is located at `{it.path}`. Rewrite what stands between <|code_to_edit|> and "
            "<|/code_to_edit|>; the cursor is marked as <|cursor|>.",
            "<|!@#IS_NEXT_EDIT!@#|>",
        ]
    )


def cursortab(it: Situation) -> str:
    """Every line with its end; what it knows besides comes as snippets of no file."""
    rows = [
        "<|recently_viewed_code_snippets|>",
        *_snippet_lines(it),
        *("<|recently_viewed_code_snippet|>", "code_snippet_file_path: treesitter_context"),
        *("Enclosing scope: module", "<|/recently_viewed_code_snippet|>"),
        *("<|/recently_viewed_code_snippets|>", ""),
        *("<|current_file_content|>", f"current_file_path: {it.path}", *_joined(it)),
        *("<|/current_file_content|>", ""),
        "<|edit_diff_history|>",
        *(f"--- {edit[0]}\n+++ {edit[0]}\n{it.hunk(edit)}\n\n" for edit in it.edits),
        "<|/edit_diff_history|>",
    ]
    return "\n".join(rows) + "\n"


def kilo(it: Situation) -> str:
    """Sections joined by a blank line; diffs too; a marker at the end."""
    history = "\n\n".join(f"--- {edit[0]}\n+++ {edit[0]}\n{it.hunk(edit)}" for edit in it.edits)
    return "\n".join(
        [
            *("<|recently_viewed_code_snippets|>", *_snippet_lines(it)),
            *("<|/recently_viewed_code_snippets|>", ""),
            *("<|current_file_content|>", f"current_file_path: {it.path}", *_joined(it)),
            *("<|/current_file_content|>", ""),
            *("<|edit_diff_history|>", history, "<|/edit_diff_history|>"),
            *("", "<|!@#IS_NEXT_EDIT!@#|>"),
        ]
    )


SHAPES = {"zed": zed, "continue": continue_dev, "cursortab": cursortab, "kilo": kilo}


def body(client: str, prompt: str) -> dict[str, Any]:
    """The request that each client puts its prompt into."""
    user = {"role": "user", "content": prompt}
    if client == "continue":
        system = {"role": "system", "content": "Predict the next edit. The tags: <|code_to_edit|>"}
        return {
            "model": "mercury-coder-nextedit",
            "messages": [system, user],
            "stream": True,
            "nextEdit": True,
        }
    if client == "kilo":
        return {"model": "mercury-edit-2", "max_tokens": 512, "messages": [user]}
    model = "mercury-coder" if client == "zed" else "mercury-edit"
    return {"model": model, "messages": [user], "stream": False}
