"""What .gitignore files say about a path.

Responsible for finding the ignore files that apply (nested ones, and .git/info/exclude) and for
remembering what was read. Knows nothing of secrets, settings or the text of any other file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

# Largest ignore file that is read, in bytes, and most folders whose verdict is remembered.
MAX_IGNORE_BYTES = 1_000_000
MAX_REMEMBERED = 50_000


class IgnoreRules:
    """Verdicts of git's ignore files. Each file answers to its deepest workspace folder only.

    The rules of that folder, of the folders below it and of the repository above it apply; those of
    another workspace folder that lies above it do not, and a workspace folder as such is never
    ignored.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._specs: dict[Path, list[GitIgnoreSpec]] = {}
        self._ignored: dict[Path, bool] = {}
        self._chains: dict[Path, list[Path]] = {}

    def refresh(self) -> None:
        """Forget what was read."""
        self._specs.clear()
        self._ignored.clear()
        self._chains.clear()

    def ignored(self, path: Path, *, is_folder: bool = False) -> bool:
        """Whether an absolute path is ignored, by a rule for itself or for a folder around it."""
        if path in self._folders:
            return False
        top = self._top(path.parent)
        if top is None:
            return False
        if path.parent != top and self._folder_ignored(path.parent, top):
            return True
        return self._matches(path, top, is_folder)

    def _folder_ignored(self, folder: Path, top: Path) -> bool:
        known = self._ignored.get(folder)
        if known is None:
            known = folder != top and folder.is_relative_to(top)
            known = known and (
                self._folder_ignored(folder.parent, top) or self._matches(folder, top, True)
            )
            if len(self._ignored) >= MAX_REMEMBERED:
                self._ignored.clear()
            self._ignored[folder] = known
        return known

    def _matches(self, path: Path, top: Path, is_folder: bool) -> bool:
        """What the last matching rule says, deepest ignore file first."""
        end = "/" if is_folder else ""
        for base in [*_upwards(path.parent, top), *self._above(top)]:
            for spec in self._rules_in(base):
                # Whoever opens an ignored folder as his workspace wants to work there.
                if base != top and top.is_relative_to(base) and _ignores(spec, top, base):
                    continue
                included = spec.check_file(path.relative_to(base).as_posix() + end).include
                if included is not None:
                    return included
        return False

    def _top(self, folder: Path) -> Path | None:
        """The deepest workspace folder around `folder`, or the repository where there is none."""
        inside = [root for root in self._folders if folder.is_relative_to(root)]
        if inside:
            return max(inside, key=lambda root: len(root.parts))
        return next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)

    def _above(self, top: Path) -> list[Path]:
        """Folders above a workspace folder whose rules apply to it: up to its repository."""
        chain = self._chains.get(top)
        if chain is None:
            chain = []
            if not (top / ".git").exists():
                for parent in top.parents:
                    if parent in self._folders:
                        chain = []
                        break
                    chain.append(parent)
                    if (parent / ".git").exists():
                        break
                else:
                    chain = []
            self._chains[top] = chain
        return chain

    def _rules_in(self, folder: Path) -> list[GitIgnoreSpec]:
        specs = self._specs.get(folder)
        if specs is None:
            names = (folder / ".gitignore", folder / ".git" / "info" / "exclude")
            specs = [spec for name in names if (spec := _read(name)) is not None]
            if len(self._specs) >= MAX_REMEMBERED:
                self._specs.clear()
            self._specs[folder] = specs
        return specs


def _upwards(folder: Path, top: Path) -> list[Path]:
    """`folder` and the folders above it up to `top`."""
    return [folder, *(p for p in folder.parents if p.is_relative_to(top))]


def _ignores(spec: GitIgnoreSpec, folder: Path, base: Path) -> bool:
    return bool(spec.check_file(folder.relative_to(base).as_posix() + "/").include)


def _read(path: Path) -> GitIgnoreSpec | None:
    try:
        if not os.path.isfile(path) or path.stat().st_size > MAX_IGNORE_BYTES:
            return None
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    patterns = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:  # one bad pattern must not switch off the others
            continue
        patterns.append(line)
    return GitIgnoreSpec.from_lines(patterns)
