"""What users of other tools complain of, by the numbers of that list: odd and late answers (14 to 20).

docs/editors.md says which numbers the server's own tests hold instead.
"""

from __future__ import annotations

import pytest
from nvim_editor import Nvim
from nvim_rules import KEYMAPS, edit, lsp_range, never, refusals

pytestmark = pytest.mark.e2e

INSERTING = {**KEYMAPS, "next_edit_modes": ["n", "i"]}
FIM = "textDocument/inlineCompletion"
NEXT_EDIT = "redraft/nextEdit"


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


def test_complaint_17_what_stands_there_is_not_inserted_again(nvim: Nvim) -> None:
    call = {"mode": "fim", "when": {"regex": "f\\($"}, "insert": "first, second)"}
    line = {"mode": "fim", "when": {"regex": "\\n$"}, "insert": "return total"}
    again = edit((1, 0), (1, 0), "return total\n", text="x = g()")
    nvim.start([call, line, again], setup=KEYMAPS)
    nvim.open("a.py", "x = f)\nreturn total\n")
    nvim.place(0, 5)
    for keys, refused in (("i(", 1), ("<Esc>o", 2), ("<Esc>ddk0wwrg", 3)):
        nvim.keys(keys)
        nvim.wait(lambda refused=refused: refusals(nvim, "duplicates-suffix") >= refused)
        never(lambda: nvim.ghost() or nvim.drawn())
    assert nvim.text() == "x = g()\nreturn total\n"


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
