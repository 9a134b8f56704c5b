"""Situations of an editor: after an edit, one edit that a programmer would make next is among the judged drafts."""

from __future__ import annotations

import pytest

from diffing.hunks import unified_diff
from model.draft import drafts
from model.local import JUDGED
from model.protocol import Request

CALLS = """\
def send(text, room):
    queue.put((room, text))


def tell(user, rank):
    send('hi', user.room)
"""
SHAPE = """\
class Shape:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def as_dict(self):
        return {"x": self.x, "y": self.y}

    def __repr__(self):
        return f"Shape(x={self.x}, y={self.y})"
"""
COLOR = """\
class Color(Enum):
    RED = 1
    BLUE = 2


def code(color):
    match color:
        case Color.RED:
            return "red"
        case Color.BLUE:
            return "blue"
"""
SWITCH = """\
enum Color {
  Red,
  Blue,
}

function code(color: Color) {
  switch (color) {
    case Color.Red:
      return "red";
    case Color.Blue:
      return "blue";
  }
}
"""
GO = """\
func Fetch(url string) error {
	return get(url)
}

func Run(ctx context.Context, url string) {
	err := Fetch(url)
}
"""
JAVA = """\
class User {
    private final String name;

    User(String name) {
        this.name = name;
    }
}
"""

