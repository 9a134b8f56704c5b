"""Draw the output of a real `redraft demo` as an SVG picture: `python docs/make_demo_picture.py docs/demo.svg`.

Runs the demo with colours on and lays its lines out in a terminal-like frame. Knows nothing of what the demo does.
"""

from __future__ import annotations

import html
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

COLOURS = {"31": "#f38ba8", "32": "#a6e3a1", "33": "#f9e2af", "36": "#89dceb", "2": "#7f849c"}
SIZE, LINE, PAD = 13, 18, 16


def run_demo() -> str:
    """The demo's output as a terminal would get it."""
    reader, writer = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "lsp_server", "demo"], stdout=writer) as demo:
        os.close(writer)
        chunks = []
        while True:
            try:
                chunk = os.read(reader, 65536)
            except OSError:
                break
            if not chunk:
                break
            chunks.append(chunk)
    if demo.returncode:
        sys.exit(f"the demo ended with {demo.returncode}")
    return b"".join(chunks).decode().replace("\r", "")


def spans(line: str) -> str:
    """One line with its colour codes as SVG text spans."""
    out, style = [], ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            codes = part[2:-1].split(";")
            colour = next((COLOURS[c] for c in codes if c in COLOURS), "")
            style = f' fill="{colour}"' if colour else ' font-weight="bold"' if "1" in codes else ""
        elif part:
            out.append(f"<tspan{style}>{html.escape(part)}</tspan>")
    return "".join(out)


def draw(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    width = int(max(map(len, plain)) * SIZE * 0.602) + 2 * PAD
    height = len(lines) * LINE + 2 * PAD
    rows = "".join(
        f'<text x="{PAD}" y="{PAD + (i + 1) * LINE - 5}" xml:space="preserve">{spans(line)}</text>\n'
        for i, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#1e1e2e"/>\n'
        f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{SIZE}"'
        f' fill="#cdd6f4">\n{rows}</g></svg>\n'
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(run_demo()), encoding="utf-8")
