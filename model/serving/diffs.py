"""The edit history of a prompt: one text of several diffs, as several editors write them.

Responsible for cutting it into diffs and for writing their headers in one way. Knows nothing of prompts.
"""

from __future__ import annotations

import re

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADER = re.compile(r"(?:---|\+\+\+) (.*)")


def split_diffs(history: str, path: str) -> list[tuple[str, str]]:
    """(path, diff) for each diff, in order. Hunks without a header are of `path`.

    What stands between diffs (comments, git's own headers) is left out. Lines of a hunk are counted, so that a removed
    line `-- a` and an added one `++ b` are not taken for a header.
    """
    lines = history.split("\n")
    found: list[tuple[str, list[str]]] = []
    name, fresh = path, True
    at = 0
    while at < len(lines):
        line = lines[at].rstrip("\r")
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if line.startswith("--- ") and following.startswith("+++ "):
            old, new = _path_of(line), _path_of(following.rstrip("\r"))
            name, fresh = (old if new == "/dev/null" else new) or path, True
            at += 2
        elif _HUNK.match(line):
            if fresh:
                found.append((name, [f"--- a/{name}", f"+++ b/{name}"]))
                fresh = False
            end = _end_of_hunk(lines, at)
            found[-1][1].extend([line, *lines[at + 1 : end]])
            at = end
        else:
            at += 1
    return [(name, "\n".join(rows) + "\n") for name, rows in found]


def _path_of(header: str) -> str:
    match = _HEADER.match(header)
    name = match[1].split("\t")[0].rstrip() if match else ""
    return re.sub(r"^[ab]/", "", name)


def _end_of_hunk(lines: list[str], at: int) -> int:
    """The line behind the hunk that begins in line `at`."""
    match = _HUNK.match(lines[at])
    assert match
    old, new = (int(match[i]) if match[i] is not None else 1 for i in (1, 2))
    at += 1
    while at < len(lines) and (old > 0 or new > 0 or lines[at][:1] == "\\"):
        sign = lines[at][:1]
        if sign not in ("", " ", "-", "+", "\\", "\r") or (not sign and at == len(lines) - 1):
            break
        old -= sign in ("", " ", "-", "\r")
        new -= sign in ("", " ", "+", "\r")
        at += 1
    return at
