"""What users of other tools complain of, by the numbers of that list: each as a test of the plugin.

docs/editors.md says which numbers the server's own tests hold instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from nvim_editor import Nvim

pytestmark = pytest.mark.e2e

PRINT = {"mode": "fim", "when": {"regex": "pri$"}, "insert": "nt(value)"}
LOOP = {"mode": "fim", "when": {"regex": "for $"}, "insert": "x in xs:\n    print(x)"}
RENAME = {
    "mode": "next_edit",
    "when": {"history": "+total"},
    "replace": {"old": "count", "new": "total", "all": True},
}
KEYMAPS = {"keymaps": {"accept": "<Tab>", "reject": "<C-e>", "next": "<C-n>"}}
WORDS = {
    "keymaps": {
        "accept": "<Tab>",
        "accept_word": "<C-g>",
        "accept_line": "<C-l>",
        "reject": "<C-e>",
    }
}
INSERTING = {**KEYMAPS, "next_edit_modes": ["n", "i"]}
FIM = "textDocument/inlineCompletion"
NEXT_EDIT = "redraft/nextEdit"


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


def test_complaint_2_no_suggestion_right_after_undo_or_redo(nvim: Nvim) -> None:
    rename(nvim)
    nvim.keys("u")
    nvim.wait(lambda: nvim.status()["counts"].get("after-undo") == 1)
    assert nvim.drawn() == []
    nvim.keys("<C-r>")
    nvim.wait(lambda: nvim.status()["counts"].get("after-undo") == 2)
    assert nvim.drawn() == []


def test_complaint_3_a_rejected_next_edit_goes_and_stays_away(nvim: Nvim) -> None:
    nvim.start([RENAME], setup=KEYMAPS)
    nvim.open("a.py", "count = 0\nprint(count)\n")
    nvim.keys("cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    nvim.keys("<C-e>")
    nvim.wait(lambda: not nvim.drawn())
    nvim.wait(lambda: nvim.status()["outcomes"] == {"rejected": 1})
    nvim.keys("<C-n>")
    nvim.wait(lambda: "no next edit (already-rejected)" in nvim.messages())
    assert nvim.drawn() == []
    assert nvim.text() == "total = 0\nprint(count)\n"


def test_complaint_4_escape_rejects_and_the_next_one_passes_through(nvim: Nvim) -> None:
    nvim.start([PRINT, RENAME], setup={"keymaps": {"reject": "<Esc>"}})
    nvim.lua("escapes = 0; vim.keymap.set('n', '<Esc>', function() escapes = escapes + 1 end)")
    nvim.open("a.py", "count = 0\nprint(count)\n\n")
    nvim.place(2, 0)
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Esc>")
    nvim.wait(lambda: nvim.ghost() is None)
    assert nvim.mode() == "i"
    nvim.wait(lambda: nvim.status()["outcomes"] == {"rejected": 1})
    nvim.keys("<Esc>")
    nvim.wait(lambda: nvim.mode() == "n")

    nvim.keys("ggcwtotal<Esc>")
    nvim.wait(nvim.drawn)
    nvim.keys("<Esc>")
    nvim.wait(lambda: not nvim.drawn())
    nvim.wait(lambda: nvim.status()["outcomes"].get("rejected") == 2)
    assert nvim.lua("return escapes") == 0
    nvim.keys("<Esc>")
    nvim.wait(lambda: nvim.lua("return escapes") == 1)
    nvim.api.command("nunmap <Esc>")


def test_complaint_5_a_click_elsewhere_takes_ghost_text_away(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("a.py", "first\n\n")
    nvim.place(1, 0)
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.api.options["mouse"] = "a"
    nvim.api.api.input_mouse("left", "press", "", 0, 0, 2)
    nvim.wait(lambda: nvim.cursor() == (0, 2))
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.keys("<Tab>")
    nvim.wait(lambda: nvim.text() != "first\npri\n")
    assert nvim.text() == "fi  rst\npri\n"  # what Tab does there


def test_complaint_6_tab_indents_at_an_indent_column(nvim: Nvim) -> None:
    value = {"mode": "fim", "when": {"regex": "\\n *$"}, "insert": "return value"}
    nvim.start([value, edit((0, 4), (0, 5), "g")], setup=INSERTING)
    nvim.open("a.py", "def f():\n    x = 1\n\n")
    nvim.place(2, 0)
    nvim.keys("i")
    nvim.wait_for_ghost("return value")
    nvim.keys("<Tab>")  # short of the line above: Tab indents
    nvim.wait_for_text("def f():\n    x = 1\n    \n")
    nvim.wait_for_ghost("return value")
    nvim.keys("<Tab>")  # there is nothing left to indent: Tab accepts
    nvim.wait_for_text("def f():\n    x = 1\n    return value\n")

    nvim.wait(nvim.drawn)  # the next edit, in another line, and no ghost text
    assert nvim.ghost() is None
    nvim.keys("<Esc>ggI")
    nvim.wait(lambda: nvim.cursor() == (0, 0))
    nvim.keys("<C-o>:lua require('redraft').next()<CR>")
    nvim.wait(lambda: nvim.drawn() and nvim.mode() == "i")
    nvim.keys("<Tab>")
    nvim.wait_for_text("    def f():\n    x = 1\n    return value\n")


def test_complaint_6_tab_goes_to_the_edit_before_it_applies_it(nvim: Nvim) -> None:
    nvim.start([edit((2, 4), (2, 9), "total", text="next")], setup=INSERTING)
    nvim.open("a.py", "a\nb\nc = count\n")
    nvim.keys("Anext")
    nvim.wait(nvim.drawn)
    assert nvim.ghost() is None
    nvim.keys("<Tab>")
    nvim.wait(lambda: nvim.cursor() == (2, 4))
    assert nvim.text() == "anext\nb\nc = count\n"
    nvim.keys("<Tab>")
    nvim.wait_for_text("anext\nb\nc = total\n")
    assert nvim.mode() == "i"


def test_complaint_7_tab_at_the_begin_of_a_line_deletes_nothing(nvim: Nvim) -> None:
    nvim.start([edit((0, 0), (1, 0), "", text="go")], setup=INSERTING)
    nvim.open("a.py", "go\nb\n")
    nvim.keys("I")
    nvim.keys("<C-o>:lua require('redraft').next()<CR>")
    nvim.wait(lambda: nvim.drawn() and nvim.mode() == "i")
    assert nvim.drawn() == [("RedraftDelete", 0, 0, (1, 0))]
    nvim.keys("<Tab>")
    nvim.wait_for_text("    go\nb\n")


def test_complaint_8_tab_never_inserts_a_tab_when_it_could_accept(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    for _ in range(5):
        nvim.keys("ccpri")
        nvim.wait_for_ghost("nt(value)")
        nvim.keys("<Tab>")
        nvim.wait_for_text("print(value)\n")
        nvim.keys("<Esc>")


def test_complaint_9_nothing_is_painted_over_code(nvim: Nvim) -> None:
    call = {
        "mode": "fim",
        "when": {"regex": "f\\($"},
        "edits": [{"start": 2, "end": 5, "new_text": "x, y)"}],
    }
    rest = {
        "mode": "fim",
        "when": {"regex": "g\\($"},
        "edits": [{"start": 2, "end": 5, "new_text": "new"}],
    }
    nvim.start([call, rest, edit((1, 0), (1, 3), "two", text="next")], setup=KEYMAPS)
    nvim.open("a.py", "z y)\n")
    nvim.keys("cwf(")
    nvim.wait_for_ghost("x,")  # ` y)` stays where it stands
    (details,) = [details for _, _, details in nvim.marks("redraft.ghost")]
    assert details["virt_text_pos"] == "inline"
    nvim.keys("<Tab>")
    nvim.wait_for_text("f(x, y)\n")

    nvim.keys("<Esc>ccg(old<Left><Left><Left>")
    nvim.wait_for_ghost("new")
    marks = [
        (column, d.get("end_col"), d.get("hl_group"))
        for _, column, d in nvim.marks("redraft.ghost")
    ]
    assert (2, 5, "RedraftDelete") in marks  # what would go is marked, and readable
    nvim.keys("<Tab>")
    nvim.wait_for_text("g(new\n")

    nvim.keys("<Esc>ccnext<CR>one<Esc>")
    nvim.wait_for_drawn([("RedraftDelete", 1, 0, (1, 3)), ("inline", 1, 3, "two")])


def test_complaint_10_nothing_moves_and_nothing_is_asked_while_typing(nvim: Nvim) -> None:
    view = "local v = vim.fn.winsaveview(); return { v.lnum, v.col, v.topline, vim.api.nvim_get_current_win() }"
    nvim.start([RENAME], setup=KEYMAPS)
    nvim.open("a.py", "count = 0\n" + "pass\n" * 80 + "print(count)\n")
    nvim.keys("cwtotal")
    nvim.wait_for_requests(1)  # for ghost text
    never(nvim.drawn)
    nvim.keys("<Esc>")
    before = nvim.lua(view)
    nvim.wait(nvim.drawn)
    assert nvim.lua(view) == before
    nvim.keys("i")
    nvim.wait(lambda: not nvim.drawn() and nvim.hint() is None)


def test_complaint_11_a_snippet_keeps_tab_to_itself(nvim: Nvim) -> None:
    anything = {"mode": "fim", "insert": "ghost"}
    nvim.start([anything], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.keys("i")
    nvim.wait_for_ghost("ghost")
    nvim.lua("vim.snippet.expand('f($1, $2)$0')")
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.keys("one")
    nvim.wait_for_text("f(one, )\n")
    never(nvim.ghost)
    nvim.keys("<Tab>two<Tab>")
    nvim.wait_for_text("f(one, two)\n")
    nvim.wait_for_ghost("ghost")  # the snippet is done
    nvim.keys("<Tab>")
    nvim.wait_for_text("f(one, two)ghost\n")


def test_complaint_12_the_native_menu_hides_ghost_text_and_keeps_tab(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("a.py", "print_one print_two\n\n")
    nvim.place(1, 0)
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.lua("vim.o.completeopt = 'menuone,noselect'")
    nvim.keys("<C-n>")
    nvim.wait(lambda: nvim.lua("return vim.fn.pumvisible()") == 1)
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.keys("<C-e>")  # closes the menu; the text is what it was
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<C-n><C-n>")
    nvim.wait_for_text("print_one print_two\nprint_one\n")
    never(nvim.ghost)
    nvim.keys("<Esc>")


@pytest.mark.parametrize(
    ("module", "visible"), [("cmp", "visible"), ("blink.cmp", "is_menu_visible")]
)
def test_complaint_12_the_menus_of_plugins_hide_ghost_text(
    nvim: Nvim, module: str, visible: str
) -> None:
    """With a stand-in that says what these plugins say; see test_nvim_plugins.py for themselves."""
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.lua(
        "menu = true; package.loaded[...] = { [select(2, ...)] = function() return menu end }",
        module,
        visible,
    )
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    never(nvim.ghost)
    nvim.keys("<Tab>")
    nvim.wait_for_text("pri \n")
    nvim.keys("<BS>")
    nvim.lua("menu = false")
    nvim.keys("<BS>i")
    nvim.wait_for_ghost("nt(value)")
    nvim.lua("package.loaded[...] = nil", module)
    nvim.start([PRINT], setup={**KEYMAPS, "show_with_menu": True})
    nvim.lua(
        "package.loaded[...] = { [select(2, ...)] = function() return true end }", module, visible
    )
    nvim.open("b.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Tab>")  # still the menu's
    nvim.wait_for_text("pri \n")
    nvim.lua("package.loaded[...] = nil", module)


def test_complaint_13_accepting_after_typing_some_of_it_inserts_what_is_left(nvim: Nvim) -> None:
    nvim.start([PRINT, LOOP], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("nt<Tab>")  # faster than Neovim asks again
    nvim.wait_for_text("print(value)\n")
    assert nvim.cursor() == (0, 12)
    nvim.wait(lambda: nvim.status()["outcomes"] == {"accepted": 1})

    nvim.keys("<CR>pri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("z<Tab>")  # no longer what was suggested, so Tab is what it was
    nvim.wait_for_text("print(value)\npriz    \n")

    nvim.keys("<C-u>for ")
    nvim.wait_for_ghost("x in xs:\n    print(x)")
    nvim.keys("x in xs:<CR>pr<Tab>")  # into its second line; Neovim indents it
    nvim.wait_for_text("print(value)\nfor x in xs:\n    print(x)\n")


def test_complaint_14_an_item_without_range_goes_to_the_cursor(faked_nvim: Nvim) -> None:
    nvim = faked_nvim.start_faked(KEYMAPS)
    nvim.lua("fake.answers[...] = { items = { { insertText = 'nt()' } } }", FIM)
    nvim.open("a.py", "x\n", attached=False)
    nvim.keys("ccpri")
    nvim.wait_for_ghost("nt()")
    nvim.keys("<Tab>")
    nvim.wait_for_text("print()\n")


def test_complaint_15_ranges_outside_of_the_text_are_harmless(faked_nvim: Nvim) -> None:
    nvim = faked_nvim.start_faked(KEYMAPS)
    wild = {"insertText": "wild", "range": lsp_range((900, 5), (901, 7))}
    nvim.lua("fake.answers[...] = select(2, ...)", FIM, {"items": [wild]})
    far = {"text": "end", "range": lsp_range((0, 900), (700, 3))}
    nvim.lua("fake.answers[...] = select(2, ...)", NEXT_EDIT, {"edits": [far]})
    nvim.open("a.py", "one\ntwo\n", attached=False)
    nvim.keys("Ax")
    never(nvim.ghost, 0.1)
    nvim.keys("<Esc>")
    nvim.wait(nvim.drawn)
    nvim.keys("<Tab>")
    nvim.wait_for_text("onexend\n")
    assert "Error" not in nvim.messages()


def test_complaint_16_an_edit_for_another_version_is_not_shown(faked_nvim: Nvim) -> None:
    nvim = faked_nvim.start_faked(KEYMAPS)
    old = {"text": "X", "range": lsp_range((1, 0), (1, 1)), "textDocument": {"version": 1}}
    nvim.lua("fake.answers[...] = select(2, ...)", NEXT_EDIT, {"edits": [old]})
    nvim.open("a.py", "one\ntwo\n", attached=False)
    nvim.keys("x")
    never(nvim.drawn)
    nvim.keys("<C-n>")
    nvim.wait(lambda: "no next edit (stale-version)" in nvim.messages())


def test_complaint_18_accepting_ends_even_when_the_server_repeats_itself(faked_nvim: Nvim) -> None:
    nvim = faked_nvim.start_faked(KEYMAPS)
    same = {"text": "ONE", "range": lsp_range((0, 0), (0, 3))}
    nvim.lua("fake.answers[...] = select(2, ...)", NEXT_EDIT, {"edits": [same]})
    nvim.lua("vim.keymap.set('n', '<Tab>', function() tabs = (tabs or 0) + 1 end)")
    nvim.open("a.py", "one\ntwo\n", attached=False)
    nvim.place(1, 0)
    nvim.keys("x")
    nvim.wait(nvim.drawn)
    nvim.keys("<Tab>")
    nvim.wait_for_text("ONE\nwo\n")
    never(nvim.drawn)  # an edit that changes nothing is none
    nvim.keys("<Tab><Tab>")
    nvim.wait(lambda: nvim.lua("return tabs") == 2)


def test_complaint_19_what_was_cleared_does_not_pop_back(faked_nvim: Nvim) -> None:
    nvim = faked_nvim.start_faked(KEYMAPS)
    nvim.open("a.py", "one\ntwo\n", attached=False)
    late = {"edits": [{"text": "X", "range": lsp_range((1, 0), (1, 1))}]}
    count = (
        "local method, found = ..., 0\n"
        "for _, a in ipairs(fake.asked) do found = found + (a.method == method and 1 or 0) end\n"
        "return found"
    )
    answer = (
        "local method, which, answer = ...\n"
        "for _, a in ipairs(fake.asked) do\n"
        "  which = which - (a.method == method and 1 or 0)\n"
        "  if which == 0 then return a.answer(nil, answer) end\n"
        "end"
    )
    nvim.keys("x")
    nvim.wait(lambda: nvim.lua(count, NEXT_EDIT) == 1)
    nvim.keys("i<Esc>")  # withdraws the question, and asks anew
    nvim.wait(lambda: nvim.lua(count, NEXT_EDIT) == 2)
    nvim.lua(answer, NEXT_EDIT, 1, late)
    never(nvim.drawn)

    nvim.keys("A")
    nvim.wait(lambda: nvim.lua(count, FIM))
    before = nvim.lua(count, FIM)
    nvim.keys("y")
    nvim.wait(lambda: nvim.lua(count, FIM) == before + 1)
    item = {"items": [{"insertText": "late", "range": lsp_range((0, 2), (0, 2))}]}
    nvim.lua(answer, FIM, before, item)
    never(nvim.ghost)


def test_complaint_20_an_answer_that_comes_at_once_counts(faked_nvim: Nvim) -> None:
    nvim = faked_nvim.start_faked(KEYMAPS)
    now = {"edits": [{"text": "X", "range": lsp_range((1, 0), (1, 1))}]}
    nvim.lua("fake.answers[...] = select(2, ...)", NEXT_EDIT, now)
    nvim.open("a.py", "one\ntwo\n", attached=False)
    nvim.keys("x")
    nvim.wait_for_drawn([("RedraftDelete", 1, 0, (1, 3)), ("inline", 1, 3, "Xwo")])


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
    nvim.start([RENAME], setup={**WORDS, "keymaps": {**WORDS["keymaps"], "reject": "<Esc>"}})
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


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
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
    nvim.start([call], setup=WORDS)
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
    nvim.wait_for_requests(1)
    nvim.keys("<Esc>")
    nvim.wait_for_requests(2)  # the next edit
    status = nvim.status()
    assert status["counts"] == {"secret-file": 2}
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
    nvim.wait(lambda: nvim.status()["requests"] == asked + 1)
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
    nvim.keys("nt(val")
    nvim.wait_for_ghost("ue)")
    status = nvim.status()
    assert (status["requests"], status["counts"], status["outcomes"]) == (1, {"model": 1}, {})
    nvim.keys("<BS><BS>")
    nvim.wait_for_ghost("alue)")
    nvim.keys("<Tab>")
    nvim.wait_for_text("print(value)\n")
    nvim.wait(lambda: nvim.status()["outcomes"].get("accepted") == 1)
