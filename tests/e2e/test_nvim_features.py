"""The Neovim plugin beyond the main path: parts, chains, switches and events."""

from __future__ import annotations

import time

import pytest
from nvim_editor import Nvim
from nvim_rules import ALL_KEYMAPS, LOOP, PRINT, RENAME_ONE

pytestmark = pytest.mark.e2e


def quiet(nvim: Nvim, seconds: float = 0.12) -> None:
    """Nothing is asked or shown for longer than the pauses before a question."""
    asked = nvim.status()["requests"]
    time.sleep(seconds)
    assert nvim.status()["requests"] == asked
    assert (nvim.ghost(), nvim.drawn()) == (None, [])


def test_ghost_text_is_accepted_by_word_and_by_line(nvim: Nvim) -> None:
    nvim.start([LOOP], setup=ALL_KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.keys("ifor ")
    nvim.wait_for_ghost("x in xs:\n    print(x)")
    for text, left in (
        ("for x", " in xs:\n    print(x)"),
        ("for x in", " xs:\n    print(x)"),
    ):
        nvim.keys("<C-g>")
        nvim.wait_for_text(text + "\n")
        nvim.wait_for_ghost(left)
    nvim.keys("<C-l>")
    nvim.wait_for_text("for x in xs:\n")
    nvim.wait_for_ghost("\n    print(x)")
    nvim.keys("<C-g>")
    nvim.wait_for_text("for x in xs:\n    print\n")
    nvim.keys("<C-l>")
    nvim.wait_for_text("for x in xs:\n    print(x)\n")
    nvim.wait(lambda: nvim.status()["outcomes"].get("accepted") == 1)
    assert nvim.status()["counts"]["model"] == 1
    nvim.keys("<Esc>u")
    nvim.wait_for_text("for x in xs:\n    print\n")  # each part is a step of undo


def test_a_key_that_comes_alone_is_asked_about_at_once(own_nvim: Nvim) -> None:
    lone = {"mode": "fim", "when": {"regex": "lone$"}, "insert": " key"}
    burst = {"mode": "fim", "when": {"regex": "burst$"}, "insert": " of keys"}
    nvim = own_nvim.start([lone, burst], setup={"ghost_text_delay": 60_000})
    nvim.open("a.py", "lone\n")
    nvim.keys("A")
    nvim.wait_for_ghost(" key")
    nvim.keys(" burst")  # within three pauses of the key before
    nvim.wait_for_text("lone burst\n")
    nvim.wait(lambda: nvim.ghost() is None)
    quiet(nvim)


def test_what_is_typed_before_the_server_is_there_is_asked_about(own_nvim: Nvim) -> None:
    nvim = own_nvim.start([PRINT])
    nvim.open("a.py", "\n", attached=False)
    nvim.keys("ipri")
    nvim.wait_for_text("pri\n")
    assert not nvim.attached()
    nvim.wait_for_ghost("nt(value)")


def test_a_next_edit_is_accepted_by_word_and_by_line(nvim: Nvim) -> None:
    where = {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 5}}
    rule = {
        "mode": "next_edit",
        "when": {"text": "next\nb = x"},
        "edits": [{"range": where, "new_text": "f(1)\nc = 2"}],
    }
    nvim.start([rule], setup=ALL_KEYMAPS)
    nvim.open("a.py", "a\nb = x + y\n")
    nvim.keys("Anext<Esc>")
    nvim.wait(nvim.drawn)
    nvim.keys("<C-g>")
    nvim.wait_for_text("anext\nb = f + y\n")
    assert nvim.drawn()
    nvim.keys("<C-l>")
    nvim.wait_for_text("anext\nb = f(1) + y\n")
    nvim.keys("<Tab>")
    nvim.wait_for_text("anext\nb = f(1)\nc = 2 + y\n")
    assert nvim.drawn() == []
    nvim.keys("uuu")
    nvim.wait_for_text("anext\nb = x + y\n")


def test_accepting_works_in_an_expression_mapping(nvim: Nvim) -> None:
    nvim.start([PRINT])
    nvim.open("a.py", "\n")
    nvim.lua(
        "vim.keymap.set('i', '<C-g>', function()\n"
        "  return require('redraft').accept() and '' or 'none' end, { expr = true, buffer = true })"
    )
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<C-g>")
    nvim.wait_for_text("print(value)\n")
    nvim.keys("<C-g>")
    nvim.wait_for_text("print(value)none\n")


