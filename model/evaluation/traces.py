"""Editing traces: what a programmer's hands do in a file, as changes and places to ask at.

Responsible for one trace of every kind over the lines of a file. Pure text; knows nothing of who is asked.

The kinds: `first` key in a file that nobody has seen, `type` more keys on that line, `jump` to other places without a
change, `delete` the end of another line key by key, and an edit `above` the cursor, as when a formatter or an import
changes lines while the cursor stays on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from diffing.edits import Edit, apply

Kind = Literal["first", "type", "jump", "delete", "above"]

KINDS: tuple[Kind, ...] = ("first", "type", "jump", "delete", "above")
ABOVE_LINES = 8
JUMPS = (0.15, 0.85, 0.4)


@dataclass(frozen=True, slots=True)
class Step:
    """A change, or none, and the cursor behind it, where the editor asks. Code points of the text after the change."""

    kind: Kind
    edit: Edit | None
    cursor: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The text as it is opened, and what follows."""

    label: str
    opened: str
    steps: tuple[Step, ...]


class Hands:
    """A text with a cursor, and the steps that brought it here."""

    def __init__(self, opened: str) -> None:
        self.text = opened
        self.steps: list[Step] = []

    def change(self, kind: Kind, edit: Edit, cursor: int) -> None:
        self.text = apply(self.text, [edit])
        self.steps.append(Step(kind, edit, cursor))

    def move(self, kind: Kind, cursor: int) -> None:
        self.steps.append(Step(kind, None, cursor))

    def line_end(self, place: float, least: int) -> int:
        """The end of the first line of at least `least` characters after `place`, a share of the text."""
        start = self.text.find("\n", int(len(self.text) * place)) + 1
        position = start
        for line in self.text[start:].splitlines(keepends=True):
            if len(line.strip()) >= least:
                return position + len(line.rstrip("\n"))
            position += len(line)
        return self.line_end(0.0, least) if place else len(self.text)


def every_kind(lines: Sequence[str], label: str, keys: int, place: float = 0.5) -> Trace:
    """One trace with all kinds of steps around `place`, a share of the file.

    `label` makes the first line unlike those of other traces, so that no cache knows the text. `keys` are typed, and
    as many deleted elsewhere.
    """
    whole = "".join([f"# {label}\n", *lines[1:]])
    end = Hands(whole).line_end(place, keys + 1)
    typed = whole[end - keys : end]
    hands = Hands(whole[: end - keys] + whole[end:])
    opened = hands.text
    cursor = end - keys
    for number, key in enumerate(typed):
        kind: Kind = "type" if number else "first"
        hands.change(kind, Edit(cursor, cursor, key), cursor + 1)
        cursor += 1
    for share in JUMPS:
        hands.move("jump", hands.line_end(share, 1))
    _above(hands, cursor)
    _delete(hands, place, keys)
    return Trace(label, opened, tuple(hands.steps))


def _above(hands: Hands, cursor: int) -> None:
    """Lines come in some lines above the cursor, which moves with its own line."""
    at = cursor
    for _ in range(ABOVE_LINES):
        at = hands.text.rfind("\n", 0, max(0, at - 1)) + 1
    for number in range(len(JUMPS)):
        line = f"# note {number}\n"
        cursor += len(line)
        hands.change("above", Edit(at, at, line), cursor)


def _delete(hands: Hands, place: float, keys: int) -> None:
    """The end of another line is taken away; what is left was never there before, so it is no undo."""
    end = hands.line_end(min(0.95, place + 0.1), keys + 1)
    for at in range(end, end - keys, -1):
        hands.change("delete", Edit(at - 1, at, ""), at - 1)