SITUATIONS = [
    # name, path, text, edit, next edit
    (
        "new parameter, name in scope",
        "a.py",
        "def get(url):\n    return url\n\n\ndef run(url, limit):\n    get(url)\n",
        ("get(url):", "get(url, limit):"),
        ("    get(url)\n", "    get(url, limit)\n"),
    ),
    (
        "new default, keyword",
        "a.py",
        "def get(url):\n    return url\n\n\ndef run(url, limit=3):\n    get(url)\n",
        ("get(url):", "get(url, limit=3):"),
        ("    get(url)\n", "    get(url, limit=limit)\n"),
    ),
    (
        "new parameter, attribute",
        "a.py",
        "def get(url):\n    return url\n\n\n"
        "class A:\n    def run(self):\n        self.limit = 3\n        get(self.url)\n",
        ("get(url):", "get(url, limit):"),
        ("get(self.url)", "get(self.url, self.limit)"),
    ),
    (
        "new parameter in the middle, lines",
        "a.py",
        "def get(url, body):\n    return url\n\n\ndef run(limit):\n    get(\n        one,\n        two,\n    )\n",
        ("get(url, body):", "get(url, limit, body):"),
        ("        two,\n", "        limit,\n        two,\n"),
    ),
    (
        "parameter removed, positional",
        "a.py",
        "def get(url, mode, body):\n    return url\n\n\nget(a, 'r', b)\n",
        ("get(url, mode, body)", "get(url, body)"),
        ("get(a, 'r', b)", "get(a, b)"),
    ),
    (
        "parameter removed, keyword",
        "a.py",
        "def get(url, mode=1):\n    return url\n\n\nget(a, mode=2)\n",
        ("get(url, mode=1)", "get(url)"),
        ("get(a, mode=2)", "get(a)"),
    ),
    (
        "parameters swapped",
        "a.py",
        "def move(left, right):\n    go(left)\n\n\nmove(1, f(2))\n",
        ("move(left, right)", "move(right, left)"),
        ("move(1, f(2))", "move(f(2), 1)"),
    ),
    (
        "sibling definition",
        "a.py",
        "class A:\n    def draw(self, at):\n        raise NotImplementedError\n\n\n"
        "class B(A):\n    def draw(self, at):\n        return 1\n",
        ("draw(self, at):\n        raise", "draw(self, at, depth):\n        raise"),
        ("draw(self, at):\n        return", "draw(self, at, depth):\n        return"),
    ),
    (
        "keyword asks for a parameter",
        "a.py",
        CALLS,
        ("user.room)", "user.room, loud=True)"),
        ("send(text, room):", "send(text, room, loud=False):"),
    ),
    (
        "argument asks for a parameter",
        "a.py",
        CALLS,
        ("user.room)", "user.room, rank)"),
        ("send(text, room):", "send(text, room, rank):"),
    ),
    (
        "go",
        "a.go",
        GO,
        ("Fetch(url string)", "Fetch(ctx context.Context, url string)"),
        ("= Fetch(url)", "= Fetch(ctx, url)"),
    ),
    (
        "c",
        "a.c",
        "int draw(int x) {\n    return x;\n}\n\nint show(int x, int color) {\n    return draw(x);\n}\n",
        ("draw(int x)", "draw(int x, int color)"),
        ("return draw(x)", "return draw(x, color)"),
    ),
    (
        "typescript",
        "a.ts",
        "function load(id: string) {\n  return id;\n}\n\n"
        "function show(id: string, token: string) {\n  return load(id);\n}\n",
        ("load(id: string)", "load(id: string, token: string)"),
        ("return load(id)", "return load(id, token)"),
    ),
    (
        "field to dictionary",
        "a.py",
        SHAPE,
        ("        self.y = y\n", "        self.y = y\n        self.z = z\n"),
        ('"y": self.y}', '"y": self.y, "z": self.z}'),
    ),
    (
        "field to text",
        "a.py",
        SHAPE,
        ("        self.y = y\n", "        self.y = y\n        self.z = z\n"),
        ("y={self.y})", "y={self.y}, z={self.z})"),
    ),
    (
        "java field",
        "User.java",
        JAVA,
        ("String name;\n", "String name;\n    private final String mail;\n"),
        ("(String name)", "(String name, String mail)"),
    ),
    (
        "go field",
        "a.go",
        "type S struct {\n\tHost string\n}\n\nfunc f(host string) S {\n\treturn S{\n\t\tHost: host,\n\t}\n}\n",
        ("\tHost string\n", "\tHost string\n\tName string\n"),
        ("\t\tHost: host,\n", "\t\tHost: host,\n\t\tName: name,\n"),
    ),
    (
        "new case, python",
        "a.py",
        COLOR,
        ("    BLUE = 2\n", "    BLUE = 2\n    GREEN = 3\n"),
        (
            '            return "blue"\n',
            '            return "blue"\n        case Color.GREEN:\n            return "green"\n',
        ),
    ),
    (
        "new case, typescript",
        "a.ts",
        SWITCH,
        ("  Blue,\n", "  Blue,\n  Green,\n"),
        (
            '      return "blue";\n',
            '      return "blue";\n    case Color.Green:\n      return "green";\n',
        ),
    ),
    (
        "module alias",
        "a.py",
        "import numpy\n\nrow = numpy.zeros(3)\n",
        ("import numpy", "import numpy as np"),
        ("numpy.zeros", "np.zeros"),
    ),
    (
        "module to name",
        "a.py",
        "import shapes\n\nrow = shapes.Row(3)\n",
        ("import shapes", "from shapes import Row"),
        ("shapes.Row", "Row"),
    ),
    (
        "typing name gone",
        "a.py",
        "from typing import Any, Dict\n\n\ndef f(a: Dict[str, Any]): ...\n",
        ("Any, Dict", "Any"),
        ("a: Dict", "a: dict"),
    ),
    (
        "format",
        "a.py",
        "a = '{} is'.format(b)\nc = '{0} {1!r}'.format(d, e.f)\n",
        ("'{} is'.format(b)", "f'{b} is'"),
        ("'{0} {1!r}'.format(d, e.f)", "f'{d} {e.f!r}'"),
    ),
    (
        "template string",
        "a.js",
        'const a = "hi " + b;\nconst c = "to " + d.e + "!";\n',
        ('"hi " + b', "`hi ${b}`"),
        ('"to " + d.e + "!"', "`to ${d.e}!`"),
    ),
    (
        "modifier",
        "A.java",
        "class A {\n    String name;\n    int age;\n}\n",
        ("    String", "    private String"),
        ("    int age", "    private int age"),
    ),
    (
        "declaration word",
        "a.js",
        "var a = 1;\nvar b = f(a);\n",
        ("var a", "const a"),
        ("var b", "const b"),
    ),
    (
        "debug line",
        "a.py",
        'def f(a):\n    print("at", a)\n    b = a\n    print("at", b)\n',
        ('    print("at", a)\n', ""),
        ('    print("at", b)\n', ""),
    ),
    (
        "await",
        "a.py",
        "def load(a):\n    return a\n\n\nasync def main():\n    b = load(1)\n",
        ("def load", "async def load"),
        ("b = load", "b = await load"),
    ),
    (
        "annotations",
        "a.py",
        "def f(path, size):\n    return path\n\n\ndef g(path, depth=3):\n    return path\n",
        ("f(path, size):", "f(path: Path, size: int) -> Path:"),
        ("g(path, depth=3):", "g(path: Path, depth: int = 3) -> Path:"),
    ),
]


@pytest.mark.parametrize(
    ("path", "text", "edit", "wanted"),
    [row[1:] for row in SITUATIONS],
    ids=[row[0] for row in SITUATIONS],
)
def test_the_next_edit_is_judged(
    path: str, text: str, edit: tuple[str, str], wanted: tuple[str, str]
) -> None:
    at = text.index(edit[0])
    now = text[:at] + edit[1] + text[at + len(edit[0]) :]
    history = (unified_diff(text, now, path),)
    request = Request("next_edit", path, now, at + len(edit[1].rstrip("\n")), history=history)
    results = [
        now[: d.edit.start] + d.edit.new_text + now[d.edit.end :] for d in drafts(request)[:JUDGED]
    ]
    place = now.rindex(wanted[0])
    assert now[:place] + wanted[1] + now[place + len(wanted[0]) :] in results
