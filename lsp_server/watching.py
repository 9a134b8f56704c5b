"""Changes made outside of the editor, as edit history.

Responsible for choosing who watches (the client where it can, our own watcher otherwise) and for
turning events into (name, text before, text after). Knows nothing of how history is kept.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from diffing.text_cache import TextCache
from lsp_server.workspace import file_path

if TYPE_CHECKING:
    from diffing.watch import FileWatcher
    from lsp_server.server import RedraftServer

logger = logging.getLogger(__name__)

_BURST = 4
_BURST_S = 2.0
"""More changes than `_BURST` in this time are a checkout or a formatter run, not an edit."""


class Watching:
    """Watches while the setting says so."""

    def __init__(self, server: RedraftServer) -> None:
        self._server = server
        self._known = TextCache()
        self._watcher: FileWatcher | None = None
        self._registration: str | None = None
        self._recent: list[float] = []

    async def start(self) -> None:
        """Begin, or begin anew after the settings or the folders have changed."""
        self.stop()
        setting = self._server.session.settings.watch_files
        if setting == "off" or not self._server.session.settings.enable:
            return
        if setting == "auto" and self._client_can_watch():
            await self._register()
        else:
            self._start_watcher()

    def stop(self) -> None:
        if self._watcher is not None:
            watcher, self._watcher = self._watcher, None
            threading.Thread(target=watcher.stop, daemon=True).start()

    def events(self, changes: Sequence[lsp.FileEvent]) -> None:
        """The client's own events (workspace/didChangeWatchedFiles)."""
        workspace = self._server.session.workspace
        for event in changes[:100]:
            path = file_path(event.uri)
            if path is None:
                continue
            if path.name in (".gitignore", ".ignore"):
                self._server.session.policy_changed()
            text, _ = workspace.policy.read(path)
            before = self._known.get(path) if path in self._known else None
            if text is None:
                self._known.pop(path)
            else:
                self._known.put(path, text)
                self._changed(path, before, text)

    def remember(self, uri: str, text: str) -> None:
        """What the editor has just read or written: not a change by another program."""
        path = file_path(uri)
        session = self._server.session
        if path is None or not path.is_absolute() or session.workspace.policy.verdict(path):
            return
        if self._watcher is not None:
            self._watcher.remember(path, text)
        self._known.put(path, text)

    def _client_can_watch(self) -> bool:
        workspace = self._server.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace else None
        return bool(watched and watched.dynamic_registration)

    async def _register(self) -> None:
        if self._registration is not None:
            return
        self._registration = uuid.uuid4().hex
        registration = lsp.Registration(
            id=self._registration,
            method=lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES,
            register_options=lsp.DidChangeWatchedFilesRegistrationOptions(
                watchers=[lsp.FileSystemWatcher(glob_pattern="**/*")]
            ),
        )
        try:
            await asyncio.wait_for(
                self._server.client_register_capability_async(
                    lsp.RegistrationParams(registrations=[registration])
                ),
                10,
            )
        except Exception as error:  # whatever the client answers, the session goes on
            logger.warning("the client does not watch files after all: %r", error)
            self._registration = None
            self._start_watcher()

    def _start_watcher(self) -> None:
        from diffing.watch import FileWatcher

        workspace = self._server.session.workspace
        if not workspace.roots:
            return
        loop = asyncio.get_running_loop()

        def on_change(path: str, before: str | None, after: str | None) -> None:
            if after is not None:
                loop.call_soon_threadsafe(self._changed, Path(path), before, after)

        self._watcher = FileWatcher(workspace.roots, workspace.policy, on_change)
        self._watcher.start()

    def _changed(self, path: Path, before: str | None, after: str) -> None:
        if not before or before == after:
            return
        now = time.monotonic()
        self._recent = [t for t in self._recent if now - t < _BURST_S] + [now]
        if len(self._recent) <= _BURST:
            session = self._server.session
            session.changed_on_disk(session.workspace.path_name(path.as_uri()), before, after)
