"""How long a key takes to become ghost text on the screen of Neovim, in a table.

Run `python -m tests.e2e.measure_nvim [--keys N] [--embedded]`. A Neovim with a screen of its own is fed keys through
a terminal, the real server answers, and the terminal's output is watched for the colour of ghost text. The predictor
is scripted, of a known delay, or with `--embedded` the model that a user has: at the end of unfinished lines of a real
file one key is typed, once what was asked before it is answered. What is left without the predictor's own time is the
editor's and the server's share. Not a test: it asserts nothing.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import os
import pty
import random
import re
import select
import statistics
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvim  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).parent))
from nvim_editor import COMMAND, PLUGIN, ROOT, VERSIONS, find_nvim

DELAYS_MS = (0, 100)
LINES = 500
PATIENCE_S = 3.0
SETTLED_S = 0.3
GHOST_COLOUR = 0x010203
GHOST_ON_SCREEN = b"38;2;1;2;3"
SCRIPTED_LINE = ("value = ", "x")


@dataclass(frozen=True, slots=True)
class Place:
    """A file whose line `row` is unfinished, and the key that goes on with it."""

    file: Path
    row: int
    key: str


@dataclass(frozen=True, slots=True)
class Key:
    """Milliseconds from a key to its ghost text, and those of them that the predictor took."""

    seen_ms: float
    predictor_ms: float


def scripted_places(folder: Path, count: int) -> list[Place]:
    start, key = SCRIPTED_LINE
    file = folder / "scripted.py"
    file.write_text(f"{start}\n" * LINES)
    return [Place(file, row, key) for row in range(1, count + 1)]


def real_places(folder: Path, count: int) -> list[Place]:
    """Lines of a module of Python's own, each broken off in a copy of its own, before a letter or digit."""
    lines = inspect.getsource(argparse).splitlines()[LINES : 2 * LINES]
    drawn = random.Random(0)
    begun = [row for row, line in enumerate(lines) if re.match(r"\s+[a-z].{20}", line)]
    places = []
    for number, row in enumerate(drawn.sample(begun, count)):
        columns = [
            m.start() for m in re.finditer(r"\w", lines[row]) if m.start() > len(lines[row]) // 2
        ]
        column = drawn.choice(columns or [len(lines[row]) - 1])
        file = folder / f"real{number:02}.py"
        file.write_text("\n".join([*lines[:row], lines[row][:column], *lines[row + 1 :]]) + "\n")
        places.append(Place(file, row + 1, lines[row][column]))
    return places


def configuration(folder: Path, ghost_text: object, settings: dict[str, Any]) -> Path:
    """An init.lua with the plugin, and ghost text in a colour that nothing else has."""
    options = {
        "cmd": COMMAND,
        "ghost_text": ghost_text,
        "next_edit": False,
        "settings": {"gitHistory": False, "watchFiles": "off", **settings},
    }
    init = folder / "init.lua"
    init.write_text(
        f"vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})\n"
        f"vim.lsp.config('redraft', {{ cmd_env = {{ PYTHONPATH = {json.dumps(str(ROOT))} }} }})\n"
        "vim.o.swapfile, vim.o.termguicolors = false, true\n"
        "for _, name in ipairs({ 'RedraftGhost', 'ComplHint' }) do\n"
        f"  vim.api.nvim_set_hl(0, name, {{ fg = {GHOST_COLOUR} }})\n"
        "end\n"
        f"require('redraft').setup(vim.json.decode([==[{json.dumps(options)}]==]))\n"
        "vim.api.nvim_create_autocmd('User', { pattern = 'RedraftShow', callback = function(event)\n"
        "  shown_id = event.data.id\n"
        "end })\n"
    )
    return init


