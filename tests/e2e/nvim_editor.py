"""A real Neovim for tests: the plugin of this repository, a server of this repository, and keys.

Responsible for finding Neovims, for running one without a screen and without the user's own files,
for making it fresh again for the next test, and for what a user sees: text, ghost text, next edits.
Knows nothing of single tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pynvim  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "editors" / "nvim"
COMMAND = [sys.executable, "-m", "lsp_server", "lsp"]
VERSIONS = {"0.12": ("REDRAFT_NVIM", ".nvim"), "0.11": ("REDRAFT_NVIM_0_11", ".nvim-0.11")}
"""Each version that is tested: the variable that names one, and where the installer puts it."""
GHOST = "redraft.ghost"
NATIVE_GHOST = "nvim.lsp.inline_completion"
NEXT_EDIT = "redraft.next_edit"
HINT = "redraft.hint"
_POLL_S = 0.01

FAKE_SERVER = """
fake = { asked = {}, told = {}, answers = {} }  -- method -> answer; without one `fake.asked` waits
local number = 0
local function fake_server(dispatchers)
  local closing = false
  return {
    request = function(method, params, callback)
      number = number + 1
      if method == 'initialize' then
        callback(nil, { capabilities = {
          positionEncoding = 'utf-16',
          textDocumentSync = 2,
          inlineCompletionProvider = vim.empty_dict(),
          executeCommandProvider = { commands = { 'redraft.accept', 'redraft.reject' } },
        } })
      elseif fake.answers[method] then
        callback(nil, fake.answers[method])
      elseif method:find('Completion') or method:find('nextEdit') then
        table.insert(fake.asked, { method = method, params = params, answer = callback })
      else
        callback(nil, vim.NIL)
      end
      return true, number
    end,
    notify = function(method, params)
      table.insert(fake.told, { method = method, params = params })
      if method == 'exit' then
        closing = true
        dispatchers.on_exit(0, 15)
      end
      return true
    end,
    is_closing = function() return closing end,
    terminate = function() closing = true end,
  }
