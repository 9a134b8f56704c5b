"""Which edits can be ghost text, and as what."""

from __future__ import annotations

import pytest

from diffing.edits import Edit
from lsp_server.ghost import Selection, ghost_text


@pytest.mark.parametrize(
    ("text", "edits", "expected"),
    [
        ("ab|cd", [(2, 2, "X")], (2, 2, "X")),
        ("ab|\nd", [(2, 2, "X\nY")], (2, 2, "X\nY")),
        ("ab|cd", [(2, 4, "X")], (2, 4, "X")),
        ("ab|cd", [(0, 4, "abX")], (2, 4, "X")),
        ("ab|cd", [(4, 4, "X")], (2, 4, "cdX")),
        ("f(|)", [(2, 2, "a"), (3, 3, ":")], (2, 3, "a):")),
        ("ab|cd", [(0, 1, "X")], None),
        ("ab|cd", [(0, 4, "aXd")], None),
        ("ab|cd", [], None),
        ("ab|\ncd", [(3, 4, "X")], None),
        ("ab\n|cd", [(0, 1, "X")], None),
        ("ab|\r\ncd", [(2, 4, "X")], None),
    ],
)
def test_without_a_selected_item(
    text: str, edits: list[tuple[int, int, str]], expected: tuple[int, int, str] | None
) -> None:
    cursor = text.index("|")
    found = ghost_text(text.replace("|", ""), cursor, [Edit(*e) for e in edits])
    assert found == (None if expected is None else Edit(*expected))


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([(3, 3, "nt(x)")], (0, 3, "print(x)")),
        ([(0, 3, "print(x)")], (0, 3, "print(x)")),
        ([(3, 3, "nt")], None),  # no more than the menu offers itself
        ([(3, 3, "vate")], None),
    ],
)
def test_with_a_selected_item(
    edits: list[tuple[int, int, str]], expected: tuple[int, int, str] | None
) -> None:
    found = ghost_text("pri", 5, [Edit(*e) for e in edits], Selection(0, 3, "print"))
    assert found == (None if expected is None else Edit(*expected))
