"""Which other files bear on a request, and their present text.

Responsible for choosing candidates (recently edited, recently looked at, imported by the document)
and for reading them under the policy: from the editor where they are open, from disk otherwise.
Ranking and cutting to a budget is the context builder's work. Knows nothing of prompts.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from diffing.policy import FilePolicy
from model.protocol import Snippet

MAX_FILES = 12
MAX_IMPORTED = 8
MAX_SNIPPET_CHARS = 200_000
_SCANNED_CHARS = 20_000

_PYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+([\w, \t(]+)|import[ \t]+([\w., \t]+))", re.M
)
_QUOTED_IMPORT = re.compile(
    r"(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*|^\s*#\s*include\s*)[\"'](\.{0,2}[\w./@-]+)[\"']",
    re.M,
)
_EXTENSIONS = ("", ".py", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".h", ".hpp")
_INDEX = ("__init__.py", "index.ts", "index.tsx", "index.js")


@dataclass(frozen=True, slots=True)
class Candidates:
    """What the event loop knows at the time of the request; the worker reads the rest.

    `open_texts` maps path names to present texts, `names` are path names in order of preference.
    """

    roots: tuple[Path, ...]
    policy: FilePolicy
    open_texts: Mapping[str, str]
    names: Sequence[str]


class FileCache:
    """Texts of files on disk, read again when their size or time changes. Bounded."""

    def __init__(self, capacity: int = 64) -> None:
        self._capacity = capacity
        self._texts: OrderedDict[Path, tuple[tuple[int, int], str | None]] = OrderedDict()

    def read(self, path: Path, policy: FilePolicy) -> str | None:
        """The text of a file that may be read; None for all others."""
        try:
            stat = path.stat()
        except OSError:
            return None
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._texts.get(path)
        if known is not None and known[0] == stamp and policy.verdict(path) is None:
            self._texts.move_to_end(path)
            return known[1]
        text, _ = policy.read(path)
        self._texts[path] = (stamp, text)
        while len(self._texts) > self._capacity:
            self._texts.popitem(last=False)
        return text


def related_snippets(
    own: str, text: str, candidates: Candidates, cache: FileCache
) -> tuple[Snippet, ...]:
    """Present texts of files related to the document named `own`, the most telling first."""
    snippets: dict[str, Snippet] = {}
    for name in [*candidates.names, *imported_names(own, text, candidates.roots)]:
        if len(snippets) >= MAX_FILES:
            break
        if name == own or name in snippets:
            continue
        present = candidates.open_texts.get(name)
        if present is None and (path := _locate(name, candidates.roots)) is not None:
            present = cache.read(path, candidates.policy)
        if present and len(present) <= MAX_SNIPPET_CHARS:
            snippets[name] = Snippet(name, present)
    return tuple(snippets.values())


def imported_names(own: str, text: str, roots: Sequence[Path]) -> list[str]:
    """Names, relative to a root, of files that the text imports and that exist in the workspace."""
    head = text[:_SCANNED_CHARS]
    found: dict[str, None] = {}
    for stem in _stems(own, head):
        for root in roots:
            if (name := _existing(root, stem)) is not None and name != own:
                found[name] = None
                break
        if len(found) >= MAX_IMPORTED:
            break
    return list(found)


def _stems(own: str, head: str) -> list[Path]:
    """Paths, relative to a root and without extension, that the imports may mean."""
    folder = Path(own).parent
    stems: list[Path] = []
    if own.endswith((".py", ".pyi")):
        for source, names, modules in _PYTHON_IMPORT.findall(head):
            stems += _python_stems(folder, source, names, modules)
    else:
        for quoted in _QUOTED_IMPORT.findall(head):
            stems += [_normal(folder / quoted), _normal(Path(quoted))]
    return list(dict.fromkeys(stem for stem in stems if not stem.is_absolute() and stem.parts))


def _python_stems(folder: Path, source: str, names: str, modules: str) -> list[Path]:
    if modules:
        dotted = [part.split()[0] for part in modules.split(",") if part.split()]
        return [
            base / Path(*d.split(".")) for d in dotted for base in (Path(), folder, Path("src"))
        ]
    dots = len(source) - len(source.lstrip("."))
    parts = [part for part in source.lstrip(".").split(".") if part]
    if dots:
        base = folder
        for _ in range(dots - 1):
            base = base.parent
        bases = [base]
    else:
        bases = [Path(), folder, Path("src")]
    stems = [base.joinpath(*parts) for base in bases] if parts else []
    first = [name.split()[0].strip("(") for name in names.split(",") if name.split()]
    return stems + [b.joinpath(*parts, name) for b in bases for name in first[:4] if name]


def _existing(root: Path, stem: Path) -> str | None:
    for extension in _EXTENSIONS:
        path = stem.with_name(stem.name + extension)
        if path.suffix and (root / path).is_file():
            return path.as_posix()
    for index in _INDEX:
        if (root / stem / index).is_file():
            return (stem / index).as_posix()
    return None


def _locate(name: str, roots: Sequence[Path]) -> Path | None:
    paths = [Path(name)] if Path(name).is_absolute() else [root / name for root in roots]
    return next((path for path in paths if path.is_file()), None)


def _normal(path: Path) -> Path:
    """Without `.` and `..`; an empty path where it would leave the root."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if not parts:
                return Path()
            parts.pop()
        elif part != ".":
            parts.append(part)
    return Path(*parts)