end
vim.lsp.config('redraft', { cmd = fake_server })
"""

Mark = tuple[str, int, int, Any]
"""Something drawn: its kind, row, column and what is shown."""


@cache
def find_nvim(version: str) -> tuple[str | None, str]:
    """The Neovim of one version to test with, or None and why there is none."""
    variable, folder = VERSIONS[version]
    named = os.environ.get(variable)
    candidates = [named] if named else [str(ROOT / folder / "nvim"), shutil.which("nvim") or ""]
    for path in filter(os.path.isfile, candidates):
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        found = re.match(r"NVIM v(\d+)\.(\d+)", told.stdout)
        if found and _fits(version, (int(found[1]), int(found[2]))):
            return path, ""
    return None, (
        f"no Neovim {version}: set {variable}, or run tests/e2e/install_nvim.sh "
        f"(looked at: {', '.join(filter(None, candidates)) or 'PATH'})"
    )


def _fits(version: str, found: tuple[int, int]) -> bool:
    """Whether a Neovim is of this version; newer ones count as the newest that is tested."""
    wanted = tuple(int(number) for number in version.split("."))
    newest = version == next(iter(VERSIONS))
    return found == wanted or (newest and found > wanted)


class Nvim:
    """One Neovim with one server. `start` makes it fresh, whatever was done with it before."""

    def __init__(self, path: str, home: Path) -> None:
        self._path = path
        self._home = home
        self.api: pynvim.Nvim
        self.running = False
        self._counted: dict[str, Any] = {}
        self._scripts = 0
        self.folder = home

    def use(self, folder: Path) -> Nvim:
        """Keep the files of the next test in this folder."""
        self.folder = folder
        self.work.mkdir()
        return self

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def _model(self) -> str:
        return f"script {self._scripts}"

    @property
    def trace(self) -> Path:
        return self.folder / "trace.jsonl"

    def start(
        self,
        rules: Sequence[Mapping[str, Any]] | None = (),
        *,
        setup: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        init: str | None = None,
        ahead: bool = False,
    ) -> Nvim:
        """Start Neovim; the server starts with the first file. `rules` None: the embedded model.

        `ahead` lets the server ask its script before it is asked.
        `setup` goes to the plugin's setup(), `config` (of a new one) to vim.lsp.config(); with
        `init`, a Lua text, the plugin's folder is not on
        the runtime path, and that is all the configuration there is.
        """
        base = {"gitHistory": False, "watchFiles": "off", **(settings or {})}
        if rules is not None:
            self._scripts += 1
            script = self.folder / f"script{self._scripts}.json"
            trace = {"name": self._model, "trace": str(self.trace), "rules": list(rules)}
            script.write_text(json.dumps(trace | {"ahead": ahead}))
            base["model"] = f"scripted:{script}"
        options = {"cmd": COMMAND, "next_edit_delay": 10, **(setup or {})}
        if self.running:
            self._refresh(base, options)
            return self
        self._launch()
        env = {"PYTHONPATH": str(ROOT)}
        if init is not None:
            prelude = "local cmd, cmd_env, settings = ...\n"
            self.lua(prelude + init, COMMAND, env, base)
            return self
        self.api.command(f"set runtimepath^={PLUGIN}")
        self.api.command("runtime plugin/redraft.lua")
        self.lua("vim.lsp.config('redraft', ...)", {"cmd_env": env, **(config or {})})
        self.lua("require('redraft').setup(...)", {"settings": base, **options})
        return self

    def start_faked(self, setup: Mapping[str, Any]) -> Nvim:
        """Start Neovim with a server that answers what the test puts into the Lua table `fake`."""
        self._launch()
        self.api.command(f"set runtimepath^={PLUGIN}")
        self.api.command("runtime plugin/redraft.lua")
        self.lua(FAKE_SERVER)
        self.lua("require('redraft').setup(...)", {"next_edit_delay": 10, **setup})
        return self

    def _launch(self) -> None:
        places = [
            f"XDG_{name}_HOME={self._home / name.lower()}"
            for name in ("CONFIG", "DATA", "STATE", "CACHE")
        ]
        no_provider = "let g:loaded_python3_provider = 0"  # looking for one takes a second
        flags = ["--embed", "--headless", "--clean", "-n", "--cmd", no_provider]
        argv = ["env", "-C", str(self.work), *places, self._path, *flags]
        self.api = pynvim.attach("child", argv=argv)
        self.running = True
        self.api.options["columns"], self.api.options["lines"] = 100, 30

    def _refresh(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Forget the last test: no files, no messages, other settings, counters from here."""
        self.keys("<C-\\><C-N>")
        self.lua(
            "local settings, options, work = ...\n"
            "vim.cmd('silent! tabonly | silent! only | silent! %bwipeout! | messages clear')\n"
            "vim.cmd.cd(work)\n"
            "require('redraft.config').switch(true)\n"
            "require('redraft').setup(options)\n"
            "local client = vim.lsp.get_clients({ name = 'redraft' })[1]\n"
            "if client then\n"
            "  client.settings = { redraft = settings }\n"
            "  client:notify('workspace/didChangeConfiguration', { settings = client.settings })\n"
            "end",
            settings,
            options,
            str(self.work),
        )
        self._counted = {}
        self.wait(lambda: (s := self.status())["model"] == self._model and s["state"] == "ready")
        self._counted = self.status()

    def stop(self) -> None:
        """Leave Neovim, which leaves the server."""
        if not self.running:
            return
        self.running = False
        with contextlib.suppress(EOFError, OSError):
            self.api.command("qall!", async_=True)
        with contextlib.suppress(EOFError, OSError):
            self.api.close()

    def lua(self, code: str, *args: Any) -> Any:
        return self.api.exec_lua(code, *args)

    def open(self, name: str, text: str, *, attached: bool = True) -> None:
        """Edit a new file, and wait until the server is attached and its model loaded."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.api.command(f"edit {path}")
        if attached:
            self.wait(self.attached)
            self.wait_for_state("ready")

    def attached(self) -> bool:
        return bool(
            self.lua(
                "local c = vim.lsp.get_clients({ bufnr = 0, name = 'redraft' })[1]\n"
                "return c ~= nil and c.initialized"
            )
        )

    def keys(self, keys: str) -> None:
        """Type, as fast as Neovim takes it. `<Esc>` and the like are keys."""
        assert self.api.input(keys) == len(keys.encode())

    def place(self, line: int, column: int) -> None:
        """Put the cursor on a line and column, both counted from 0."""
        self.api.current.window.cursor = (line + 1, column)

    def text(self) -> str:
        return "\n".join(self.api.current.buffer[:]) + "\n"

    def cursor(self) -> tuple[int, int]:
        line, column = self.api.current.window.cursor
        return line - 1, column

    def mode(self) -> str:
        return str(self.api.api.get_mode()["mode"])

    def marks(self, namespace: str) -> list[tuple[int, int, dict[str, Any]]]:
        """Row, column and details of each extmark."""
        number = self.api.api.create_namespace(namespace)
        buffer = self.api.current.buffer
        found = self.api.api.buf_get_extmarks(buffer, number, 0, -1, {"details": True})
        return [(row, column, details) for _, row, column, details in found]

    def ghost(self) -> str | None:
        """The ghost text that stands in the buffer, lines joined."""
        marks = [details for space in (GHOST, NATIVE_GHOST) for _, _, details in self.marks(space)]
        texts = [details for details in marks if "virt_text" in details]
        if not texts:
            return None
        (details,) = texts
        return "\n".join(
            [chunks(details["virt_text"]), *map(chunks, details.get("virt_lines", []))]
        )

    def hint(self) -> str | None:
        """What stands at the cursor about a next edit that is out of sight."""
        marks = self.marks(HINT)
        return chunks(marks[0][2]["virt_text"]) if marks else None

    def drawn(self) -> list[Mark]:
        """How the next edit is drawn."""
        result: list[Mark] = []
        for row, column, details in self.marks(NEXT_EDIT):
            if "hl_group" in details and "end_row" in details:
                kind = details["hl_group"]
                what: Any = (details["end_row"], details["end_col"])
            elif "virt_lines" in details:
                kind, what = "lines", [chunks(line) for line in details["virt_lines"]]
            else:
                kind, what = details["virt_text_pos"], chunks(details["virt_text"])
            result.append((kind, row, column, what))
        return result

    def status(self) -> dict[str, Any]:
        """What the server says of itself, its counters since `start`; empty while there is none."""
        answer = self.lua(
            "local c = vim.lsp.get_clients({ name = 'redraft' })[1]\n"
            "local answer = c and c:request_sync('redraft/status', vim.empty_dict(), 2000)\n"
            "return answer and answer.result"
        )
        return _since(answer or {}, self._counted)

    def messages(self) -> str:
        return str(self.api.command_output("messages"))

    def wait(self, holds: Callable[[], Any], timeout: float = 15) -> Any:
        """Until `holds` returns something true, which is returned."""
        ends = time.monotonic() + timeout
        while not (value := holds()):
            if time.monotonic() > ends:
                raise TimeoutError(
                    f"{self.text()=} {self.ghost()=} {self.drawn()=} {self.status()=}"
                )
            time.sleep(_POLL_S)
        return value

    def wait_for_state(self, state: str, timeout: float = 15) -> None:
        self.wait(lambda: self.status().get("state") == state, timeout)

    def wait_for_ghost(self, text: str) -> None:
        self.wait(lambda: self.ghost() == text)

    def wait_for_requests(self, count: int, timeout: float = 15) -> None:
        """Until the server has been asked so often."""
        self.wait(lambda: self.status().get("requests") == count, timeout)

    def wait_for_drawn(self, marks: Sequence[Mark]) -> None:
        self.wait(lambda: sorted(self.drawn()) == sorted(marks))

    def wait_for_text(self, text: str) -> None:
        self.wait(lambda: self.text() == text)

    def calls(self, event: str = "start") -> list[dict[str, Any]]:
        """What the scripted predictor noted: start, end, cancelled or expired."""
        if not self.trace.exists():
            return []
        notes = [json.loads(line) for line in self.trace.read_text().splitlines()]
        return [note for note in notes if note["event"] == event]


def _since(now: dict[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """A status with the counters of an earlier one taken off."""
    result = dict(now)
    for key in ("requests", "predictions", "superseded"):
        if key in then:
            result[key] = now[key] - then[key]
    for key in ("counts", "outcomes"):
        if key in then:
            left = {name: count - then[key].get(name, 0) for name, count in now[key].items()}
            result[key] = {name: count for name, count in left.items() if count}
    return result


def chunks(virtual: Sequence[Sequence[Any]]) -> str:
    return "".join(chunk[0] for chunk in virtual)
