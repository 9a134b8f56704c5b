"""The user's lists of globs.

Responsible for matching a path against globs in gitignore's syntax, inside of a workspace folder
and outside of all. Knows nothing of what a match means.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from pathspec import GitIgnoreSpec

_WILDCARD = re.compile(r"[*?\[]")


class Globs:
    """Globs relative to the workspace folder of the path that is asked about.

    A glob that begins with `~`, with a drive or with at least two plain folders ("/home/me/...") is
    matched against the absolute path too. Folders above the workspace folder never match a relative
    glob, so that the place where a workspace lies does not decide about its files. ValueError when
    a glob is malformed.
    """

    def __init__(self, globs: Iterable[str], *, ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        expanded = [os.path.expanduser(g) if g.startswith("~") else g for g in globs]
        self._all = self._compile(expanded)
        self._absolute = self._compile(g for g in expanded if _is_absolute(g))
        self._relative = self._compile(g for g in expanded if not g.lstrip("!").startswith("/"))

    def excludes(self, path: Path, root: Path | None, *, is_folder: bool = False) -> bool:
        """Whether an absolute path matches, in doubt yes: outside of all folders any part can."""
        if root is None:
            return self._match(self._all, path.as_posix(), is_folder)
        return self._inside(path, root, is_folder)

    def permits(self, path: Path, root: Path | None, *, is_folder: bool = False) -> bool:
        """Whether an absolute path matches, in doubt no: outside of all folders by name only."""
        if root is None:
            return self._match(self._absolute, path.as_posix(), is_folder) or self._match(
                self._relative, path.name, is_folder
            )
        return self._inside(path, root, is_folder)

    def _inside(self, path: Path, root: Path, is_folder: bool) -> bool:
        if path != root and self._match(self._all, path.relative_to(root).as_posix(), is_folder):
            return True
        return self._match(self._absolute, path.as_posix(), is_folder)

    def _match(self, spec: GitIgnoreSpec, name: str, is_folder: bool) -> bool:
        if not spec.patterns:
            return False
        if self._ignore_case:
            name = name.lower()
        return spec.match_file(name + "/" if is_folder else name)

    def _compile(self, globs: Iterable[str]) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(g.lower() if self._ignore_case else g for g in globs)


def _is_absolute(glob: str) -> bool:
    glob = glob.lstrip("!")
    if re.match(r"[A-Za-z]:[/\\]", glob):
        return True
    plain = _WILDCARD.split(glob, maxsplit=1)[0]
    return glob.startswith("/") and len([part for part in plain.split("/") if part]) >= 2