class Screen:
    """A Neovim in a terminal that is read byte by byte, and beside it a channel that asks the server."""

    def __init__(self, nvim: str, init: Path, file: Path) -> None:
        socket = init.with_name("nvim.sock")
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(nvim, [nvim, "-u", str(init), "--listen", str(socket), "-n", str(file)])
        termios.tcsetwinsize(self.fd, (30, 100))
        self.until(b"\0never\0", 1)
        self.api = pynvim.attach("socket", path=str(socket))

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def until(self, wanted: bytes, timeout: float) -> float | None:
        """Seconds until something is drawn, None when it is not."""
        began, seen = time.perf_counter(), b""
        while (left := began + timeout - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                seen = seen[-len(wanted) :] + os.read(self.fd, 65536)
                if wanted in seen:
                    return time.perf_counter() - began
        return None

    def settle(self) -> None:
        """Read on until the server has nothing to do, and a moment more."""
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            self.until(b"\0never\0", SETTLED_S)
            status = self.status()
            if status.get("state") == "ready" and not status["pending"]:
                return
        raise TimeoutError(f"the server does not come to rest: {status}")

    def forget(self) -> None:
        """Take away what is shown, here and at the server, so that the next key is a question of its own."""
        self.api.exec_lua(
            "require('redraft.ghost').clear()\n"
            "local c = vim.lsp.get_clients({ name = 'redraft' })[1]\n"
            "local command = { command = 'redraft.ignore', arguments = { shown_id } }\n"
            "if shown_id then c:request_sync('workspace/executeCommand', command, 5000) end\n"
            "shown_id = nil"
        )
        self.until(b"\0never\0", SETTLED_S)

    def status(self) -> dict[str, Any]:
        code = (
            "local c = vim.lsp.get_clients({ name = 'redraft' })[1]\n"
            "local answer = c and c:request_sync('redraft/status', vim.empty_dict(), 5000)\n"
            "return answer and answer.result or vim.empty_dict()"
        )
        return dict(self.api.exec_lua(code))

    def close(self) -> None:
        self.type("\x1b\x1b:qall!\r")
        self.until(b"\0never\0", 0.5)
        self.api.close()
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@contextmanager
def screen(nvim: str, init: Path, file: Path) -> Iterator[Screen]:
    opened = Screen(nvim, init, file)
    try:
        yield opened
    finally:
        opened.close()


def measure(at: Screen, places: list[Place]) -> list[Key]:
    """The keys that became ghost text."""
    keys = []
    for place in places:
        at.type(f"\x1b:edit! {place.file} | {place.row}\rA")
        at.settle()
        at.forget()
        at.type(place.key)
        seen_s = at.until(GHOST_ON_SCREEN, PATIENCE_S)
        at.settle()
        if seen_s is not None:
            keys.append(Key(seen_s * 1000, at.status()["lastLatencyMs"]))
    return keys


def row(label: str, keys: list[Key], asked: int) -> str:
    def pair(values: list[float]) -> str:
        if len(values) < 2:
            return "- | -"
        return (
            f"{statistics.median(values):.0f} ms | {statistics.quantiles(values, n=20)[-1]:.0f} ms"
        )

    shares = [key.seen_ms - key.predictor_ms for key in keys]
    return f"| {label} | {pair([key.seen_ms for key in keys])} | {pair(shares)} | {len(keys)} of {asked} |"


def settings_for(folder: Path, delay_ms: int | None) -> dict[str, Any]:
    """The server's settings: a script that takes so long; or the embedded model, eager, so that more is seen."""
    if delay_ms is None:
        return {"gate": "eager", "feedback": {"enable": False}}
    script = folder / "script.json"
    rules = [{"mode": "fim", "when": {"regex": "x$"}, "insert": "GHOST", "delay_ms": delay_ms}]
    script.write_text(json.dumps({"name": "measured", "rules": rules}))
    return {"model": f"scripted:{script}"}


def lines(version: str, nvim: str, count: int, *, embedded: bool) -> Iterator[str]:
    """The table's lines for one Neovim. Neovim's own ghost text is not measured with the model."""
    drawers: dict[str, object] = {"own": True}
    if version == "0.12" and not embedded:
        drawers["native"] = "native"
    delays = (None,) if embedded else DELAYS_MS
    for (drawer, ghost_text), delay_ms in itertools.product(drawers.items(), delays):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            places = (real_places if embedded else scripted_places)(folder, count)
            init = configuration(folder, ghost_text, settings_for(folder, delay_ms))
            with screen(nvim, init, places[0].file) as at:
                keys = measure(at, places)
        predictor = "embedded" if delay_ms is None else f"{delay_ms} ms"
        yield row(f"{version} | {drawer} | {predictor}", keys, len(places))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--embedded", action="store_true", help="the model that users have")
    parser.add_argument("--versions", nargs="+", default=list(VERSIONS), choices=list(VERSIONS))
    options = parser.parse_args()
    print(
        "| Neovim | ghost text | predictor | p50 | p95 | without predictor, p50 | p95 | keys seen |"
    )
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |")
    for version in options.versions:
        nvim, why = find_nvim(version)
        if nvim is None:
            print(why, file=sys.stderr)
            continue
        for line in lines(version, nvim, options.keys, embedded=options.embedded):
            print(line, flush=True)


if __name__ == "__main__":
    main()
