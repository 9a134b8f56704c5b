"""Beside nvim-cmp, blink.cmp and sidekick.nvim themselves, where a folder with them is named.

`REDRAFT_NVIM_PLUGINS` is a folder with `nvim-cmp`, `blink.cmp` (1.x) and `sidekick.nvim`, as
their repositories are. Where one is not there, its test is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nvim_editor import Nvim
from nvim_rules import KEYMAPS, PRINT, RENAME

pytestmark = pytest.mark.e2e

FOLDER = Path(os.environ.get("REDRAFT_NVIM_PLUGINS", "/none"))


def needs(name: str) -> pytest.MarkDecorator:
    reason = f"REDRAFT_NVIM_PLUGINS names no folder with {name}"
    return pytest.mark.skipif(not (FOLDER / name).is_dir(), reason=reason)


def load(nvim: Nvim, name: str) -> None:
    """Put a plugin on the runtime path, and run what it runs at start."""
    nvim.api.command(f"set runtimepath+={FOLDER / name}")
    for script in sorted((FOLDER / name).glob("plugin/**/*.lua")):
        nvim.api.command(f"source {script}")


@needs("nvim-cmp")
def test_nvim_cmp_and_ghost_text_take_turns(own_nvim: Nvim) -> None:
    nvim = own_nvim.start([PRINT], setup={})
    load(nvim, "nvim-cmp")
    nvim.lua(
        "local cmp = require('cmp')\n"
        "local source = {}\n"
        "function source:complete(_, callback) callback({ { label = 'print_all' }, { label = 'print_one' } }) end\n"
        "cmp.register_source('test', source)\n"
        "cmp.setup({ sources = { { name = 'test' } }, completion = { autocomplete = false },\n"
        "  mapping = { ['<Tab>'] = cmp.mapping(function(fallback)\n"
        "    if cmp.visible() then cmp.select_next_item()\n"
        "    elseif not require('redraft').accept() then fallback() end\n"
        "  end, { 'i' }), ['<C-y>'] = cmp.mapping.confirm(), ['<C-q>'] = cmp.mapping.abort() } })"
    )
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.lua("require('cmp').complete()")
    nvim.wait(lambda: nvim.lua("return require('cmp').visible()"))
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.keys("<C-q>")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Tab>")
    nvim.wait_for_text("print(value)\n")
    nvim.keys("<CR>pri")
    nvim.wait_for_ghost("nt(value)")
    nvim.lua("require('cmp').complete()")
    nvim.wait(lambda: nvim.lua("return require('cmp').visible()"))
    nvim.keys("<Tab><C-y>")
    nvim.wait_for_text("print(value)\nprint_all\n")


@needs("blink.cmp")
def test_blink_cmp_and_ghost_text_take_turns(own_nvim: Nvim) -> None:
    nvim = own_nvim.start([PRINT], setup={})
    load(nvim, "blink.cmp")
    nvim.lua(
        "require('blink.cmp').setup({\n"
        "  fuzzy = { implementation = 'lua' },\n"
        "  completion = { menu = { auto_show = false } },\n"
        "  sources = { default = { 'buffer' } },\n"
        "  keymap = { preset = 'none', ['<C-q>'] = { 'hide' }, ['<C-y>'] = { 'select_and_accept' },\n"
        "    ['<Tab>'] = { 'select_next', function() return require('redraft').accept() end, 'fallback' } },\n"
        "})"
    )
    nvim.open("a.py", "print_all\n\n")
    nvim.place(1, 0)
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.lua("require('blink.cmp').show()")
    nvim.wait(lambda: nvim.lua("return require('blink.cmp').is_menu_visible()"))
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.keys("<C-q>")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Tab>")
    nvim.wait_for_text("print_all\nprint(value)\n")


@needs("sidekick.nvim")
def test_sidekick_shows_and_applies_our_next_edits(newest_nvim: Nvim) -> None:
    """Of Neovim 0.11.4 sidekick gets no request ids, and takes every answer for a stale one."""
    nvim = newest_nvim.start(
        [PRINT, RENAME], setup={**KEYMAPS, "name": "redraft-copilot", "next_edit": False}
    )
    load(nvim, "sidekick.nvim")
    nvim.lua("vim.o.cmdheight = 1; require('sidekick').setup({})")
    nvim.open("a.py", "count = 0\nprint(count)\n\n", attached=False)
    client = "local c = vim.lsp.get_clients({ name = 'redraft-copilot' })[1]; "
    nvim.wait(lambda: nvim.lua(client + "return c and c.initialized"))
    state = client + "return c:request_sync('redraft/status', vim.empty_dict(), 2000).result"
    nvim.wait(lambda: nvim.lua(state)["state"] == "ready")
    nvim.place(2, 0)
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")  # ours
    nvim.keys("<Tab><Esc>gg0cwtotal<Esc>")
    nvim.wait(lambda: nvim.lua("return require('sidekick.nes').have()"))
    assert nvim.drawn() == []
    nvim.lua("require('sidekick').nes_jump_or_apply()")
    nvim.wait(lambda: nvim.cursor()[0] == 1)
    nvim.lua("require('sidekick').nes_jump_or_apply()")
    nvim.wait_for_text("total = 0\nprint(total)\nprint(value)\n")
    nvim.wait(lambda: nvim.lua(state)["outcomes"].get("accepted") == 2)
