"""How long a key takes to become ghost text on the screen of Neovim, in a table.

Run `python tests/e2e/measure_nvim.py [KEYS]`. A Neovim with a screen of its own is fed keys through a terminal, a
server with a scripted predictor of a known delay answers, and the terminal's output is watched for
the text. What is left without the predictor's time is the editor's and the server's share. Not a
test: it asserts nothing.
"""

from __future__ import annotations

import json
import os
import pty
import select
import statistics
import sys
import tempfile
import termios
import time
from pathlib import Path

from nvim_editor import COMMAND, PLUGIN, ROOT, VERSIONS, find_nvim

WORD = "GHOST"
DELAYS_MS = (0, 100)


def configuration(folder: Path, ghost_text: object, delay_ms: int) -> Path:
    """An init.lua with the plugin, and a predictor that takes so long."""
    script = folder / "script.json"
    rules = [{"mode": "fim", "when": {"regex": "x$"}, "insert": WORD, "delay_ms": delay_ms}]
    script.write_text(json.dumps({"name": "measured", "rules": rules}))
    options = {
        "cmd": COMMAND,
        "ghost_text": ghost_text,
        "next_edit": False,
        "settings": {"model": f"scripted:{script}", "gitHistory": False, "watchFiles": "off"},
    }
    init = folder / "init.lua"
    init.write_text(
        f"vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})\n"
        f"vim.lsp.config('redraft', {{ cmd_env = {{ PYTHONPATH = {json.dumps(str(ROOT))} }} }})\n"
        f"require('redraft').setup(vim.json.decode([==[{json.dumps(options)}]==]))\n"
        "vim.o.swapfile = false\n"
    )
    return init


class Screen:
    """A Neovim in a terminal that is read byte by byte."""

    def __init__(self, nvim: str, init: Path, file: Path) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(nvim, [nvim, "-u", str(init), "-n", str(file)])
        termios.tcsetwinsize(self.fd, (30, 100))

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def until(self, wanted: bytes, timeout: float) -> float | None:
        """Seconds until something is drawn, None when it is not."""
        began, seen = time.perf_counter(), b""
        while (left := began + timeout - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                seen += os.read(self.fd, 65536)
                if wanted in seen:
                    return time.perf_counter() - began
        return None

    def settle(self, seconds: float) -> None:
        self.until(b"\0never\0", seconds)

    def close(self) -> None:
        self.type("\x1b\x1b:qall!\r")
        self.settle(0.5)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def measure(nvim: str, ghost_text: object, delay_ms: int, keys: int) -> list[float]:
    """Milliseconds from each key to its ghost text."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "a.py"
        file.write_text("value = 1\n" * 500)
        screen = Screen(nvim, configuration(folder, ghost_text, delay_ms), file)
        screen.settle(4)
        times = []
        for number in range(keys):
            screen.type("\x1bo" if number else "o")
            screen.settle(0.5)
            screen.type("x")
            if (took := screen.until(WORD.encode(), 3)) is not None:
                times.append(took * 1000)
            screen.settle(0.1)
        screen.close()
        return times


def main() -> None:
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    print("| Neovim | ghost text | predictor | p50 | p95 | editor and server, p50 | keys seen |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for version in VERSIONS:
        nvim, why = find_nvim(version)
        if nvim is None:
            print(why, file=sys.stderr)
            continue
        for ghost_text in (True, "native") if version == "0.12" else (True,):
            for delay_ms in DELAYS_MS:
                times = measure(nvim, ghost_text, delay_ms, keys)
                kind = "own" if ghost_text is True else "native"
                if len(times) < 2:
                    print(f"| {version} | {kind} | {delay_ms} ms | - | - | - | {len(times)} |")
                    continue
                p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
                print(
                    f"| {version} | {kind} | {delay_ms} ms | {p50:.0f} ms | {p95:.0f} ms"
                    f" | {p50 - delay_ms:.0f} ms | {len(times)}/{keys} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
