"""What users of other tools complain of, by the numbers of that list: keys and drawing (1 to 13).

docs/editors.md says which numbers the server's own tests hold instead.
"""

from __future__ import annotations

import pytest
from nvim_editor import Nvim
from nvim_rules import KEYMAPS, LOOP, PRINT, RENAME, edit, never, refusals, rename

pytestmark = pytest.mark.e2e

INSERTING = {**KEYMAPS, "next_edit_modes": ["n", "i"]}
FIM = "textDocument/inlineCompletion"
NEXT_EDIT = "redraft/nextEdit"


def test_complaint_1_what_was_deleted_is_not_brought_back(nvim: Nvim) -> None:
    back = edit((1, 0), (1, 0), "print(count)\n", text="count = 0\nreturn")
    word = {"mode": "fim", "when": {"regex": "return $"}, "insert": "count"}
    nvim.start([back, word], setup=KEYMAPS)
    nvim.open("a.py", "count = 0\nprint(count)\nreturn\n")
    nvim.keys("jdd")
    nvim.wait(lambda: refusals(nvim, "undoes-last-edit"))
    never(nvim.drawn)
    nvim.keys("<C-n>")  # asked for, there is none either, and the reason is told
    nvim.wait(lambda: "no next edit (undoes-last-edit)" in nvim.messages())
    assert nvim.drawn() == []

    nvim.open("b.py", "return count\n")
    nvim.keys("wD")
    nvim.wait_for_text("return \n")
    before = refusals(nvim, "undoes-last-edit")
    nvim.keys("A")
    nvim.wait(lambda: refusals(nvim, "undoes-last-edit") > before)
    never(nvim.ghost)
    nvim.keys("<Tab>")
    nvim.wait(lambda: nvim.text() != "return \n")
    assert "count" not in nvim.text()


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
    nvim.keys("Goc<Esc>ggI")  # without an edit there is no next one
    nvim.keys("<C-o>:lua require('redraft').next()<CR>")
    nvim.wait(lambda: nvim.drawn() and nvim.mode() == "i")
    assert nvim.drawn() == [("RedraftDelete", 0, 0, (1, 0))]
    nvim.keys("<Tab>")
    nvim.wait_for_text("    go\nb\nc\n")


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
    nvim.wait(lambda: (now := nvim.status())["requests"] and not now["pending"])  # for ghost text
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
