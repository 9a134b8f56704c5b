"""The workspace folders, the policy that holds in them, and the names of files.

Responsible for which paths there are and whether they may be read. Knows nothing of open documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types as lsp

from diffing.policy import FilePolicy, path_of
from lsp_server.settings import Settings


class Workspace:
    """Folders and policy; both are replaced as a whole when something changes."""

    def __init__(self) -> None:
        self.roots: list[Path] = []
        self.policy = FilePolicy([])
        self._settings = Settings()

    def initialize(self, params: lsp.InitializeParams) -> None:
        uris = [folder.uri for folder in params.workspace_folders or []]
        if not uris and params.root_uri:
            uris = [params.root_uri]
        roots = [path for uri in uris if (path := file_path(uri)) is not None]
        if not roots and params.root_path:
            roots = [Path(params.root_path)]
        self.set_roots(roots)

    def set_roots(self, roots: Iterable[Path]) -> None:
        self.roots = list(dict.fromkeys(roots))
        self._renew_policy()

    def change_folders(self, event: lsp.WorkspaceFoldersChangeEvent) -> None:
        removed = {file_path(folder.uri) for folder in event.removed}
        added = [path for folder in event.added if (path := file_path(folder.uri)) is not None]
        self.set_roots([root for root in self.roots if root not in removed] + added)

    def apply_settings(self, settings: Settings) -> None:
        self._settings = settings
        self._renew_policy()

    def _renew_policy(self) -> None:
        self.policy = FilePolicy(
            self.roots, exclude=self._settings.exclude, allow=self._settings.allow
        )

    def path_name(self, uri: str) -> str:
        """How prompts and history name a file: relative to its workspace folder if it has one."""
        path = file_path(uri)
        if path is None:
            return uri
        folder = self.policy.folder_of(path) if path.is_absolute() else None
        return (path.relative_to(folder) if folder else path).as_posix()

    def resolve(self, name: str) -> Path | None:
        """The file that `path_name` named; None when no such file exists."""
        candidates = [Path(name)] if Path(name).is_absolute() else [r / name for r in self.roots]
        return next((path for path in candidates if path.is_file()), None)

    def excludes(self, name: str) -> bool:
        """Whether a file that `path_name` named may not be read, be it there or gone.

        Where the name stands for files of several folders, one that may not is enough.
        """
        files = [Path(name)] if Path(name).is_absolute() else [root / name for root in self.roots]
        there = [path for path in files if path.is_file()] or files
        return any(self.policy.verdict(path, opened=True) is not None for path in there)


def file_path(uri: str) -> Path | None:
    """The path that a URI means; None for schemes that are no files."""
    try:
        return path_of(uri)
    except ValueError:
        return None