def test_the_next_one_comes_by_itself_after_accepting(nvim: Nvim) -> None:
    nvim.start([RENAME_ONE], setup=ALL_KEYMAPS)
    nvim.open("a.py", "count = 0\nprint(count)\nreturn count\n")
    nvim.keys("cwtotal<Esc>")
    nvim.wait_for_drawn([("RedraftDelete", 1, 6, (1, 11)), ("inline", 1, 11, "total")])
    nvim.keys("<Tab>")
    nvim.wait_for_drawn([("RedraftDelete", 2, 7, (2, 12)), ("inline", 2, 12, "total")])
    nvim.keys("<Tab>")
    nvim.wait_for_text("total = 0\nprint(total)\nreturn total\n")
    nvim.keys("u")
    nvim.wait_for_text("total = 0\nprint(total)\nreturn count\n")


def test_dot_and_registers_are_the_users(nvim: Nvim) -> None:
    nvim.start([RENAME_ONE, PRINT], setup=ALL_KEYMAPS)
    nvim.open("a.py", "count = 0\nprint(count)\nlast = 1\n")
    nvim.keys("yyjjyy")
    nvim.wait(lambda: nvim.lua("return vim.fn.getreg('0')") == "last = 1\n")
    nvim.keys("ggcwtotal<Esc>")
    nvim.wait(nvim.drawn)
    register = nvim.lua("return { vim.fn.getreg('\"'), vim.fn.getreg('0'), vim.fn.getreg('.') }")
    nvim.keys("<Tab>")
    nvim.wait_for_text("total = 0\nprint(total)\nlast = 1\n")
    assert (
        nvim.lua("return { vim.fn.getreg('\"'), vim.fn.getreg('0'), vim.fn.getreg('.') }")
        == register
    )
    nvim.keys("j0.")
    nvim.wait_for_text("total = 0\nprint(total)\ntotal = 1\n")


def test_a_macro_records_and_plays_what_was_typed_only(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=ALL_KEYMAPS)
    nvim.open("a.py", "\n\n")
    nvim.keys("qqipri")
    quiet(nvim)
    nvim.keys("<Esc>qj@q")
    nvim.wait_for_text("pri\npri\n")
    nvim.keys("a")
    nvim.wait_for_ghost("nt(value)")


def test_jump_always_goes_there_first(nvim: Nvim) -> None:
    nvim.start([RENAME_ONE], setup={**ALL_KEYMAPS, "jump": "always"})
    nvim.open("a.py", "count = 0\nx\nprint(count)\n")
    nvim.keys("cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    assert nvim.hint() is None  # it can be seen
    nvim.keys("<Tab>")
    nvim.wait(lambda: nvim.cursor() == (2, 6))
    assert nvim.text() == "total = 0\nx\nprint(count)\n"
    nvim.keys("<Tab>")
    nvim.wait_for_text("total = 0\nx\nprint(total)\n")


def test_only_the_words_that_change_are_marked(nvim: Nvim) -> None:
    where = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 33}}
    rule = {
        "mode": "next_edit",
        "when": {"text": "next"},
        "edits": [{"range": where, "new_text": "result = compute(first, total=3)"}],
    }
    nvim.start([rule], setup=ALL_KEYMAPS)
    nvim.open("a.py", "a\nresult = compute(other, count=3)\n")
    nvim.keys("Anext<Esc>")
    nvim.wait_for_drawn(
        [
            ("RedraftDelete", 1, 17, (1, 22)),
            ("inline", 1, 22, "first"),
            ("RedraftDelete", 1, 24, (1, 29)),
            ("inline", 1, 29, "total"),
        ]
    )


