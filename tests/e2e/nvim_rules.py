"""What Neovim tests share: scripted suggestions, keys, and the situations that many of them begin with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from nvim_editor import Nvim

PRINT = {"mode": "fim", "when": {"regex": "pri$"}, "insert": "nt(value)"}
LOOP = {"mode": "fim", "when": {"regex": "for $"}, "insert": "x in xs:\n    print(x)"}
RENAME_ONE = {
    "mode": "next_edit",
    "when": {"history": "+total"},
    "replace": {"old": "count", "new": "total"},
}
RENAME = {**RENAME_ONE, "replace": {"old": "count", "new": "total", "all": True}}
KEYS = {
    "accept": "<Tab>",
    "accept_word": "<C-g>",
    "accept_line": "<C-l>",
    "reject": "<C-e>",
    "next": "<C-n>",
}
ALL_KEYMAPS = {"keymaps": KEYS}
KEYMAPS = {"keymaps": {"accept": "<Tab>", "reject": "<C-e>", "next": "<C-n>"}}


def edit(
    start: tuple[int, int], end: tuple[int, int], new_text: str, **when: str
) -> dict[str, Any]:
    """A rule: one next edit, in code points."""
    where = {
        side: {"line": line, "character": column}
        for side, (line, column) in (("start", start), ("end", end))
    }
    return {"mode": "next_edit", "when": when, "edits": [{"range": where, "new_text": new_text}]}


def lsp_range(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def rename(nvim: Nvim, text: str = "count = 0\nprint(count)\n", **setup: Any) -> None:
    """A next edit is shown: `count` became `total` in the first line."""
    nvim.start([RENAME], setup={**KEYMAPS, **setup})
    nvim.open("a.py", text)
    nvim.keys("cwtotal<Esc>")
    nvim.wait(nvim.drawn)


def never(holds: Callable[[], Any], seconds: float = 0.15) -> None:
    """Assert that something stays untrue for longer than the pauses before a question."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        assert not holds()
        time.sleep(0.01)


def refusals(nvim: Nvim, reason: str) -> int:
    """How often the server was silent for this reason."""
    return int(nvim.status()["counts"].get(reason, 0))
