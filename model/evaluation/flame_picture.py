"""Draws trees of named parts as an SVG picture: who calls stands above, the width is the share of the time.

Responsible for the picture and its legend. It knows nothing of what the parts are or of how their time was measured.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

WIDTH, ROW, PAD, SIZE = 1100, 22, 16, 12
CHARACTER = SIZE * 0.56
LARGE = 0.05
LEAST = 0.002
COLUMNS = 3


class Tree(Protocol):
    """A part with the parts in it."""

    name: str
    seconds: float

    @property
    def own(self) -> float: ...
    def ordered(self) -> Sequence[Tree]: ...
    def leaves(self) -> Mapping[str, float]: ...


@dataclass(frozen=True, slots=True)
class Box:
    """A part in the picture: its row from the top, and left end and width as shares of all."""

    name: str
    depth: int
    left: float
    share: float


def boxes(root: Tree) -> Iterator[Box]:
    """The parts of a tree, each within its caller, the largest to the left."""

    def walk(node: Tree, depth: int, left: float) -> Iterator[Box]:
        yield Box(node.name, depth, left, node.seconds / root.seconds)
        for child in node.ordered():
            if child.seconds >= LEAST * root.seconds:
                yield from walk(child, depth + 1, left)
            left += child.seconds / root.seconds

    if root.seconds > 0:
        yield from walk(root, 0, 0.0)


def colour(name: str) -> str:
    """The same for a name in every picture, light enough for black text."""
    seed = crc32(name.encode())
    return f"hsl({seed % 360} {50 + seed // 360 % 25}% {72 + seed // 9000 % 12}%)"


def fitting(text: str, width: float, short: str = "") -> str:
    """The text, or the short one, or as much of that as fits, or nothing where it would say little."""
    room = int((width - 6) / CHARACTER)
    if room >= len(text):
        return text
    short = short or text
    if room >= len(short):
        return short
    return short[: room - 1] + "…" if room > 4 else ""


def draw(roots: Sequence[tuple[Tree, int]], what: str) -> str:
    """The picture of trees, each with the number of keys that it sums up."""
    parts: list[str] = []
    top = PAD + ROW
    parts.append(_text(PAD, PAD + SIZE, f"Where the time of a key goes: {what}", bold=True))
    for root, keys in roots:
        found = list(boxes(root))
        title = f"{root.name}: {1000 * root.seconds / max(1, keys):.0f} ms a key, {keys} keys"
        parts.append(_text(PAD, top + ROW - 6, title, bold=True))
        top += ROW
        parts += [_box(box, top) for box in found]
        top += ROW * (1 + max((box.depth for box in found), default=0)) + ROW // 2
        legend = _legend(root)
        for number, (name, share) in enumerate(legend):
            x = PAD + number % COLUMNS * (WIDTH // COLUMNS)
            y = top + number // COLUMNS * ROW
            fill = f'fill="{colour(name)}"'
            parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" {fill}/>')
            parts.append(_text(x + 18, y + 11, f"{name} {share:.1%}"))
        top += ROW * -(-len(legend) // COLUMNS) + ROW // 2
    size = f'width="{WIDTH + 2 * PAD}" height="{top + PAD}"'
    style = f'font-family="sans-serif" font-size="{SIZE}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n'
        '<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _legend(root: Tree) -> list[tuple[str, float]]:
    """Every name with at least 5 % of the time to itself, wherever it stands."""
    shares = {name: s / root.seconds for name, s in root.leaves().items()} if root.seconds else {}
    large = [(name, share) for name, share in shares.items() if share >= LARGE]
    return sorted(large, key=lambda one: -one[1])


def _box(box: Box, top: int) -> str:
    x, y = PAD + box.left * WIDTH, top + box.depth * ROW
    width = box.share * WIDTH
    label = fitting(f"{box.name} {box.share:.0%}", width, box.name)
    title = html.escape(f"{box.name}: {box.share:.1%}")
    rect = (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" fill="{colour(box.name)}" '
        'stroke="#ffffff" stroke-width="0.5"/>'
    )
    return f"<g><title>{title}</title>{rect}{_text(x + 3, y + 15, label) if label else ''}</g>"


def _text(x: float, y: float, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.0f}"{weight}>{html.escape(text)}</text>'
