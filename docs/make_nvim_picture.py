"""Draw a next edit in Neovim as an SVG picture: `python docs/make_nvim_picture.py docs/nvim.svg`.

Runs Neovim 0.12 in tmux with the plugin and the embedded model, renames a variable, waits for the next
edit, and draws the screen as tmux has it. Knows nothing of how it comes about.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
NVIM = os.environ.get("REDRAFT_NVIM", str(ROOT / ".nvim" / "nvim"))
COLUMNS, ROWS = 76, 12
SIZE, LINE, PAD = 14, 19, 14
ADVANCE = SIZE * 0.602
FOREGROUND, BACKGROUND = "#e0e2ea", "#14161b"

TEXT = """\
def total(prices, rate):
    subtotal = sum(prices)
    tax = subtotal * rate
    return subtotal + tax
"""
KEYS = ["/subtotal", "Enter", "cwnet", "Escape"]

CONFIGURATION = """
vim.opt.runtimepath:prepend({plugin})
vim.lsp.config('redraft', {{ cmd_env = {{ PYTHONPATH = {root} }} }})
require('redraft').setup({{
  cmd = {{ {python}, '-m', 'lsp_server', 'lsp' }},
  settings = {{ gate = 'eager', deadlineMs = 20000, gitHistory = false }},
  keymaps = {{ accept = '<Tab>' }},
}})
vim.o.termguicolors, vim.o.swapfile, vim.o.hlsearch, vim.o.ruler = true, false, false, false
vim.o.statusline = " %f %= %{{v:lua.require'redraft.status'.line()}} "
vim.o.shortmess = vim.o.shortmess .. 'S'
vim.api.nvim_create_autocmd('User', {{ pattern = 'RedraftShow', callback = function()
  vim.fn.writefile({{}}, {shown})
end }})
"""


@dataclass(frozen=True)
class Style:
    """How a character looks; colours as in SVG, empty for the default."""

    ink: str = ""
    paper: str = ""
    bold: bool = False
    struck: bool = False
    reverse: bool = False


def tmux(*arguments: str) -> str:
    command = ["tmux", "-L", f"redraft-{os.getpid()}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wait(what: str, path: Path, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > ends:
            sys.exit(f"{what} did not happen:\n{tmux('capture-pane', '-p')}")
        time.sleep(0.1)


def screen() -> str:
    """The screen with a next edit, with its escape codes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, init, shown = folder / "total.py", folder / "init.lua", folder / "shown"
        file.write_text(TEXT)
        names = {
            "plugin": ROOT / "editors/nvim",
            "root": ROOT,
            "python": sys.executable,
            "shown": shown,
        }
        init.write_text(CONFIGURATION.format(**{k: json.dumps(str(v)) for k, v in names.items()}))
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        command = f"cd {folder} && exec env COLORTERM=truecolor {NVIM} -u {init} total.py"
        tmux("new-session", "-d", *size, command)
        try:
            time.sleep(30)  # the model is loaded
            for keys in KEYS:
                tmux("send-keys", keys)
                time.sleep(0.3)
            wait("the next edit", shown, 60)
            time.sleep(0.5)
            return tmux("capture-pane", "-e", "-p")
        finally:
            tmux("kill-server")


def colour(codes: list[str]) -> str:
    """What `38;2;r;g;b` and `38;5;n` mean; the codes that were read are taken off."""
    if codes.pop(0) == "2":
        return "#" + "".join(f"{int(codes.pop(0)):02x}" for _ in range(3))
    number = int(codes.pop(0))
    return f"#{number:02x}{number:02x}{number:02x}" if number >= 16 else FOREGROUND


def restyle(style: Style, codes: list[str]) -> Style:
    while codes:
        code = codes.pop(0) or "0"
        if code == "0":
            style = Style()
        elif code in ("1", "22"):
            style = replace(style, bold=code == "1")
        elif code in ("9", "29"):
            style = replace(style, struck=code == "9")
        elif code in ("7", "27"):
            style = replace(style, reverse=code == "7")
        elif code == "38":
            style = replace(style, ink=colour(codes))
        elif code == "48":
            style = replace(style, paper=colour(codes))
        elif code == "39":
            style = replace(style, ink="")
        elif code == "49":
            style = replace(style, paper="")
    return style


def draw(text: str) -> str:
    boxes, words, style = [], [], Style()
    for row, line in enumerate(text.rstrip("\n").split("\n")):
        x, y = PAD, PAD + row * LINE
        for part in re.split(r"(\x1b\[[0-9;]*m)", line):
            if part.startswith("\x1b"):
                style = restyle(style, part[2:-1].split(";"))
                continue
            width = len(part) * ADVANCE
            ink, paper = style.ink or FOREGROUND, style.paper or BACKGROUND
            if style.reverse:
                ink, paper = paper, ink
            if part and paper != BACKGROUND:
                boxes.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LINE}" fill="{paper}"/>'
                )
            if part.strip():
                look = ' font-weight="bold"' if style.bold else ""
                look += ' text-decoration="line-through"' if style.struck else ""
                words.append(
                    f'<text x="{x:.1f}" y="{y + LINE - 5}" fill="{ink}"{look} textLength="{width:.1f}"'
                    f' xml:space="preserve">{html.escape(part)}</text>'
                )
            x += width
    width, height = round(COLUMNS * ADVANCE) + 2 * PAD, ROWS * LINE + 2 * PAD
    content = "\n".join([*boxes, *words])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n'
        f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{SIZE}">\n{content}\n</g></svg>\n'
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(screen()), encoding="utf-8")
