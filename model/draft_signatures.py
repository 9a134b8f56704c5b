"""Draft rules on signatures: a changed one at its calls and at its siblings, a changed call at its definition.

Responsible for what changed between the parameters of a definition before and after a change, for the likeliest
argument at each call (a name in scope there), and for the parameter that a new argument asks for. Knows nothing of
ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from model.draft_calls import (
    Brackets,
    brackets_of,
    has_default,
    parameter_name,
    parameter_type,
)
from model.draft_history import Change
from model.draft_shapes import KEYWORDS
from model.draft_view import Proposal, View, indent_of

_AROUND = 12
_MAX_CHANGES = 4
_MAX_PLACES = 6
_MAX_UP = 120
_SELF = frozenset({"self", "cls", "this"})
_CLASS = re.compile(r"(\s*)(?:[\w@]+\s+)*?class\s+(\w+)")
_CONSTRUCTORS = frozenset({"__init__", "constructor", "__new__"})
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)\s*(.*)", re.S)


@dataclass(frozen=True, slots=True)
class Signature:
    """Names of the parameters with their texts, in order; `self` and its like left out."""

    names: tuple[str, ...]
    parts: tuple[str, ...]
    skipped: int


def signature_of(found: Brackets, path: str) -> Signature:
    parts = found.parts
    skipped = int(bool(parts) and parts[0].split(":")[0].strip("& ") in _SELF)
    kept = parts[skipped:]
    names = tuple(parameter_name(p, path) if p not in ("*", "/") else p for p in kept)
    return Signature(names, tuple(kept), skipped)


def _windows(view: View, change: Change) -> tuple[list[str], list[str]]:
    """The lines around a change before and after it."""
    if change.line is None:
        before, after = list(change.before), list(change.after)
    else:
        span = change.span
        before = view.lines[max(0, span.start - _AROUND) : span.start]
        after = view.lines[span.stop : span.stop + _AROUND]
    return [*before, *change.old, *after], [*before, *change.new, *after]


def _definitions(lines: list[str], changed: Sequence[str]) -> Iterator[Brackets]:
    """Definitions that touch the changed lines."""
    wanted = {line for line in changed if line.strip()}
    for found in brackets_of(lines, range(len(lines))):
        if found.defines and any(line in wanted for line in found.text.split("\n")):
            yield found


def changed_signatures(view: View, change: Change) -> list[tuple[Brackets, Signature, Signature]]:
    """(definition after the change, parameters before, parameters after)."""
    if "(" not in "".join((*change.old, *change.new, *change.before)):
        return []
    old_lines, new_lines = _windows(view, change)
    before = {f.name: f for f in _definitions(old_lines, (*change.old, *change.before))}
    found = []
    for after in _definitions(new_lines, change.new or change.before[-1:]):
        if after.name in before:
            one = signature_of(before[after.name], change.path)
            two = signature_of(after, change.path)
            if one.names != two.names:
                found.append((after, one, two))
    return found


class Scope:
    """What is in reach of a line: the enclosing function's parameters and the names bound before it."""

    def __init__(self, view: View, row: int) -> None:
        lines, path = view.lines, view.path
        depth = len(indent_of(lines[row]))
        self.parameters: dict[str, str] = {}
        self.is_async = False
        at, low = row, max(0, row - _MAX_UP)
        top = row
        while at > low:
            at -= 1
            line = lines[at]
            if not line.strip() or len(indent_of(line)) >= depth or "(" not in line:
                continue
            found = next((f for f in brackets_of(lines, [at]) if f.defines), None)
            if found:
                self.parameters = {
                    name: part
                    for name, part in zip(*_named(found, path), strict=True)
                    if name and name not in _SELF
                }
                self.is_async = bool(re.search(r"\basync\b", found.head))
                top = at
                break
        body = "\n".join(lines[top:row])
        self.bound = set(re.findall(r"\b(\w+)\b[ \t]*(?::[^=\n]*)?:?=(?!=)", body))
        self.bound |= set(re.findall(r"\b(?:for|as|const|let|var|auto)\s+(\w+)", body))

    def __contains__(self, name: str) -> bool:
        return name in self.parameters or name in self.bound


