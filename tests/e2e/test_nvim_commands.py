"""The Neovim plugin's commands, options, health check and help page."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import Any

import pynvim  # type: ignore[import-untyped]
import pytest
from nvim_editor import PLUGIN, ROOT, Nvim
from nvim_rules import KEYMAPS, KEYS, PRINT

pytestmark = pytest.mark.e2e


def test_another_model_is_used_and_named(nvim: Nvim) -> None:
    nvim.start([PRINT], setup=KEYMAPS)
    nvim.open("a.py", "\n")
    other = nvim.folder / "other.json"
    other.write_text('{"name": "the other", "rules": [{"insert": "other"}]}')
    nvim.api.command(f"Redraft model scripted:{other}")
    nvim.wait(lambda: nvim.status()["model"] == "the other")
    nvim.api.command("Redraft model")
    nvim.wait(lambda: "model the other on none, ready" in nvim.messages())
    nvim.keys("ix")
    nvim.wait_for_ghost("other")
    assert nvim.lua("return vim.fn.getcompletion('Redraft model emb', 'cmdline')") == ["embedded"]


def _tune(nvim: Nvim, code: int) -> None:
    """Run `:Redraft tune --fast` with a stand-in for the command, which ends with a code."""
    command = nvim.folder / "redraft"
    command.write_text(f'#!/bin/sh\necho "ran $*"; echo "trouble" >&2; exit {code}\n')
    command.chmod(0o755)
    nvim.lua("vim.lsp.config('redraft', { cmd = ... })", [str(command), "lsp", "--stdio"])
    nvim.api.command("Redraft tune --fast")


@pytest.mark.parametrize(
    ("code", "said"),
    [(0, "tuned; `:Redraft restart` uses what was learned"), (3, "ended with code 3")],
)
def test_tune_shows_what_the_command_says(faked_nvim: Nvim, code: int, said: str) -> None:
    nvim = faked_nvim.start_faked({})
    _tune(nvim, code)
    nvim.wait(lambda: "ran tune --fast\ntrouble" in nvim.text())
    assert nvim.lua("return vim.bo.buftype") == "terminal"
    nvim.wait(lambda: said in nvim.messages())


def test_the_log_is_opened(nvim: Nvim) -> None:
    nvim.start([])
    nvim.api.command("Redraft log")
    assert nvim.lua("return vim.fn.expand('%:t')") == "lsp.log"
    with pytest.raises(pynvim.NvimError, match="no such command: nonsense"):
        nvim.api.command("Redraft nonsense")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ghost": True}, "`ghost` is not an option"),
        ({"next_edit_delay": "soon"}, '`next_edit_delay` must be a number, not "soon"'),
        ({"ghost_text": "inline"}, '`ghost_text` must be one of true, false, "native"'),
        ({"keymaps": {"akzept": "<Tab>"}}, "`keymaps.akzept` is not one of accept, accept_word"),
    ],
)
def test_wrong_options_are_named(nvim: Nvim, options: dict[str, Any], said: str) -> None:
    nvim.start([])
    ok, problem = nvim.lua("return { pcall(require('redraft').setup, ...) }", options)
    assert not ok
    assert said in problem


def test_ghost_text_drawn_by_neovim_itself(newest_nvim: Nvim) -> None:
    nvim = newest_nvim.start([PRINT], setup={**KEYMAPS, "ghost_text": "native"})
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    assert nvim.marks("redraft.ghost") == []
    nvim.keys("nt<Tab>")  # faster than Neovim asks again
    nvim.wait_for_text("print(value)\n")
    nvim.keys("<CR>pri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("v")
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.keys("<C-u>pri")
    nvim.wait_for_ghost("nt(value)")
    nvim.keys("<C-e>")
    nvim.wait(lambda: nvim.ghost() is None)
    nvim.wait(lambda: nvim.status()["outcomes"].get("rejected") == 1)


def test_neovims_own_ghost_text_of_other_servers_is_left_alone(newest_nvim: Nvim) -> None:
    nvim = newest_nvim.start([PRINT], setup=KEYMAPS)
    nvim.lua("vim.lsp.inline_completion.enable()")
    nvim.open("a.py", "\n")
    nvim.keys("ipri")
    nvim.wait_for_ghost("nt(value)")
    asked = nvim.status()["requests"]
    time.sleep(0.3)  # longer than Neovim's pause
    assert nvim.marks("nvim.lsp.inline_completion") == []
    assert nvim.status()["requests"] == asked
    assert nvim.lua("return vim.lsp.inline_completion.is_enabled()")


def test_checkhealth_names_a_command_that_is_not_there(faked_nvim: Nvim) -> None:
    nvim = faked_nvim.start_faked({"ghost_text": "native"})
    nvim.lua("vim.lsp.config('redraft', { cmd = { '/no/such/redraft', 'lsp' } })")
    nvim.api.command("checkhealth redraft")
    report = nvim.text()
    assert "ERROR server: `/no/such/redraft` can not be run" in report
    assert "no key accepts" in report
    old = nvim.lua("return vim.lsp.inline_completion == nil")
    assert ("`ghost_text = 'native'` counts as true" in report) == old


def _help() -> str:
    return (PLUGIN / "doc" / "redraft.txt").read_text(encoding="utf-8")


def test_every_link_of_the_help_page_leads_somewhere(newest_nvim: Nvim) -> None:
    nvim = newest_nvim.start_faked({})
    shutil.copytree(PLUGIN / "doc", nvim.work / "doc")
    nvim.api.command(f"helptags {nvim.work}/doc")  # an error when a tag stands there twice
    tags = {line.split("\t")[0] for line in (nvim.work / "doc" / "tags").read_text().splitlines()}
    known = Path(nvim.lua("return vim.env.VIMRUNTIME")) / "doc" / "tags"
    if known.exists():
        tags |= {line.split("\t")[0] for line in known.read_text(encoding="utf-8").splitlines()}
    prose = re.sub(r"(?ms)>(?:lua|vim)$.*?^<", "", _help())
    links = set(re.findall(r"\|(\S+?)\|", prose))
    assert len(links) > 5
    missing = links - tags
    assert not missing or not known.exists(), missing
    assert not any(len(line) > 80 for line in _help().splitlines())


def test_the_help_page_names_every_option_command_function_and_event(nvim: Nvim) -> None:
    nvim.start([])
    text = _help()
    options = nvim.lua("return vim.tbl_keys(require('redraft.config').options)")
    commands = nvim.lua("return vim.fn.getcompletion('Redraft ', 'cmdline')")
    functions = nvim.lua(
        "return vim.tbl_filter(function(n) return type(require('redraft')[n]) == 'function' end,"
        " vim.tbl_keys(require('redraft')))"
    )
    groups = nvim.lua("return vim.fn.getcompletion('Redraft', 'highlight')")
    assert {"RedraftAdd", "RedraftDelete", "RedraftGhost", "RedraftHint"} == set(groups)
    words = [f":Redraft {name}" for name in commands] + [f"redraft.{n}(" for n in functions]
    for name in [
        *options,
        *words,
        *groups,
        *KEYS,
        "RedraftShow",
        "RedraftAccept",
        "RedraftDismiss",
    ]:
        assert name in text, name


def test_every_complaint_that_concerns_a_client_has_a_test() -> None:
    tests = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    defined = set(re.findall(r"(?m)^ *(?:async )?def (test_\w+)", "\n".join(tests.values())))
    page = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (\d+) [^|]*\| ([^|]*) \|$", page)
    named = {int(number): re.findall(r"`(test_\w+)`", names) for number, names in rows}
    for names in named.values():
        assert set(names) <= defined, names
    own = {int(n) for name in defined for n in re.findall(r"^test_complaint_(\d+)_", name)}
    wanted = {*range(1, 25), *range(26, 30), 41, *range(45, 50)}
    assert wanted <= own | named.keys()
