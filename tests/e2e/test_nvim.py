"""Neovim 0.12, driven by keys: what a user of the plugin sees and gets."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import signal
import textwrap
import time
from pathlib import Path

import pytest
from nvim_editor import COMMAND, PLUGIN, ROOT, Mark, Nvim
from nvim_rules import KEYMAPS, LOOP, PRINT, RENAME, RENAME_ONE

from lsp_server.demo_cases import CASES

pytestmark = pytest.mark.e2e

CLIENTS = "return vim.tbl_map(function(c) return c.id end, vim.lsp.get_clients())"


def test_typed_keys_give_ghost_text_and_tab_inserts_exactly_it(nvim: Nvim) -> None:
    nvim.start([PRINT, LOOP], setup=KEYMAPS)
    nvim.open("a.py", "é = '😀'\n\n")
    nvim.place(1, 0)
    nvim.keys("iü; pri")
    nvim.wait_for_ghost("nt(value)")
    assert [(row, column) for row, column, _ in nvim.marks("redraft.ghost")] == [
        (1, len("ü; pri".encode()))
    ]
    assert nvim.text() == "é = '😀'\nü; pri\n"
    nvim.keys("<Tab>")
    nvim.wait_for_text("é = '😀'\nü; print(value)\n")
    assert nvim.cursor() == (1, len("ü; print(value)".encode()))
    assert nvim.ghost() is None
    nvim.wait(lambda: nvim.status()["outcomes"] == {"accepted": 1})

    nvim.keys("<CR>for ")
    nvim.wait_for_ghost("x in xs:\n    print(x)")
    nvim.keys("<Tab>")
    nvim.wait_for_text("é = '😀'\nü; print(value)\nfor x in xs:\n    print(x)\n")
    assert nvim.cursor() == (3, 12)
    nvim.keys("<Esc>u")
    nvim.wait_for_text("é = '😀'\nü; print(value)\nfor \n")
    nvim.wait(lambda: nvim.status()["outcomes"] == {"accepted": 2})


def test_typing_through_keeps_the_ghost_text_without_asking_the_model(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    asked = asked_so_far(nvim)
    for key, left in (("n", "t(value)"), ("t", "(value)"), ("(", "value)")):
        nvim.keys(key)
        nvim.wait_for_ghost(left)
    assert asked_so_far(nvim) == asked
    nvim.keys("<Tab>")
    nvim.wait_for_text("print(value)\n")


def asked_so_far(nvim: Nvim) -> tuple[int, int, int]:
    """Requests, predictions and calls of the model: on a busy machine the keys before may take two."""
    status = nvim.status()
    return status["requests"], status["predictions"], len(nvim.calls())


def test_another_key_takes_the_ghost_text_away_at_once(nvim: Nvim) -> None:
    slow = {"mode": "fim", "delay_ms": 60_000}
    nvim.start([PRINT, slow], setup=KEYMAPS, settings={"deadlineMs": 60_000})
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("v")
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.wait(lambda: nvim.status()["pending"] == 1)  # and the next answer is not there yet
    assert nvim.text() == "priv\n"
    nvim.keys("<Esc>")  # Neovim withdraws its question
    nvim.wait(lambda: nvim.status()["pending"] == 0)
    nvim.wait(lambda: len(nvim.calls("cancelled")) == 1)


def test_twelve_fast_keys_leave_one_live_request(nvim: Nvim) -> None:
    """One request of all is not withdrawn, the newest; those withdrawn early never come to the model."""
    slow = {"mode": "fim", "delay_ms": 60_000}
    nvim.start([slow], setup={"next_edit": False}, settings={"deadlineMs": 60_000})
    nvim.open("a.py", "\n")
    nvim.keys("iabcdefghijkl")
    asked = only_the_newest_lives(nvim, cursor=12)
    assert nvim.text() == "abcdefghijkl\n"
    nvim.keys("<Esc>")
    nvim.wait(lambda: nvim.status()["pending"] == 0)

    nvim.keys("cc")
    for count, key in enumerate("abcdefghijkl", asked + 1):  # each when the last was asked about
        nvim.keys(key)
        nvim.wait_for_requests(count)
    assert only_the_newest_lives(nvim, cursor=12) == asked + 12
    assert nvim.ghost() is None


def only_the_newest_lives(nvim: Nvim, cursor: int) -> int:
    """Waits until one request is left, the one about `cursor`; returns how many there were."""
    nvim.wait(lambda: (calls := nvim.calls()) and calls[-1]["cursor"] == cursor)
    status = nvim.wait(lambda: (now := nvim.status())["pending"] == 1 and now)
    assert status["superseded"] == 0  # by the plugin, not by the server
    assert status["counts"].get("cancelled", 0) == status["requests"] - 1
    nvim.wait(lambda: len(nvim.calls("cancelled")) == len(nvim.calls()) - 1)
    return int(status["requests"])


def test_next_edit_is_shown_applied_and_undone_in_one_step(nvim: Nvim) -> None:
    nvim.start([RENAME], setup=KEYMAPS)
    nvim.open("a.py", "count = 0\nprint(count)\nreturn count + 1\n")
    nvim.keys("cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    assert nvim.drawn() == [
        ("RedraftDelete", 1, 6, (1, 11)),
        ("inline", 1, 11, "total"),
        ("RedraftDelete", 2, 7, (2, 12)),
        ("inline", 2, 12, "total"),
    ]
    assert nvim.text() == "total = 0\nprint(count)\nreturn count + 1\n"
    nvim.keys("<Tab>")
    nvim.wait_for_text("total = 0\nprint(total)\nreturn total + 1\n")
    assert nvim.cursor() == (1, 11)
    assert nvim.drawn() == []
    nvim.wait(lambda: nvim.status()["outcomes"].get("accepted") == 1)
    nvim.keys("u")
    nvim.wait_for_text("total = 0\nprint(count)\nreturn count + 1\n")


def test_a_next_edit_out_of_sight_is_jumped_to_first(nvim: Nvim) -> None:
    nvim.start([RENAME], setup=KEYMAPS)
    filler = "pass\n" * 80
    nvim.open("a.py", f"count = 0\n{filler}    print(count)\n")
    nvim.keys("cwtotal<Esc>")
    nvim.wait(nvim.drawn)
    assert nvim.hint() == " ↓ next edit: line 82, 81 below "
    nvim.keys("<Tab>")
    nvim.wait(lambda: nvim.cursor() == (81, 10))
    assert nvim.hint() is None
    assert nvim.text() == f"total = 0\n{filler}    print(count)\n"
    assert nvim.drawn() == [("RedraftDelete", 81, 10, (81, 15)), ("inline", 81, 15, "total")]
    nvim.keys("<Tab>")
    nvim.wait_for_text(f"total = 0\n{filler}    print(total)\n")
    nvim.keys("<C-o>")
    nvim.wait(lambda: nvim.cursor()[0] == 0)  # the way back is in the jump list


def test_whole_lines_are_drawn_as_lines(nvim: Nvim) -> None:
    def rule(word: str, start: tuple[int, int], end: tuple[int, int], text: str) -> dict:
        where = {
            side: {"line": line, "character": column}
            for side, (line, column) in (("start", start), ("end", end))
        }
        edit = {"range": where, "new_text": text}
        return {"mode": "next_edit", "when": {"text": word}, "edits": [edit]}

    nvim.start(
        [
            rule("first", (2, 0), (2, 0), "new = 1\nnewer = 2\n"),
            rule("second", (1, 4), (2, 4), "x():\n    z = 3"),
            rule("third", (1, 3), (1, 3), "(a,\n  b)"),
            rule("fourth", (1, 0), (2, 0), ""),
        ],
        setup=KEYMAPS,
    )
    text = "a\nb = c\nd = e\n"
    nvim.open("a.py", text)
    drawn: dict[str, list[Mark]] = {
        "first": [("lines", 1, 0, ["new = 1", "newer = 2"])],
        "second": [
            ("RedraftDelete", 1, 4, (1, 5)),
            ("inline", 1, 5, "x():"),
            ("RedraftDelete", 2, 0, (2, 1)),
            ("inline", 2, 1, "    z"),
            ("RedraftDelete", 2, 4, (2, 5)),
            ("inline", 2, 5, "3e"),
        ],
        "third": [
            ("lines", 0, 0, ["b =(a,"]),
            ("inline", 1, 0, "  "),
            ("RedraftDelete", 1, 1, (1, 3)),
            ("inline", 1, 3, ")"),
        ],
        "fourth": [("RedraftDelete", 1, 0, (2, 0))],
    }
    applied = {
        "first": "first\nb = c\nnew = 1\nnewer = 2\nd = e\n",
        "second": "second\nb = x():\n    z = 3e\n",
        "third": "third\nb =(a,\n  b) c\nd = e\n",
        "fourth": "fourth\nd = e\n",
    }
    for word, expected in drawn.items():
        nvim.keys(f"ggcc{word}<Esc>")
        nvim.wait_for_drawn(expected)
        nvim.keys("<Tab>")
        nvim.wait_for_text(applied[word])
        nvim.keys("u")


def test_the_server_can_be_restarted_also_after_a_crash(own_nvim: Nvim) -> None:
    nvim = own_nvim
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    (first,) = nvim.lua(CLIENTS)
    nvim.api.command("Redraft restart")
    (second,) = nvim.wait(lambda: nvim.lua(CLIENTS) not in ([], [first]) and nvim.lua(CLIENTS))
    nvim.wait_for_state("ready")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Esc>")
    nvim.lua("vim.uv.kill(...)", _server(nvim), "sigkill")
    nvim.wait(lambda: nvim.lua(CLIENTS) == [])
    nvim.keys("i<Tab>")  # the key is its old self
    nvim.wait_for_text("pr  i\n")
    nvim.keys("<Esc>")
    nvim.api.command("Redraft restart")
    nvim.wait_for_state("ready")
    assert nvim.lua(CLIENTS)[0] > second > first
    nvim.keys("ccpri")
    nvim.wait_for_ghost("nt(value)")


def test_it_can_be_switched_off_and_on(nvim: Nvim) -> None:
    nvim.start([PRINT, RENAME], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.api.command("Redraft disable")
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.wait_for_state("disabled")
    asked = nvim.status()["requests"]
    nvim.keys("<Tab>.pri")
    nvim.wait_for_text("pri .pri\n")
    time.sleep(0.1)  # longer than the pause before a question
    assert nvim.ghost() is None
    assert nvim.status()["requests"] == asked
    nvim.api.command("Redraft toggle")
    nvim.wait_for_state("ready")
    nvim.keys("<CR>pri")
    nvim.wait_for_ghost("nt(value)")


def test_leaving_neovim_ends_the_server(own_nvim: Nvim) -> None:
    nvim = own_nvim
    nvim.start([PRINT])
    nvim.open("a.py", "\n")
    server = _server(nvim)
    nvim.stop()
    ended = _ended(server)
    if not ended:
        os.kill(server, signal.SIGKILL)
    assert ended


def test_one_server_serves_all_projects(own_nvim: Nvim) -> None:
    nvim = own_nvim
    nvim.start([PRINT])
    for project in ("one", "two"):
        (nvim.work / project / ".git").mkdir(parents=True)
        nvim.open(f"{project}/a.py", "\n")
    nvim.open("single.py", "\n")
    folders = nvim.lua(
        "return vim.tbl_map(function(f) return vim.uri_to_fname(f.uri) end,"
        " vim.lsp.get_clients()[1].workspace_folders)"
    )
    assert folders == [str(nvim.work / "one"), str(nvim.work / "two")]
    assert len(nvim.lua(CLIENTS)) == 1
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    assert nvim.calls()[0]["path"] == (nvim.work / "single.py").as_posix()
    nvim.keys(f"<Esc>:edit {nvim.work}/two/a.py<CR>ipri")
    nvim.wait(lambda: len(nvim.calls()) == 2)
    assert nvim.calls()[1]["path"] == "a.py"  # named within its project


def test_checkhealth_tells_what_works(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    nvim.api.command("checkhealth redraft")
    report = nvim.text()
    for line in (
        r"OK Neovim \S+, ghost text is drawn by this plugin",
        r"OK server: redraft \d",
        r"OK client \d+ is attached to 1 buffer",
        r"OK the server offers inline completion",
        r"OK Redraft \S+, ready, model script",
    ):
        assert re.search(line, report), report
    assert "ERROR" not in report
    assert "WARNING" not in report


def test_the_help_page_has_tags_without_duplicates(nvim: Nvim) -> None:
    nvim.start([PRINT])
    shutil.copytree(PLUGIN / "doc", nvim.work / "doc")
    nvim.api.command(f"helptags {nvim.work}/doc")  # an error when a tag stands there twice
    tags = {line.split()[0] for line in (nvim.work / "doc" / "tags").read_text().splitlines()}
    assert {"redraft", "redraft.setup()", ":Redraft", "redraft-highlights"} <= tags


def test_the_documented_configuration_without_the_plugin_works(newest_nvim: Nvim) -> None:
    nvim = newest_nvim
    page = (ROOT / "docs" / "editors.md").read_text()
    block = re.search(r"## Neovim, without a plugin\n.*?```lua\n(.*?)```", page, re.DOTALL)
    assert block is not None
    local = "vim.lsp.config('redraft', { cmd = cmd, cmd_env = cmd_env, init_options = settings })"
    nvim.start([PRINT], init=f"{block[1]}\n{local}")
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<Tab>")
    nvim.wait_for_text("print(value)\n")
    nvim.wait(lambda: nvim.status()["outcomes"] == {"accepted": 1})
    nvim.keys("<Tab>")  # nothing to accept
    nvim.wait_for_text("print(value)    \n")

    nvim.keys("<CR>pri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("v")  # silence of the server takes the old text away
    nvim.wait(lambda: nvim.ghost() is None)


@pytest.mark.weights
def test_the_embedded_model_completes_what_is_typed_in_a_real_file(newest_nvim: Nvim) -> None:
    nvim = newest_nvim
    settings = {"gate": "eager", "deadlineMs": 20_000}
    nvim.start(None, setup=KEYMAPS, settings=settings)
    source = inspect.getsource(textwrap)
    accepted = 0
    cases = [case for case in CASES if case.mode == "fim" and case.cut]
    for number, case in enumerate(cases):
        assert source.count(case.before + case.typed + case.cut) == 1
        before, after = source.split(case.before + case.typed + case.cut)
        before += case.before
        nvim.open(f"textwrap{number}.py", before + after, attached=False)
        nvim.wait(nvim.attached)
        nvim.wait_for_state("ready", 60)
        asked = nvim.status()["requests"]
        nvim.place(before.count("\n"), len(before.rpartition("\n")[2]) - 1)
        nvim.keys(f"a{case.typed}")
        nvim.wait(lambda before=asked: nvim.ghost() or _answered(nvim, before), 60)
        if ghost := nvim.ghost():
            assert nvim.status()["lastPrediction"]["forwards"] >= 1
            assert nvim.text() == before + case.typed + after
            nvim.keys("<Tab>")
            nvim.wait_for_text(before + case.typed + ghost + after)
            accepted += 1
            nvim.wait(lambda: nvim.status()["outcomes"].get("accepted"))
        nvim.keys("<Esc>:write<CR>")
        nvim.wait(lambda: nvim.mode() == "n")
    assert accepted, nvim.status()


def _answered(nvim: Nvim, before: int) -> bool:
    """Whether there was a question after so many, and none is open or follows at once."""
    first = nvim.status()
    if first["requests"] <= before or first["pending"]:
        return False
    time.sleep(0.2)
    return nvim.status()["requests"] == first["requests"] and nvim.status()["pending"] == 0


def _server(nvim: Nvim) -> int:
    """The process id of the server, which is a child of Neovim's."""
    own = nvim.lua("return vim.fn.getpid()")
    found = nvim.wait(lambda: nvim.lua("return vim.api.nvim_get_proc_children(...)", own))
    assert len(found) == 1
    return int(found[0])


def _ended(process: int) -> bool:
    """Whether a process is gone, after some seconds at most."""
    ends = time.monotonic() + 10
    while time.monotonic() < ends:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_what_was_typed_before_the_server_was_there_is_answered(own_nvim: Nvim) -> None:
    """The server comes a second late, and hears of the file only when it has been changed."""
    slow = ["sh", "-c", 'sleep 1; exec "$@"', "sh", *COMMAND]
    own_nvim.start([RENAME_ONE], setup={"cmd": slow})
    own_nvim.open("a.py", "count = 0\nprint(count)\n", attached=False)
    own_nvim.keys("cwtotal<Esc>")
    assert not own_nvim.attached()
    own_nvim.wait(lambda: {row for _, row, *_ in own_nvim.drawn()} == {1})