def _named(found: Brackets, path: str) -> tuple[list[str], list[str]]:
    parts = found.parts
    return [parameter_name(part, path) for part in parts], parts


def _argument(view: View, scope: Scope, name: str, part: str) -> str | None:
    """The likeliest argument for a new parameter: its name, the attribute of its name, a parameter of its type."""
    if name in scope:
        return name
    for owner in ("self", "this"):
        if f"{owner}.{name}" in view.attributes:
            return f"{owner}.{name}"
        if f"{owner}._{name}" in view.attributes:
            return f"{owner}._{name}"
    kind = parameter_type(part, name)
    if len(re.sub(r"\W", "", kind)) > 6:
        for other, text in scope.parameters.items():
            if parameter_type(text, other) == kind:
                return other
    return None


def _keywords(parts: list[str], python: bool) -> list[str]:
    """The keyword of each argument, empty for positional ones."""
    if not python:
        return ["" for _ in parts]
    matches = [_KEYWORD.match(part) for part in parts]
    return [match[1] if match else "" for match in matches]


def call_after(
    view: View, call: Brackets, old: Signature, new: Signature, scope: Scope
) -> list[str]:
    """The call's text as the new parameters want it, best first; none when nothing can be said."""
    parts = call.parts
    python = view.path.endswith((".py", ".pyi"))
    if any(part.startswith("*") or part.startswith("...") for part in parts):
        return []
    keywords = _keywords(parts, python)
    added = [n for n in new.names if n and n not in old.names and n.isidentifier()]
    gone = [n for n in old.names if n and n not in new.names and n.isidentifier()]
    plain = sum(not word for word in keywords)
    if not added and not gone:
        order = [old.names.index(n) for n in new.names if n in old.names]
        if len(order) == len(parts) == plain and len(parts) == len(old.names):
            return [call.with_parts([parts[i] for i in order])]
        return []
    if len(added) == 1 and len(gone) == 1 and old.names.index(gone[0]) == new.names.index(added[0]):
        if gone[0] in keywords:
            at = keywords.index(gone[0])
            renamed = re.sub(r"^\w+", added[0], parts[at])
            return [call.with_parts([*parts[:at], renamed, *parts[at + 1 :]])]
        return []
    if len(gone) == 1 and not added:
        index = old.names.index(gone[0])
        if gone[0] in keywords:
            return [call.dropped(keywords.index(gone[0]))]
        return [call.dropped(index)] if index < plain else []
    if len(added) != 1 or gone:
        return []
    name = added[0]
    index = new.names.index(name)
    if name in keywords or (not python and len(parts) > len(old.names)):
        return []
    value = _argument(view, scope, name, new.parts[index])
    if value is None:
        return []
    forms = []
    if python:
        forms.append(call.inserted(len(parts), f"{name}={value}"))
    if index <= plain and "*" not in new.names[:index] and len(parts) <= len(old.names):
        positional = call.inserted(index, value)
        forms.insert(len(forms) if has_default(new.parts[index]) else 0, positional)
    return forms


def _target(view: View, change: Change, found: Brackets) -> str:
    """The name by which a definition is called: a constructor by its class."""
    if found.name not in _CONSTRUCTORS or change.line is None:
        return found.name
    depth = len(indent_of(found.text))
    for row in range(change.line, -1, -1):
        head = _CLASS.match(view.lines[row])
        if head and len(head[1]) < depth:
            return head[2]
    return found.name


def _proposal(
    found: Brackets, text: str, rule: str, link: tuple[str, str], change: Change, siblings: int
) -> Proposal:
    new = tuple(text.split("\n"))
    return Proposal(found.first, found.last, new, rule, link, change.recency, siblings)


