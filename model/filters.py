"""Structural reasons not to show a prediction, decided on text alone.

Responsible for naming what is wrong with the shape of an answer (`suppress_reason`). Knows nothing
of confidence, of what the user rejected before, of documents or of how the answer was made.
"""

from __future__ import annotations

import re

from diffing import edits as editing
from diffing.edits import Edit
from diffing.hunks import reverse_unified
from diffing.reversal import undoes_last_edit
from model.protocol import Prediction, Request

MAX_NET_DELETED_LINES = 20
MAX_NET_DELETED_CHARS = 1200
MAX_NET_DELETED_SHARE = 0.5
SMALL_TEXT = 200
"""Below this many characters the share of deleted text says nothing."""

_CONTROL_TOKEN = re.compile(
    r"<\|[^|<>\n]{1,60}\|>"
    r"|<\[?fim[-_ ][a-z]+\]?>"
    r"|<\[end[^\]\n]{0,30}\]>"
    r"|<(?:file_sep|filename|repo_name|reponame|gh_stars|empty_output|endoftext|think)>"
    r"|<(?:issue|jupyter|commit|pr)_[a-z_]+>"
    r"|</?s>|<(?:pad|unk|mask)>|\[MASK\]"
    r"|<｜[^｜\n]{1,60}｜>",
    re.IGNORECASE,
)
_OPEN, _CLOSE = "([{", ")]}"
_CLOSERS_ONLY = re.compile(r"[)\]}>;:,'\"`\s]+\Z")
_WORDY = re.compile(r"\w\W*\w\W*\w")


def suppress_reason(request: Request, prediction: Prediction) -> str | None:
    """The first structural fault of the prediction, or None.

    One of: no-op, control-token, truncated, whitespace-only, duplicates-suffix, undoes-last-edit,
    deletes-too-much.
    """
    text = request.text
    edits = tuple(e for e in (editing.shrink(text, e) for e in prediction.edits) if e is not None)
    if not edits:
        return "no-op"
    if _control_token(request, edits):
        return "control-token"
    if prediction.truncated:
        return "truncated"
    if all(not e.new_text.strip() and not text[e.start : e.end].strip() for e in edits):
        return "whitespace-only"
    if any(_duplicates(request, e) for e in edits):
        return "duplicates-suffix"
    if _undoes_last_edit(request, edits):
        return "undoes-last-edit"
    if _deletes_too_much(text, edits):
        return "deletes-too-much"
    return None


def _control_token(request: Request, edits: tuple[Edit, ...]) -> bool:
    """A tag of some model's prompt, unless the user's own text has it too."""
    found = {m.group() for e in edits for m in _CONTROL_TOKEN.finditer(e.new_text)}
    known = [request.text, *request.history, *(snippet.text for snippet in request.related)]
    return any(not any(tag in text for text in known) for tag in found)


def _duplicates(request: Request, edit: Edit) -> bool:
    """The new text says again what stands before or after it."""
    inserted, after = edit.new_text, request.text[edit.end :]
    if not inserted.strip():
        return False
    if request.mode == "fim" and edit.start <= request.cursor <= edit.end:
        return _repeats_rest_of_line(request.text[: edit.start], inserted, after) or (
            _repeats_lines(request.text[: edit.start], inserted, after, last_line=True)
        )
    return edit.start == edit.end and _repeats_lines(
        request.text[: edit.start], inserted, after, last_line=False
    )


def _repeats_rest_of_line(before: str, inserted: str, after: str) -> bool:
    rest = _first_line(after)
    if not rest.strip():
        return False
    if after.startswith(inserted) and _WORDY.search(inserted):
        return True
    tail = inserted.rsplit("\n", 1)[-1]
    if not tail.rstrip().endswith(rest.strip()):
        return False
    if _WORDY.search(rest):
        return True
    if not _CLOSERS_ONLY.match(rest):
        return False
    line = before.rsplit("\n", 1)[-1] + inserted + rest
    return _unopened(line) > _unopened(before.rsplit("\n", 1)[-1] + rest) or any(
        line.count(quote) % 2 for quote in "'\"`" if quote in rest
    )


def _repeats_lines(before: str, inserted: str, after: str, *, last_line: bool) -> bool:
    """Whole inserted lines equal the lines right before or right after them.

    `last_line` also compares the last inserted line alone with the next one.
    """
    open_line = before.rsplit("\n", 1)[-1]
    block = [line.rstrip() for line in (open_line + inserted).strip("\n").split("\n")]
    filled = [line for line in block if line.strip()]
    if open_line.strip():  # the first line was begun by the user: it is theirs, not a repetition
        filled = filled[1:]
    if not filled or not any(_WORDY.search(line) for line in filled):
        return last_line and len(block) > 1 and _closes_twice(filled, inserted, after)
    following = _filled_lines(after.split("\n", len(filled) * 2 + 4), len(filled))
    preceding = _filled_lines(before.split("\n")[:-1][::-1], len(filled))[::-1]
    if filled in (following, preceding):
        return True
    if not last_line or len(block) < 2 or not following:
        return False
    last = filled[-1]
    if _WORDY.search(last):
        return last == following[0]
    return _closes_twice(filled, inserted, after)


def _closes_twice(filled: list[str], inserted: str, after: str) -> bool:
    """The last inserted line closes a block that the next line closes already."""
    following = _filled_lines(after.split("\n", 6), 1)
    return bool(filled and following and filled[-1] == following[0] and _unopened(inserted) > 0)


def _filled_lines(lines: list[str], count: int) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()][:count]


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0].rstrip("\r")


def _unopened(text: str) -> int:
    """How many closing brackets have no opening one before them."""
    depth = unopened = 0
    for char in text:
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            if depth:
                depth -= 1
            else:
                unopened += 1
    return unopened


def _undoes_last_edit(request: Request, edits: tuple[Edit, ...]) -> bool:
    """The prediction brings back what the newest diff of this file removed."""
    for diff in reversed(request.history):
        if not _is_of(diff, request.path):
            continue
        try:
            before = reverse_unified(request.text, diff)
        except ValueError:
            return False
        return undoes_last_edit(before, request.text, editing.apply(request.text, edits))
    return False


def _is_of(diff: str, path: str) -> bool:
    return any(
        line.startswith(("--- ", "+++ ")) and line[4:].split("\t")[0].rstrip().endswith(path)
        for line in diff.split("\n", 4)[:4]
    )


def _deletes_too_much(text: str, edits: tuple[Edit, ...]) -> bool:
    removed = "".join(text[e.start : e.end] for e in edits)
    added = "".join(e.new_text for e in edits)
    chars = _solid(removed) - _solid(added)
    lines = removed.count("\n") - added.count("\n")
    if lines > MAX_NET_DELETED_LINES or chars > MAX_NET_DELETED_CHARS:
        return True
    whole = _solid(text)
    return whole > SMALL_TEXT and chars > whole * MAX_NET_DELETED_SHARE


def _solid(text: str) -> int:
    """Number of characters that are not white space."""
    return len("".join(text.split()))