def test_switches_for_one_buffer_and_for_one_filetype(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=ALL_KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.api.command("Redraft disable buffer")
    nvim.keys("ipri")
    quiet(nvim)
    nvim.keys("<Esc>")
    nvim.api.command("Redraft status")
    nvim.wait(lambda: "here: switched off in this buffer" in nvim.messages())
    nvim.open("b.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Esc>")
    nvim.api.command("Redraft disable filetype")
    nvim.keys("a")
    quiet(nvim)
    nvim.keys("<Esc>")
    nvim.open("c.lua", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Esc>")
    nvim.api.command("edit b.py")
    nvim.api.command("Redraft toggle filetype")
    nvim.keys("A")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Esc>")
    nvim.api.command("Redraft toggle nonsense")
    assert "`toggle` takes `buffer`, `filetype` or nothing" in nvim.messages()


def test_switches_in_the_configuration(nvim: Nvim) -> None:
    nvim.start([PRINT], setup={"filetypes": {"*": False, "python": True}})
    nvim.open("a.lua", "\n")
    nvim.keys("ipri")
    quiet(nvim)
    nvim.keys("<Esc>")
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Esc>")
    nvim.lua("vim.b.redraft = false")
    nvim.keys("a")
    quiet(nvim)
    nvim.keys("<Esc>")
    nvim.lua(
        "require('redraft').setup({ enabled = function(b) return vim.api.nvim_buf_line_count(b) > 1 end })"
    )
    nvim.open("b.py", "\n")
    nvim.keys("ipri")
    quiet(nvim)
    nvim.keys("<CR>pri")
    nvim.wait_for_ghost("nt(value)")


def test_ghost_text_and_next_edits_only_when_asked_for(nvim: Nvim) -> None:
    keys = {"complete": "<C-g>", "next": "<C-n>"}
    off = {"ghost_text": False, "next_edit": False, "keymaps": keys}
    nvim.start([PRINT, RENAME_ONE], setup=off)
    nvim.open("a.py", "count = 0\nprint(count)\n\n")
    nvim.place(2, 0)
    nvim.keys("ipri")
    quiet(nvim)
    nvim.keys("<C-g>")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Esc>gg0cwtotal<Esc>")
    nvim.wait(lambda: nvim.ghost() is None)
    quiet(nvim)
    nvim.keys("<C-n>")
    nvim.wait(nvim.drawn)


def test_events_tell_what_is_shown_and_what_becomes_of_it(nvim: Nvim) -> None:
    renamed = {**RENAME_ONE, "when": {"text": "total = 0"}}
    nvim.start([LOOP, renamed], setup=ALL_KEYMAPS)
    nvim.open("a.py", "count = 0\nprint(count)\n\n")
    nvim.lua(
        "events = {}\n"
        "hear = vim.api.nvim_create_autocmd('User', { pattern = 'Redraft*', callback = function(e)\n"
        "  local d = e.data\n"
        "  table.insert(events, { e.match, d.kind, d.part or d.reason or '', type(d.id) }) end })"
    )
    nvim.place(2, 0)
    nvim.keys("ifor ")
    nvim.wait(nvim.ghost)
    nvim.keys("<C-g><Tab>for ")
    nvim.wait(nvim.ghost)
    nvim.keys("<C-e><Esc>")
    nvim.wait(lambda: nvim.mode() == "n")
    nvim.keys("gg0cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    nvim.keys("i")
    nvim.wait(lambda: not nvim.drawn())
    nvim.lua("vim.api.nvim_del_autocmd(hear)")
    assert nvim.lua("return events") == [
        ["RedraftShow", "ghost_text", "", "string"],
        ["RedraftAccept", "ghost_text", "word", "string"],
        ["RedraftAccept", "ghost_text", "all", "string"],
        ["RedraftShow", "ghost_text", "", "string"],
        ["RedraftDismiss", "ghost_text", "rejected", "string"],
        ["RedraftShow", "next_edit", "", "string"],
        ["RedraftDismiss", "next_edit", "left", "string"],
    ]


def test_the_statusline_tells_the_state(nvim: Nvim) -> None:
    line = "return require('redraft.status').line()"
    slow = {"mode": "fim", "delay_ms": 60_000}
    nvim.start([slow], settings={"deadlineMs": 60_000})
    nvim.api.command("new")
    assert nvim.lua(line) == ""
    nvim.open("a.py", "\n")
    nvim.wait(lambda: nvim.lua(line) == "redraft")
    nvim.keys("ix")
    nvim.wait(lambda: nvim.lua(line) == "redraft …")
    nvim.keys("<Esc>")
    nvim.wait(lambda: nvim.lua(line) == "redraft")
    nvim.api.command("Redraft disable buffer")
    assert nvim.lua(line) == "redraft off"
    nvim.api.command("Redraft enable buffer")
    nvim.api.command("Redraft model /no/such/model")
    nvim.wait(lambda: nvim.lua(line) == "redraft error")
    nvim.api.command("Redraft model")
    nvim.wait(lambda: "error, the model could not be loaded" in nvim.messages())
    assert "%{" not in nvim.lua(
        "return vim.api.nvim_eval_statusline(\"%{v:lua.require'redraft.status'.line()}\", {}).str"
    )
