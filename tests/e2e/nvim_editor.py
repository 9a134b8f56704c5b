"""A real Neovim for tests: the plugin of this repository, a server of this repository, and keys.

Responsible for finding Neovim, for running it without a screen and without the user's own files,
and for what a user sees: text, ghost text, next edits. Knows nothing of single tests.
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
OLDEST = (0, 12)
GHOST = "nvim.lsp.inline_completion"
NEXT_EDIT = "redraft.next_edit"
_POLL_S = 0.02

Mark = tuple[str, int, int, Any]
"""Something drawn: its kind, row, column and what is shown."""


@cache
def find_nvim() -> tuple[str | None, str]:
    """The Neovim to test with, or None and why there is none."""
    named = os.environ.get("REDRAFT_NVIM")
    candidates = [named] if named else [str(ROOT / ".nvim" / "nvim"), shutil.which("nvim") or ""]
    for path in filter(os.path.isfile, candidates):
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        version = re.match(r"NVIM v(\d+)\.(\d+)", told.stdout)
        if version and (int(version[1]), int(version[2])) >= OLDEST:
            return path, ""
    return None, (
        "no Neovim 0.12 or newer: set REDRAFT_NVIM, or run tests/e2e/install_nvim.sh "
        f"(looked at: {', '.join(filter(None, candidates)) or 'PATH'})"
    )


class Nvim:
    """One Neovim with one server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.trace = folder / "trace.jsonl"
        self.api: pynvim.Nvim
        self.running = False

    def start(
        self,
        rules: Sequence[Mapping[str, Any]] | None = (),
        *,
        setup: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        init: str | None = None,
    ) -> Nvim:
        """Start Neovim; the server starts with the first file. `rules` None: the embedded model.

        `setup` goes to the plugin's setup(); with `init`, a Lua text, the plugin's folder is not on
        the runtime path, and that is all the configuration there is.
        """
        env = {"PYTHONPATH": str(ROOT), "REDRAFT_SCRIPT": ""}
        if rules is not None:
            script = self.folder / "script.json"
            script.write_text(json.dumps({"trace": str(self.trace), "rules": list(rules)}))
            env["REDRAFT_SCRIPT"] = str(script)
        path, why = find_nvim()
        assert path is not None, why
        places = [
            f"XDG_{name}_HOME={self.folder / name.lower()}"
            for name in ("CONFIG", "DATA", "STATE", "CACHE")
        ]
        argv = [
            "env",
            "-C",
            str(self.work),
            *places,
            path,
            "--embed",
            "--headless",
            "--clean",
            "-n",
        ]
        self.api = pynvim.attach("child", argv=argv)
        self.running = True
        self.api.options["columns"], self.api.options["lines"] = 100, 30
        base = {"gitHistory": False, "watchFiles": "off", **(settings or {})}
        if init is not None:
            prelude = "local cmd, cmd_env, settings = ...\n"
            self.lua(prelude + init, COMMAND, env, base)
            return self
        self.api.command(f"set runtimepath^={PLUGIN}")
        self.api.command("runtime plugin/redraft.lua")
        self.lua("vim.lsp.config('redraft', { cmd_env = ... })", env)
        options = {"cmd": COMMAND, "settings": base, "next_edit_delay": 10, **(setup or {})}
        self.lua("require('redraft').setup(...)", options)
        return self

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
        marks = self.marks(GHOST)
        if not marks:
            return None
        assert len(marks) == 1
        details = marks[0][2]
        return "\n".join(
            [chunks(details["virt_text"]), *map(chunks, details.get("virt_lines", []))]
        )

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
        """What the server says of itself; empty while there is none."""
        answer = self.lua(
            "local c = vim.lsp.get_clients({ name = 'redraft' })[1]\n"
            "local answer = c and c:request_sync('redraft/status', vim.empty_dict(), 2000)\n"
            "return answer and answer.result"
        )
        return answer or {}

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


def chunks(virtual: Sequence[Sequence[Any]]) -> str:
    return "".join(chunk[0] for chunk in virtual)