def signature_uses(view: View) -> Iterator[Proposal]:
    """A changed signature at the calls of its function, and at other definitions of that name."""
    for change in view.changes[:_MAX_CHANGES]:
        for definition, old, new in changed_signatures(view, change):
            name = _target(view, change, definition)
            names = {definition.name, name} - {"constructor", "__new__"}
            rows = sorted(
                {r for n in names for r in view.lines_with(n.lower() + "(")}, key=view.reach
            )
            pattern = "|".join(map(re.escape, sorted(names)))
            added = [n for n in new.names if n not in old.names]
            link = (definition.name, added[0] if added else "")
            places = [
                found
                for found in brackets_of(view.lines, rows[: 4 * _MAX_PLACES], pattern)
                if not any(row in change.span for row in range(found.first, found.last))
            ]
            for found in places[: 2 * _MAX_PLACES]:
                if found.defines:
                    own = signature_of(found, view.path)
                    if own.names == old.names and len(added) == 1:
                        at = new.names.index(added[0])
                        text = found.inserted(at + own.skipped, new.parts[at])
                        yield _proposal(found, text, "sibling-signature", link, change, len(places))
                    continue
                if found.name == "__init__" and not found.head.rstrip().endswith("."):
                    continue
                scope = Scope(view, found.first)
                for rank, text in enumerate(call_after(view, found, old, new, scope)):
                    rule = "call-argument" if rank == 0 else "call-argument-other"
                    yield _proposal(found, text, rule, link, change, len(places))


def _literal_default(value: str) -> str | None:
    if value in ("True", "False", "true", "false"):
        return value.replace("True", "False").replace("true", "false")
    return None


def parameters_asked_for(view: View) -> Iterator[Proposal]:
    """A call got an argument that its function in this file does not take yet: the parameter is added there."""
    python = view.path.endswith((".py", ".pyi"))
    for change in view.changes[:2]:
        if not change.old or change.line is None or len(change.new) > 12:
            continue
        _, new_lines = _windows(view, change)
        calls = {
            f.name: f
            for f in brackets_of(list(change.old), range(len(change.old)))
            if not f.defines
        }
        for after in brackets_of(new_lines, range(len(new_lines))):
            before = calls.get(after.name)
            if before is None or after.defines or len(after.spans) != len(before.spans) + 1:
                continue
            fresh = [part for part in after.parts if part not in before.parts]
            if len(fresh) != 1 or not any(fresh[0] in line for line in change.new):
                continue
            yield from _asked(view, change, after, fresh[0], python)


def _asked(
    view: View, change: Change, call: Brackets, argument: str, python: bool
) -> Iterator[Proposal]:
    keyword = _KEYWORD.match(argument) if python else None
    value = keyword[2] if keyword else argument
    tail = re.fullmatch(r"(?:[\w.]+\.)?_?([^\W\d]\w*)", value)
    name = keyword[1] if keyword else tail[1] if tail else ""
    if not name or (name in KEYWORDS and not keyword):
        return
    typed = Scope(view, change.span.start).parameters.get(name, name)
    if not python and typed == name and not view.path.endswith((".js", ".jsx", ".mjs")):
        return
    parameter = re.split(r"\s*=\s*", typed)[0]
    default = _literal_default(value)
    equals = " = " if ":" in parameter else "="
    forms = [parameter]
    if keyword:
        forms.insert(0, f"{parameter}{equals}{default or 'None'}")
    rows = list(view.lines_with(call.name.lower() + "("))
    for found in brackets_of(view.lines, rows[:24], re.escape(call.name)):
        if not found.defines or any("*" in part for part in found.parts):
            continue
        signature = signature_of(found, view.path)
        if name in signature.names:
            continue
        if len(call.spans) <= len(signature.names) and not keyword:
            continue
        at = len(found.spans)
        if not keyword:
            at = min(at, call.parts.index(argument) + signature.skipped)
        for rank, form in enumerate(forms):
            rule = "parameter-asked" if rank == 0 else "parameter-asked-other"
            yield _proposal(found, found.inserted(at, form), rule, (argument, name), change, 1)
