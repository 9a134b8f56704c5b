"""Rewrites that follow from a changed import, and awaits that follow from a changed `async`.

Responsible for how the uses of a name look after its import or its definition changed. Knows nothing of where lines
stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from model.draft_history import Change, line_pairs
from model.draft_migrations import pipe_unions
from model.draft_rewrites import Rewrite
from model.imports import Import, read_imports

_GENERICS = frozenset({"List", "Dict", "Tuple", "Set", "FrozenSet", "Type"})
_UNIONS = frozenset({"Optional", "Union"})
_IMPORT_LINE = re.compile(r"\s*(?:from\s+[\w.]+\s+)?import\b|\s*\w+,?\s*$|\s*[()]\s*$")
_NO_USE = re.compile(r"\s*(?:import\b|from\b.*\bimport\b)")


def _sub(pattern: str, new: str) -> Callable[[str], str | None]:
    compiled = re.compile(pattern)

    def apply(line: str) -> str | None:
        return None if _NO_USE.match(line) else compiled.sub(new, line)

    return apply


def _rewrite(change: Change, old: str, new: str, pattern: str, result: str) -> Rewrite:
    return Rewrite("import-use", (old, new), change.recency, old.lower(), _sub(pattern, result))


def _names(statements: list[Import]) -> tuple[dict[str, str], dict[str, str]]:
    """Plain imports (module -> bound name) and imported items (bound name -> module)."""
    plain: dict[str, str] = {}
    items: dict[str, str] = {}
    for statement in statements:
        for item in statement.items:
            name, _, alias = item.partition(" as ")
            if statement.style == "plain":
                plain[name] = alias or name
            elif statement.module:
                items[alias or name] = statement.module + "." + name
    return plain, items


def import_rewrites(change: Change) -> list[Rewrite]:
    """How uses change after import statements did: other module names, with or without the module, modern generics."""
    lines = [line for line in (*change.old, *change.new) if line.strip()]
    if not lines or not all(_IMPORT_LINE.match(line) for line in lines):
        return []
    old_plain, old_items = _names(read_imports(list(change.old)))
    new_plain, new_items = _names(read_imports(list(change.new)))
    found: list[Rewrite] = []
    for module, name in old_plain.items():
        bound = new_plain.get(module)
        if bound and bound != name:
            found.append(
                _rewrite(change, name, bound, rf"(?<![\w.]){re.escape(name)}(?=\.)", bound)
            )
    for name, whole in new_items.items():
        module, _, item = whole.rpartition(".")
        if name not in old_items:
            pattern = rf"(?<![\w.]){re.escape(old_plain.get(module, module))}\.{item}\b"
            found.append(_rewrite(change, f"{module}.{item}", name, pattern, name))
    for name, whole in old_items.items():
        module, _, item = whole.rpartition(".")
        if name not in new_items and module in new_plain:
            use = f"{new_plain[module]}.{item}"
            pattern = rf"(?<![\w.\"']){name}\b(?!\s*=[^=]|[\"'])"
            found.append(_rewrite(change, name, use, pattern, use))
    return [*found, *_without_typing(change)]


def _without_typing(change: Change) -> list[Rewrite]:
    """Annotations after names of `typing` that the language has no need of were no longer imported."""
    gone = set(re.findall(r"\w+", "\n".join(change.old)))
    gone -= set(re.findall(r"\w+", "\n".join(change.new)))
    generics, unions = sorted(gone & _GENERICS), gone & _UNIONS
    if not generics and not unions:
        return []
    pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(generics)})(?=\[)") if generics else None

    def apply(line: str) -> str | None:
        if _NO_USE.match(line):
            return None
        if pattern:
            line = pattern.sub(lambda match: match.group().lower(), line)
        return pipe_unions(line) if unions else line

    link = (generics[0], generics[0].lower()) if generics else ("Optional", "| None")
    needle = link[0].lower() if len(generics) == 1 and not unions else "["
    return [Rewrite("migrate-typing", link, change.recency, needle, apply)]


_ASYNC = re.compile(r"\basync\s+(?:def|function)\s+(\w+)|\basync\s+(\w+)\s*\(|(\w+)\s*=\s*async\b")


def awaited_names(change: Change) -> dict[str, bool]:
    """Functions that became asynchronous (True) or stopped being so (False)."""
    found: dict[str, bool] = {}
    for old, new in line_pairs(change):
        before, after = _ASYNC.search(old), _ASYNC.search(new)
        if bool(before) == bool(after):
            continue
        match = before or after
        name = next((group for group in match.groups() if group), "") if match else ""
        if name and re.search(rf"\b{name}\b", old) and re.search(rf"\b{name}\b", new):
            found[name] = bool(after)
    return found


def with_await(line: str, name: str, *, wanted: bool) -> str | None:
    """The line with its first call of the function awaited, or no longer; None when it stands so already."""
    if not wanted:
        return re.sub(rf"\bawait\s+((?:[\w$]+\.)*{re.escape(name)}\()", r"\1", line)
    match = re.search(rf"(?<![\w$.])(?:[\w$]+\.)*{re.escape(name)}\(", line)
    if not match or re.search(r"\b(?:await|def|function|async|new)\s+\Z", line[: match.start()]):
        return None
    return line[: match.start()] + "await " + line[match.start() :]
