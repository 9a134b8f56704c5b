from __future__ import annotations

import random
from collections import Counter

import pytest

from model.training.data.fim import MAX_CHARS, ONE_LINE, SEVERAL_LINES, USUAL_CHARS, Cutter, gaps
from model.training.data.syntax import language_of, node_spans

PYTHON = '''"""Sätze — with letters of more than one byte: 日本."""

import os


def load(path: str, encoding: str = "utf-8") -> list[str]:
    """Read the lines of a file."""
    # blank lines do not count
    if not os.path.exists(path):
        return []
    with open(path, encoding=encoding) as file:
        lines = [line.strip() for line in file]
    options = {
        "größe": len(lines),
        "name": os.path.basename(path),
    }
    print(
        "read",
        options["größe"],
    )
    return lines
'''
TYPESCRIPT = """import { a, b } from './é'

// adds
export function add(x: number, y: Array<number>): number {
  const sum = y.reduce((p, q) => p + q, x)
  if (sum > 10) {
    return sum
  }
  return call(`text ${sum}`, { key: 'wert', other: [1, 2] })
}

interface Shape {
  width: number
}
"""


@pytest.mark.parametrize(
    ("text", "language"),
    [(PYTHON, "python"), (TYPESCRIPT, "typescript"), (TYPESCRIPT, "typescriptreact")],
)
def test_node_spans_are_code_points(text: str, language: str) -> None:
    spans = node_spans(text, language)
    parts = {kind: [text[start:end] for start, end in some] for kind, some in spans.items()}
    if language == "python":
        assert '(path: str, encoding: str = "utf-8")' in parts["parameters"]
        assert "(path, encoding=encoding)" in parts["argument_list"]
        assert "Read the lines of a file." in parts["string"]
        assert "größe" in parts["string"]
        assert "not os.path.exists(path)" in parts["condition"]
        assert "# blank lines do not count" in parts["comment"]
        assert any(block.startswith("lines = [") for block in parts["block"])
    else:
        assert "(x: number, y: Array<number>)" in parts["parameters"]
        assert "{ key: 'wert', other: [1, 2] }" in parts["collection"]
        assert "// adds" in parts["comment"]
        assert "{\n  width: number\n}" in parts["block"]
        assert "number" in parts["type"]


def test_every_language_has_its_kinds() -> None:
    known = {*ONE_LINE, *SEVERAL_LINES}
    script = "/* c */ function f(a) { if (a) { return [a, 's'] } }"
    assert set(node_spans(script, "javascript")) <= known
    assert set(node_spans(PYTHON, "python")) | set(node_spans(TYPESCRIPT, "typescript")) <= known
    assert language_of("a/b.d.mts") == "typescript"
    assert language_of("a.py/readme") == ""
    with pytest.raises(KeyError):
        node_spans("x", "cobol")


@pytest.mark.parametrize(("text", "language"), [(PYTHON, "python"), (TYPESCRIPT, "typescript")])
def test_gaps_reproduce_the_text(text: str, language: str) -> None:
    found = list(gaps(text * 20, language, random.Random(1)))
    assert len(found) == len(set(found)) >= 0.9 * 20 * len(text) / 110
    for gap in found:
        middle = (text * 20)[gap.start : gap.end]
        assert 0 < len(middle) <= MAX_CHARS
        assert middle.strip()
        assert gap.lines == len(middle.splitlines())
        if gap.kind in ("rest-of-line", "line"):
            assert (text * 20)[gap.end - 1 : gap.end + 1].find("\n") >= 0
    assert found == list(gaps(text * 20, language, random.Random(1)))


def test_proportions() -> None:
    text = PYTHON * 400
    found = list(gaps(text, "python", random.Random(2)))
    one = sum(gap.lines == 1 for gap in found) / len(found)
    assert 0.57 < one < 0.64
    kinds = Counter(gap.kind for gap in found)
    assert kinds.keys() >= {"argument_list", "block", "string", "line", "rest-of-line", "random"}
    by_node = 1 - sum(
        kinds[k] for k in ("line", "lines", "random", "rest-of-line", "rest-of-block")
    ) / len(found)
    assert 0.4 < by_node < 0.7
    assert sum(gap.end - gap.start <= USUAL_CHARS for gap in found) / len(found) > 0.9
    crossing = [
        text[gap.start : gap.end] for gap in found if gap.kind == "random" and gap.lines > 1
    ]
    assert crossing
    assert any(not middle.startswith((" ", "\n")) for middle in crossing)


def test_brackets_stay_outside() -> None:
    cutter = Cutter(PYTHON, "python", random.Random(0))
    inner = {PYTHON[start:end] for start, end in cutter.pools["argument_list", False]}
    assert "path, encoding=encoding" in inner
    assert not any(part.startswith("(") for part in inner)


@pytest.mark.parametrize("text", ["", "\n\n  \n", "x", "x\n", "((((", "\ud800 = 1\nname = 2\n"])
def test_odd_texts(text: str) -> None:
    for gap in gaps(text, "python", random.Random(0)):
        assert text[gap.start : gap.end].strip()
