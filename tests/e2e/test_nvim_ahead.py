"""Neovim and what the server does while nobody asks."""

from __future__ import annotations

import pytest
from nvim_editor import Nvim
from nvim_rules import KEYMAPS, RENAME_ONE, never

pytestmark = pytest.mark.e2e

TEXT = "count = 0\na = count\nb = count\nc = count\n"


def test_tab_after_tab_finds_the_next_edit_ready(nvim: Nvim) -> None:
    """Even with a long pause before questions: nothing is waited for after an accept."""
    nvim.start([RENAME_ONE], setup={**KEYMAPS, "next_edit_delay": 400}, ahead=True)
    nvim.open("a.py", TEXT)
    nvim.keys("cwtotal<Esc>")
    for line in (1, 2, 3):
        nvim.wait(lambda line=line: {row for _, row, *_ in nvim.drawn()} == {line})
        nvim.wait(
            lambda line=line: len(nvim.calls("end")) == line + 1
        )  # one more than was asked for
        assert nvim.status()["predictions"] == line
        nvim.keys("<Tab>")
    nvim.wait_for_text(TEXT.replace("count", "total"))
    nvim.wait(lambda: nvim.status()["predictions"] == 4)
    assert len(nvim.calls("start")) == 4
    assert nvim.calls("cancelled") == []


def test_a_place_is_read_when_the_cursor_rests_there(nvim: Nvim) -> None:
    nvim.start([], ahead=True)
    nvim.open("a.py", TEXT)
    nvim.keys("jjl")
    nvim.wait(lambda: nvim.calls("prepare"))
    never(lambda: len(nvim.calls("prepare")) > 1, 0.4)
    assert nvim.calls("prepare")[0]["cursor"] == TEXT.index("b") + 1


def test_a_place_is_not_read_where_redraft_is_off(nvim: Nvim) -> None:
    nvim.start([], ahead=True)
    nvim.open("a.py", TEXT)
    nvim.api.command("Redraft disable")
    nvim.keys("jjl")
    never(lambda: nvim.calls("prepare"), 0.5)
