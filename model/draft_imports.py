"""Draft rules on imports: what is used but not imported, imported but no longer used, imported
twice.

Responsible for proposing changes of import statements; knows nothing of ranking.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from model.draft_history import Change
from model.draft_shapes import KEYWORDS
from model.draft_view import Proposal, View
from model.imports import Import, bound_name, read_imports, render

_WORD = re.compile(r"[^\W\d]\w*")
_TYPING_NAMES = (
    "Any Callable ClassVar Final Generic Literal NamedTuple NoReturn Optional Protocol "
    "TYPE_CHECKING TypeVar TypedDict Union cast overload Self Annotated"
)
_TYPING = frozenset(_TYPING_NAMES.split())
_NO_CODE = re.compile(r"\"[^\"]*\"|'[^']*'|(?:#|//).*|``?[^`]*``?")
_STANDARD = {
    "dataclass": "dataclasses",
    "field": "dataclasses",
    "defaultdict": "collections",
    "Counter": "collections",
    "OrderedDict": "collections",
    "deque": "collections",
    "Path": "pathlib",
    "partial": "functools",
    "wraps": "functools",
    "lru_cache": "functools",
    "cached_property": "functools",
    "contextmanager": "contextlib",
    "suppress": "contextlib",
    "Iterable": "collections.abc",
    "Iterator": "collections.abc",
    "Mapping": "collections.abc",
    "Sequence": "collections.abc",
    "Generator": "collections.abc",
    "Awaitable": "collections.abc",
    "abstractmethod": "abc",
    "ABC": "abc",
    "Enum": "enum",
    "timedelta": "datetime",
    "datetime": "datetime",
}


def _sorted_in(items: tuple[str, ...], item: str) -> tuple[str, ...]:
    """The items with one more, where the present order wants it (at the end if there is none)."""
    for order in (_plain_key, _folded_key, _isort_key):
        if list(items) == sorted(items, key=order):
            at = sum(order(other) < order(item) for other in items)
            return (*items[:at], item, *items[at:])
    return (*items, item)


def _plain_key(item: str) -> tuple[int, str]:
    return 0, item


def _folded_key(item: str) -> tuple[int, str]:
    return 0, item.casefold()


def _isort_key(item: str) -> tuple[int, str]:
    sort = 0 if item.isupper() and len(item) > 1 else 1 if item[:1].isupper() else 2
    return sort, item


def _changed_words(changes: list[Change]) -> tuple[set[str], set[str]]:
    """Words that the recent changes brought and took."""
    came: set[str] = set()
    went: set[str] = set()
    for change in changes:
        old = set(_WORD.findall(_NO_CODE.sub("", "\n".join(change.old))))
        new = set(_WORD.findall(_NO_CODE.sub("", "\n".join(change.new))))
        came |= new - old
        went |= old - new
    return came, went


def unused_imports(view: View) -> Iterator[Proposal]:
    """Imported names whose last use the user has just removed, and names now imported twice."""
    if not view.statements:
        return
    came, went = _changed_words(view.changes)
    written = {line for change in view.changes for line in change.span}
    bound: dict[str, int] = {}
    for statement in view.statements:
        for item in statement.items:
            bound[bound_name(item)] = bound.get(bound_name(item), 0) + 1
    for statement in view.statements:
        gone = [
            item
            for item in statement.items
            if (
                (name := bound_name(item)) in went
                and view.words.get(name, 0) == item.split().count(name)
            )
            or (
                name in came
                and bound[name] > 1
                and not written & set(range(statement.first, statement.last))
            )
        ]
        if not gone:
            continue
        kept = tuple(item for item in statement.items if item not in gone)
        new = render(statement, kept, view.lines)
        link = (bound_name(gone[0]), "")
        yield Proposal(statement.first, statement.last, new, "unused-import", link, 0, len(gone))


def _sources(view: View, names: set[str]) -> Iterator[tuple[str, str, str]]:
    """(name, module, item) of imports that would bind a name: other files, the history, Python's
    own.
    """
    others: list[str] = []
    for change in view.changes:
        others += change.new + change.old
    for snippet in view.request.related:
        others += snippet.text.split("\n", 300)[:300]
    for statement in read_imports([line for line in others if "import" in line]):
        for item in statement.items:
            if bound_name(item) in names:
                yield bound_name(item), statement.module, item
    if view.request.language not in ("", "python") or not view.path.endswith((".py", ".pyi")):
        return
    modules = {statement.module for statement in view.statements}
    for name in sorted(names):
        if name in _TYPING:
            yield (
                name,
                "typing_extensions"
                if "typing" not in modules and "typing_extensions" in modules
                else "typing",
                name,
            )
        elif name in _STANDARD:
            yield name, _STANDARD[name], name
        elif name in sys.stdlib_module_names:
            yield name, "", name


def missing_imports(view: View) -> Iterator[Proposal]:
    """A name that the recent changes brought and nothing binds is imported from where others have
    it.
    """
    came, _ = _changed_words(view.changes)
    if not came or not view.statements:
        return
    code = _NO_CODE.sub("", "\n".join(line for change in view.changes for line in change.new))
    imported = {bound_name(item) for statement in view.statements for item in statement.items}
    names = came - imported - KEYWORDS
    free: dict[str, bool] = {}
    for name, module, item in dict.fromkeys(_sources(view, names)):
        if name not in free:
            free[name] = _is_free(view, name, code)
        if not free[name]:
            continue
        link = (name, name)
        for statement in view.statements:
            if module and statement.module == module and statement.style != "plain":
                new = render(statement, _sorted_in(statement.items, item), view.lines)
                yield Proposal(statement.first, statement.last, new, "add-import", link, 0)
                break
        line = f"from {module} import {item}" if module else f"import {item}"
        at = _place(view, line, module or item)
        yield Proposal(at, at, (line,), "add-import-line", link, 0)


def _is_free(view: View, name: str, code: str) -> bool:
    """True when new code uses the name as a value and nothing in reach of the cursor binds it."""
    used = re.search(rf"(?<![\w.]){name}(?!\w|\s*=[^=]|\s*:\s)", code)
    if not used or (
        name in sys.stdlib_module_names and not re.search(rf"(?<![\w.]){name}\.\w", code)
    ):
        return False
    binding = re.compile(
        rf"\b(?:def|class|as|for)\s+{name}\b|(?<![\w.=!<>]){name}\s*(?::[^=\n]*)?=(?!=)|[(,]\s*{name}\s*[:,)]"
    )
    return not any(binding.search(view.lines[number]) for number in view.lines_with(name.lower()))


def _place(view: View, line: str, module: str) -> int:
    """Where a new import line goes: in order among its likes, else after the last, else on top."""
    top = [s for s in view.statements if not s.indent]
    alike = [
        s for s in top if (s.style == "plain") == line.startswith("import") and s.style != "script"
    ]
    pool = alike or top
    if not pool:
        return 0
    key = module.casefold()

    def name(statement: Import) -> str:
        return (statement.module or statement.items[0]).casefold()

    standard = module.split(".")[0] in sys.stdlib_module_names
    group = [
        s
        for s in pool
        if (name(s).split(".")[0] in sys.stdlib_module_names) == standard
        and name(s) != "__future__"
    ] or pool
    later = [s for s in group if name(s) > key]
    return later[0].first if later else group[-1].last
