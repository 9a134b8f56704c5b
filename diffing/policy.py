"""Which files may be read, and why not.

Responsible for the verdict on a path or URI (secrets, the user's globs, .gitignore, schemes), for
the guard on a text (size, line length, binary) and for reading a file under both. Knows nothing of
editors, history or models.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from diffing.globs import Globs
from diffing.ignore_rules import IgnoreRules
from diffing.secret_files import is_secret

SECRET_FILE = "secret-file"
EXCLUDED_BY_SETTING = "excluded-by-setting"
GIT_IGNORED = "git-ignored"
UNSUPPORTED_SCHEME = "unsupported-scheme"
TOO_LARGE = "too-large"
LINE_TOO_LONG = "line-too-long"
BINARY = "binary"
UNREADABLE = "unreadable"

# Limits of a text that Redraft works on, in code points; 100,000 lines of source are below them.
MAX_TEXT_CHARS = 8_000_000
MAX_LINE_CHARS = 20_000
# Largest file that is read from disk, in bytes.
MAX_FILE_BYTES = 2_000_000

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


class FilePolicy:
    """Verdicts on files under one or more workspace folders.

    `exclude` and `allow` are globs in gitignore's syntax (see `Globs`), relative to the workspace
    folder of the file. `exclude` adds to the built-in list of secrets; a file that matches `allow`
    is readable whatever the lists and .gitignore say. A symbolic link is judged as itself and as
    what it points to. ValueError when a glob is malformed.
    """

    def __init__(
        self,
        roots: Iterable[str | os.PathLike[str]],
        exclude: Sequence[str] = (),
        allow: Sequence[str] = (),
        respect_gitignore: bool = True,
    ) -> None:
        self.roots = [Path(os.path.abspath(root)) for root in roots]
        self.respect_gitignore = respect_gitignore
        # Folders as given and as resolved: a resolved path has to find its folder too.
        self._folders = list(dict.fromkeys([*self.roots, *(_resolved(r) for r in self.roots)]))
        self._exclude = Globs(exclude, ignore_case=True)
        self._allow = Globs(allow)
        self._ignore_rules = IgnoreRules(self._folders)

    def verdict(self, path_or_uri: str | os.PathLike[str], *, opened: bool = False) -> str | None:
        """None when the file may be read, otherwise a named reason.

        A relative path counts from the first workspace folder. With `opened` the file is one that
        the user has open in the editor: .gitignore does not speak about it, nor about untitled
        documents. Schemes other than `file:` and `untitled:` are refused.
        """
        try:
            path = path_of(path_or_uri)
        except ValueError:
            return UNSUPPORTED_SCHEME
        path = self._absolute(path)
        opened = opened or os.fspath(path_or_uri).lower().startswith("untitled:")
        for candidate in dict.fromkeys((path, _resolved(path))):
            reason = self._judge(candidate, opened)
            if reason is not None:
                return reason
        return None

    def ignores_folder(self, path: str | os.PathLike[str]) -> bool:
        """Whether nothing below this folder may be read."""
        folder = self._absolute(Path(path))
        root = self.folder_of(folder)
        if self._allow.permits(folder, root, is_folder=True):
            return False
        if is_secret(folder, root, is_folder=True):
            return True
        if self._exclude.excludes(folder, root, is_folder=True):
            return True
        return self.respect_gitignore and self._ignore_rules.ignored(folder, is_folder=True)

    def read(self, path: str | os.PathLike[str]) -> tuple[str | None, str | None]:
        """The text of a file and None, or None and the reason why it may not or cannot be read."""
        reason = self.verdict(path)
        if reason is not None:
            return None, reason
        full = self._absolute(Path(path))
        try:
            if not os.path.isfile(full):  # opening a pipe would wait for its other end
                return None, UNREADABLE
            with open(full, "rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except (OSError, ValueError):
            return None, UNREADABLE
        if len(data) > MAX_FILE_BYTES:
            return None, TOO_LARGE
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return None, BINARY
        reason = content_reason(text)
        return (None, reason) if reason else (text, None)

    def refresh(self) -> None:
        """Forget the ignore files that were read, after one of them has changed."""
        self._ignore_rules.refresh()

    def folder_of(self, path: str | os.PathLike[str]) -> Path | None:
        """The deepest workspace folder that holds the file."""
        full = self._absolute(Path(path))
        folders = [folder for folder in self._folders if full.is_relative_to(folder)]
        return max(folders, key=lambda folder: len(folder.parts), default=None)

    def _absolute(self, path: Path) -> Path:
        base = self.roots[0] if self.roots else Path.cwd()
        return Path(os.path.normpath(base / path))

    def _judge(self, path: Path, opened: bool) -> str | None:
        root = self.folder_of(path)
        if self._allow.permits(path, root):
            return None
        if is_secret(path, root):
            return SECRET_FILE
        if self._exclude.excludes(path, root):
            return EXCLUDED_BY_SETTING
        if self.respect_gitignore and not opened and self._ignore_rules.ignored(path):
            return GIT_IGNORED
        return None


def path_of(path_or_uri: str | os.PathLike[str]) -> Path:
    """The path that a `file:` or `untitled:` URI or a plain path means.

    ValueError for any other scheme.
    """
    text = os.fspath(path_or_uri)
    match = _SCHEME.match(text)
    # One letter and a colon is a Windows drive, and an existing file may have a colon in its name.
    if match is None:
        return Path(text)
    scheme = match[1].lower()
    if scheme == "untitled":
        return Path(unquote(text[len(match[0]) :]) or "untitled")
    if scheme != "file":
        raise ValueError(f"unsupported scheme: {scheme}")
    parts = urlsplit(text)
    name = unquote(parts.path)
    if re.match(r"/[A-Za-z]:", name):
        name = name[1:]
    if parts.netloc and parts.netloc != "localhost":
        name = f"//{parts.netloc}{name}"
    return Path(name)


def content_reason(text: str) -> str | None:
    """None when Redraft may work on `text`, otherwise "too-large", "binary" or "line-too-long"."""
    if len(text) > MAX_TEXT_CHARS:
        return TOO_LARGE
    if "\0" in text:
        return BINARY
    position = 0
    while len(text) - position > MAX_LINE_CHARS:
        window = position + MAX_LINE_CHARS + 1
        end = max(text.rfind("\n", position, window), text.rfind("\r", position, window))
        if end < 0:
            return LINE_TOO_LONG
        position = end + 1
    return None


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path
