"""Import statements: read, and written with other items.

Responsible for Python's `from m import a, b` (also in brackets over lines) and `import m`, and for
the named imports of JavaScript and TypeScript. Knows nothing of where names come from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FROM = re.compile(r"(\s*)from\s+([\w.]+)\s+import\s+(\(?)\s*([^()#]*?)\s*(\)?)\s*(#.*)?$")
_PLAIN = re.compile(r"(\s*)import\s+([\w.]+)(?:\s+as\s+(\w+))?\s*(#.*)?$")
_SCRIPT = re.compile(r"(\s*)import\s+(?:type\s+)?\{([^}]*)\}\s*from\s*([\"'][^\"']+[\"']);?\s*$")
_MAX_IMPORTS = 400


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement: lines `first` to `last` (exclusive), its module and the imported items.

    An item is a name or "name as alias"; `module` is empty for a plain `import m`, whose single
    item is "m" or "m as n".
    """

    first: int
    last: int
    indent: str
    module: str
    items: tuple[str, ...]
    style: str


def bound_name(item: str) -> str:
    """The name that an imported item binds."""
    return item.split(" as ")[-1].strip().split(".")[0]


def _items(text: str) -> tuple[str, ...]:
    text = re.sub(r"#[^\n]*", "", text)
    return tuple(" ".join(part.split()) for part in text.split(",") if part.strip())


def read_imports(lines: list[str]) -> list[Import]:
    """Import statements in order; those that span lines only in brackets, one item or more a
    line.
    """
    found: list[Import] = []
    number = 0
    while number < len(lines) and len(found) < _MAX_IMPORTS:
        line = lines[number]
        number += 1
        if "import" not in line:
            continue
        script = _SCRIPT.match(line)
        if script:
            found.append(
                Import(number - 1, number, script[1], script[3], _items(script[2]), "script")
            )
            continue
        plain = _PLAIN.match(line)
        if plain:
            item = plain[2] + (f" as {plain[3]}" if plain[3] else "")
            found.append(Import(number - 1, number, plain[1], "", (item,), "plain"))
            continue
        if re.match(r"\s*from\s+[\w.]+\s+import\s+\(\s*(#.*)?$", line):
            first = number - 1
            while number < len(lines) and ")" not in lines[number] and number - first < 80:
                number += 1
            if number < len(lines) and lines[number].strip() == ")":
                number += 1
                body = "\n".join(lines[first + 1 : number - 1])
                module = line.split()[1]
                indent = line[: len(line) - len(line.lstrip())]
                found.append(Import(first, number, indent, module, _items(body), "block"))
            continue
        match = _FROM.match(line)
        if match and bool(match[3]) == bool(match[5]):
            found.append(Import(number - 1, number, match[1], match[2], _items(match[4]), "from"))
    return found


def render(statement: Import, items: tuple[str, ...], lines: list[str]) -> tuple[str, ...]:
    """The statement's lines with other items; empty when none is left."""
    if not items:
        return ()
    if statement.style == "block":
        body = lines[statement.first + 1 : statement.last - 1]
        pad = body[0][: len(body[0]) - len(body[0].lstrip())] if body else "    "
        if len(body) == 1 and len(statement.items) > 1:
            comma = "," if body[0].rstrip().endswith(",") else ""
            return (
                lines[statement.first],
                pad + ", ".join(items) + comma,
                lines[statement.last - 1],
            )
        known = {re.sub(r"[,\s]*(#.*)?$", "", line).strip(): line for line in body}
        return (
            lines[statement.first],
            *(known.get(item, f"{pad}{item},") for item in items),
            lines[statement.last - 1],
        )
    line = lines[statement.first]
    if statement.style == "script":
        start, end = line.index("{"), line.index("}")
        space = " " if line[start + 1 : start + 2] == " " else ""
        return (line[:start] + "{" + space + ", ".join(items) + space + line[end:],)
    match = _FROM.match(line)
    if not match:
        return (line,)
    return (line[: match.start(4)] + ", ".join(items) + line[match.end(4) :],)
