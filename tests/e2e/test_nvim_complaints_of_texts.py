"""What users of other tools complain of, by number: buffers, units of text, several cursors, windows (21 to 49).

docs/editors.md says which numbers the server's own tests hold instead.
"""

from __future__ import annotations

import pytest
from nvim_editor import Nvim
from nvim_rules import ALL_KEYMAPS, KEYMAPS, LOOP, PRINT, RENAME, edit, never, rename

pytestmark = pytest.mark.e2e

INSERTING = {**KEYMAPS, "next_edit_modes": ["n", "i"]}
FIM = "textDocument/inlineCompletion"
NEXT_EDIT = "redraft/nextEdit"


def test_complaint_21_nothing_is_stuck_after_a_switch_of_buffers(nvim: Nvim) -> None:
    nvim.start([RENAME], setup=KEYMAPS)
    nvim.open("a.py", "count = 0\nprint(count)\n")
    nvim.open("b.py", "count = 1\n")
    nvim.api.command("edit #")
    nvim.keys("cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    nvim.api.command("edit #")
    assert nvim.drawn() == []
    nvim.keys("<Tab>")
    nvim.api.command("edit #")
    never(nvim.drawn, 0.1)
    assert nvim.text() == "total = 0\nprint(count)\n"
    nvim.wait(lambda: nvim.status()["pending"] == 0)
    nvim.keys("<C-n>")  # and it is still there to be asked for
    nvim.wait(nvim.drawn)


def test_complaint_22_the_last_suggestion_can_be_shown_again(nvim: Nvim) -> None:
    rename(nvim)
    shown = nvim.drawn()
    nvim.keys("<C-e>")
    nvim.wait(lambda: not nvim.drawn())
    nvim.api.command("Redraft recall")
    assert nvim.drawn() == shown
    nvim.keys("<Tab>")
    nvim.wait_for_text("total = 0\nprint(total)\n")
    nvim.api.command("Redraft recall")
    assert "nothing to show again" in nvim.messages()

    nvim.start([PRINT], setup={"keymaps": {"reject": "<C-e>", "recall": "<C-g>"}})
    nvim.open("b.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<C-e>")
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.keys("<C-g>")
    nvim.wait_for_ghost("nt(value)")


def test_complaint_23_a_change_of_our_own_takes_nothing_away(nvim: Nvim) -> None:
    nvim.start(
        [RENAME], setup={**ALL_KEYMAPS, "keymaps": {**ALL_KEYMAPS["keymaps"], "reject": "<Esc>"}}
    )
    nvim.open("a.py", "count = 0\nprint(count)\nreturn count\n")
    nvim.keys("cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    nvim.keys("<C-g>")
    nvim.wait_for_text("total = 0\nprint(total)\nreturn count\n")
    left = [("RedraftDelete", 2, 7, (2, 12)), ("inline", 2, 12, "total")]
    assert nvim.drawn() == left
    never(lambda: nvim.drawn() != left)
    nvim.keys("<Esc>")
    nvim.wait(lambda: not nvim.drawn())
    nvim.wait(lambda: nvim.status()["outcomes"] == {"rejected": 1})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_complaint_24_columns_behind_emoji_and_chinese(own_nvim: Nvim, encoding: str) -> None:
    nvim = own_nvim
    nvim.start(
        [PRINT, RENAME],
        setup=KEYMAPS,
        config={"capabilities": {"general": {"positionEncodings": [encoding]}}},
    )
    nvim.open("a.py", "count = '😀'\nf('漢字😀', count, 'é')\n\n")
    assert nvim.lua("return vim.lsp.get_clients()[1].offset_encoding") == encoding
    nvim.keys("cwtotal<Esc>")
    at = len("f('漢字😀', ".encode())
    nvim.wait_for_drawn([("RedraftDelete", 1, at, (1, at + 5)), ("inline", 1, at + 5, "total")])
    nvim.keys("<Tab>")
    nvim.wait_for_text("total = '😀'\nf('漢字😀', total, 'é')\n\n")
    nvim.place(2, 0)
    nvim.keys("i漢😀 pri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Tab>")
    nvim.wait_for_text("total = '😀'\nf('漢字😀', total, 'é')\n漢😀 print(value)\n")


def test_complaint_26_line_ends_of_the_file_are_kept(nvim: Nvim) -> None:
    nvim.start([{**LOOP, "insert": "x in xs:\r\n    print(x)"}], setup=KEYMAPS)
    nvim.open("a.py", "a\r\nb\r\n")
    nvim.keys("ofor ")
    nvim.wait(nvim.ghost)
    nvim.keys("<Tab>")
    nvim.wait_for_text("a\nfor x in xs:\n    print(x)\nb\n")
    nvim.keys("<Esc>:write<CR>")
    wanted = b"a\r\nfor x in xs:\r\n    print(x)\r\nb\r\n"
    nvim.wait(lambda: (nvim.work / "a.py").read_bytes() == wanted)


def test_complaint_27_no_line_end_is_added_or_lost(nvim: Nvim) -> None:
    nvim.start([PRINT, edit((1, 0), (1, 0), "more\n", text="grow")], setup=KEYMAPS)
    (nvim.work / "bare.py").write_bytes(b"a\npri")
    nvim.api.command("edit bare.py | setlocal nofixendofline")
    nvim.wait(nvim.attached)
    nvim.place(1, 2)
    nvim.keys("a")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Tab><Esc>:write<CR>")
    nvim.wait(lambda: (nvim.work / "bare.py").read_bytes() == b"a\nprint(value)")

    nvim.open("whole.py", "x\n")
    nvim.keys("ccgrow<Esc>")
    nvim.wait_for_drawn([("lines", 0, 0, ["more"])])
    nvim.keys("<Tab>:write<CR>")
    nvim.wait(lambda: (nvim.work / "whole.py").read_bytes() == b"grow\nmore\n")


def test_complaint_28_tabs_stay_tabs(nvim: Nvim) -> None:
    body = {"mode": "fim", "when": {"regex": ":$"}, "insert": "\n\tif x:\n\t\treturn"}
    nvim.start([body], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.api.command("setlocal expandtab tabstop=3 shiftwidth=3 indentexpr=")
    nvim.keys("idef f():")
    nvim.wait_for_ghost("\n   if x:\n      return")  # as wide as tabs are here
    nvim.keys("<Tab>")
    nvim.wait_for_text("def f():\n\tif x:\n\t\treturn\n")


def test_complaint_29_accepting_a_part_leaves_closing_brackets(nvim: Nvim) -> None:
    call = {"mode": "fim", "when": {"regex": "f$"}, "insert": "(first, second)"}
    nvim.start([call], setup=ALL_KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.lua("vim.keymap.set('i', '(', '()<Left>', { buffer = true })")  # as autopairs do
    nvim.keys("if")
    nvim.wait_for_ghost("(first, second)")
    nvim.keys("(")
    nvim.wait_for_ghost("first, second")  # the bracket is there already
    nvim.keys("<C-g>")
    nvim.wait_for_text("f(first)\n")
    nvim.wait_for_ghost(", second")
    nvim.keys("<C-g>")
    nvim.wait_for_text("f(first,)\n")
    nvim.wait_for_ghost(" second")
    nvim.keys("<Tab>")
    nvim.wait_for_text("f(first, second)\n")
    assert nvim.cursor() == (0, 16)
    nvim.wait(lambda: nvim.status()["outcomes"].get("accepted") == 1)


def test_complaint_41_a_silent_file_says_why_in_the_status(nvim: Nvim) -> None:
    nvim.start([{"mode": "any", "insert": "leak"}], setup=KEYMAPS)
    nvim.open(".env", "TOKEN=abc\n")
    nvim.keys("Adef")
    nvim.wait(lambda: nvim.status()["requests"])
    asked = nvim.status()["requests"]
    nvim.keys("<Esc>")
    status = nvim.wait(lambda: (now := nvim.status())["requests"] > asked and now)  # the next edit
    assert status["counts"] == {"secret-file": status["requests"]}
    assert status["predictions"] == 0
    assert (nvim.ghost(), nvim.drawn(), nvim.calls()) == (None, [], [])
    nvim.api.command("Redraft status")
    nvim.wait(lambda: "last silence: secret-file" in nvim.messages())


def test_complaint_45_several_cursors_get_none(nvim: Nvim) -> None:
    anything = {"mode": "any", "insert": "ghost"}
    nvim.start([anything], setup=KEYMAPS)
    nvim.open("a.py", "one\ntwo\n")
    nvim.keys("<C-v>jIx")
    never(nvim.ghost)
    nvim.keys("<Esc>")
    nvim.wait_for_text("xone\nxtwo\n")
    nvim.lua("vim.b.visual_multi = 1")  # what vim-visual-multi does
    nvim.keys("A")
    never(nvim.ghost)
    nvim.lua("vim.b.visual_multi = nil")
    nvim.lua("package.loaded['multicursor-nvim'] = { hasCursors = function() return true end }")
    nvim.keys("y")
    never(nvim.ghost)
    nvim.api.command("Redraft status")
    nvim.wait(lambda: "here: there are several cursors" in nvim.messages())
    nvim.lua("package.loaded['multicursor-nvim'] = nil")
    nvim.keys("z")
    nvim.wait_for_ghost("ghost")


def test_complaint_46_what_is_typed_through_never_flickers(nvim: Nvim) -> None:
    nvim.start([PRINT, RENAME], setup=KEYMAPS)
    nvim.open("a.py", "count = 0\nprint(count)\n\n")
    nvim.lua(
        "seen, shows = {}, 0\n"
        "vim.api.nvim_create_autocmd('TextChangedI', { buffer = 0, callback = function()\n"
        "  table.insert(seen, require('redraft.ghost').text() or '') end })\n"
        "show = vim.api.nvim_create_autocmd('User', { pattern = 'RedraftShow',"
        " callback = function() shows = shows + 1 end })"
    )
    nvim.place(2, 0)
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.lua("seen = {}")
    for key, left in (("n", "t(value)"), ("t", "(value)"), ("(", "value)")):
        nvim.keys(key)
        nvim.wait_for_ghost(left)
    assert nvim.lua("return seen") == ["t(value)", "(value)", "value)"]
    assert nvim.lua("return shows") == 1

    nvim.keys("<Esc>gg0cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    marks = nvim.marks("redraft.next_edit")
    nvim.keys("jkl")
    nvim.wait(lambda: nvim.cursor() == (0, 5))
    assert nvim.marks("redraft.next_edit") == marks
    assert nvim.lua("vim.api.nvim_del_autocmd(show); return shows") == 2


def test_complaint_47_nothing_outlives_the_text_it_was_made_for(nvim: Nvim) -> None:
    rename(nvim)
    asked = nvim.status()["requests"]
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'import os' })")  # a formatter, say
    nvim.wait(lambda: nvim.status()["requests"] > asked)
    nvim.wait_for_drawn([("RedraftDelete", 2, 6, (2, 11)), ("inline", 2, 11, "total")])

    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("b.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'import os' })")
    nvim.lua("vim.api.nvim_buf_set_text(0, 1, 0, 1, 3, { 'other' })")
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.keys("<Tab>")
    nvim.wait(lambda: nvim.text() not in ("import os\nother\n", "\n"))
    assert "nt(value)" not in nvim.text()


def test_complaint_48_every_action_is_a_command_and_no_key_is_taken(nvim: Nvim) -> None:
    nvim.start([PRINT, LOOP, RENAME])
    nvim.open("a.py", "count = 0\nprint(count)\n\n")
    maps = (
        "return vim.tbl_filter(function(m) return (m.desc or ''):find('Redraft') ~= nil end,"
        " vim.list_extend(vim.api.nvim_buf_get_keymap(0, 'i'), vim.api.nvim_buf_get_keymap(0, 'n')))"
    )
    assert nvim.lua(maps) == []
    names = nvim.lua("return vim.fn.getcompletion('Redraft ', 'cmdline')")
    assert {"accept", "accept-word", "accept-line", "reject", "next", "recall", "complete"} <= set(
        names
    )
    nvim.place(2, 0)
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Cmd>Redraft accept-word<CR>")
    nvim.wait_for_ghost("(value)")
    nvim.keys("<Cmd>Redraft reject<CR>")
    nvim.wait(lambda: nvim.ghost() is None)
    assert nvim.text().endswith("\nprint\n")
    nvim.keys("<CR>for <Cmd>Redraft complete<CR>")
    nvim.wait_for_ghost("x in xs:\n    print(x)")
    nvim.keys("<Cmd>Redraft accept-line<CR><Cmd>Redraft accept<CR>")
    nvim.wait_for_text("count = 0\nprint(count)\nprint\nfor x in xs:\n    print(x)\n")
    nvim.keys("<Esc>gg0cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    nvim.api.command("Redraft reject")
    assert nvim.drawn() == []
    nvim.api.command("Redraft recall")
    nvim.api.command("Redraft accept")
    assert nvim.text().startswith("total = 0\nprint(total)\n")
    for name in ("accept", "accept-word", "accept-line", "reject", "next", "recall", "complete"):
        assert nvim.lua("return vim.fn.maparg(..., 'i') ~= ''", f"<Plug>(redraft-{name})")


def test_complaint_49_the_second_tab_page(nvim: Nvim) -> None:
    nvim.start([PRINT, RENAME], setup=KEYMAPS)
    nvim.open("a.py", "one\n")
    nvim.api.command("tabnew")
    nvim.open("b.py", "count = 0\nprint(count)\n\n")
    nvim.place(2, 0)
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Tab>")
    nvim.wait_for_text("count = 0\nprint(count)\nprint(value)\n")
    nvim.keys("<Esc>gg0cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    nvim.keys("<Tab>")
    nvim.wait_for_text("total = 0\nprint(total)\nprint(value)\n")


def test_complaint_49_the_cursor_is_behind_what_was_accepted(nvim: Nvim) -> None:
    nvim.start([LOOP, edit((1, 0), (2, 4), "b2\nc2\nd2;", text="next")], setup=KEYMAPS)
    nvim.open("a.py", "a\nb\nc = d\n")
    nvim.keys("ofor ")
    nvim.wait(nvim.ghost)
    nvim.keys("<Tab>!")
    nvim.wait_for_text("a\nfor x in xs:\n    print(x)!\nb\nc = d\n")
    nvim.keys("<Esc>")
    nvim.open("b.py", "a\nb\nc = d\n")
    nvim.keys("Anext<Esc>")
    nvim.wait(nvim.drawn)
    nvim.keys("<Tab>")
    nvim.wait_for_text("anext\nb2\nc2\nd2;d\n")
    assert nvim.cursor() == (3, 3)


def test_complaint_49_tab_is_what_it_was_when_there_is_nothing(faked_nvim: Nvim) -> None:
    nvim = faked_nvim.start_faked({})
    nvim.lua("fake.answers[...] = { items = {} }", FIM)
    nvim.open("a.py", "\n", attached=False)
    nvim.lua(
        "vim.keymap.set('i', '<Tab>', function() return 'expr' end, { expr = true })\n"
        "vim.keymap.set('n', '<Tab>', 'Aplain<Esc>', { buffer = true })\n"
        "require('redraft').setup(...)",
        KEYMAPS,
    )
    nvim.keys("i<Tab>")
    nvim.wait_for_text("expr\n")
    nvim.keys("<Esc><Tab>")
    nvim.wait_for_text("exprplain\n")
    nvim.lua("require('redraft').setup({})")  # gives the keys back
    assert nvim.lua("return vim.fn.maparg('<Tab>', 'n')") == "Aplain<Esc>"
    nvim.keys("a<Tab>")
    nvim.wait_for_text("exprplainexpr\n")


def test_complaint_49_typing_through_asks_and_aborts_nothing(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    asked = nvim.status()
    nvim.keys("nt(val")
    nvim.wait_for_ghost("ue)")
    status = nvim.status()
    assert (status["requests"], status["counts"]) == (asked["requests"], asked["counts"])
    assert status["outcomes"] == {}
    nvim.keys("<BS><BS>")
    nvim.wait_for_ghost("alue)")
    nvim.keys("<Tab>")
    nvim.wait_for_text("print(value)\n")
    nvim.wait(lambda: nvim.status()["outcomes"].get("accepted") == 1)
