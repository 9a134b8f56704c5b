"""Changes that are made to files outside of the editor.

Responsible for noticing them with watchdog where the client cannot watch, and for telling the text
before and after. Knows nothing of LSP or of open documents; `remember` tells it what the editor
itself has written.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from diffing.policy import UNREADABLE, FilePolicy
from diffing.text_cache import TextCache

log = logging.getLogger(__name__)

# Folders watched at most. The operating system's limit is shared with the editor and other
# programs.
MAX_WATCHES = 4096
# Seconds of quiet after which a changed file is read, and most seconds that it may be kept waiting.
DEBOUNCE = 0.15
MAX_DELAY = 1.0
# Changed files waiting to be read at most; what comes on top (a large checkout) is not told.
MAX_PENDING = 10_000

# Folders of tools and of what they make; nothing below them is looked at.
# fmt: off
PRUNED_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", ".venv", "venv",
        "__pycache__", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache",
        ".hypothesis", ".cache", ".gradle", ".idea", ".next", ".nuxt", ".terraform",
        "target", "dist", "site-packages",
    }
)
# fmt: on

# Where one watch covers a whole tree at no extra cost, events are filtered instead of watches
# pruned.
_WHOLE_TREE = sys.platform in ("darwin", "win32")
_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
]
if _WHOLE_TREE:
    _EVENTS.append(FileModifiedEvent)

Callback = Callable[[str, str | None, str | None], None]


class FileWatcher(FileSystemEventHandler):
    """Calls back with (path, old text, new text) when a file below `roots` has changed.

    Only for text files that the policy allows. The old text is "" for a new file and None where it
    is not known any more; the new text is None when the file is gone. The callback runs on the
    watcher's own thread; what it raises is logged. `start` returns at once: looking through the
    folders is done on that thread too, and `wait_ready` waits for it.
    """

    def __init__(
        self,
        roots: Iterable[str | os.PathLike[str]],
        policy: FilePolicy,
        callback: Callback,
        *,
        debounce: float = DEBOUNCE,
        max_watches: int = MAX_WATCHES,
        observer_factory: Callable[[], BaseObserver] = Observer,
    ) -> None:
        shown = [Path(os.path.abspath(root)) for root in roots]
        self._roots = [(Path(os.path.realpath(root)), root) for root in shown]
        self._policy = policy
        self._callback = callback
        self._debounce = debounce
        self._max_watches = max_watches
        self._observer_factory = observer_factory
        self._observer: BaseObserver | None = None
        self._thread: threading.Thread | None = None
        self._watches: dict[Path, ObservedWatch] = {}
        self._texts = TextCache()
        self._wake = threading.Condition()
        self._pending: dict[Path, tuple[float, float]] = {}  # path -> (due, latest due)
        self._folders: deque[tuple[Path, bool]] = deque()  # (folder, whether it came or went)
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._told: set[str] = set()
        self._complete = True

    @property
    def watch_count(self) -> int:
        """Folders (whole trees on macOS and Windows) that are watched."""
        return len(self._watches)

    def start(self) -> None:
        """Begin to watch.

        Trouble with single folders or with the system's limits is logged once and lived with.
        """
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name="file-watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop for good; no callback begins after this returns (unless it is called from one)."""
        self._stopping.set()
        with self._wake:
            self._wake.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=10)

    def wait_ready(self, timeout: float | None = None) -> bool:
        """Wait until all folders are watched and their texts read. False when it takes longer."""
        return self._ready.wait(timeout)

    def remember(self, path: str | os.PathLike[str], text: str) -> None:
        """Take `text` as what the file holds.

        So the editor's own save is not told as a change.
        """
        self._texts.put(self._real(Path(os.path.abspath(path))), text)

    def __enter__(self) -> FileWatcher:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Note what an event is about; the watcher's thread looks at it later."""
        now = time.monotonic()
        gone = isinstance(event, DirDeletedEvent | DirMovedEvent)
        places = [(event.src_path, not gone), (getattr(event, "dest_path", ""), True)]
        with self._wake:
            for name, present in places:
                if not name:
                    continue
                path = Path(os.fsdecode(name))
                if event.is_directory:
                    self._folders.append((path, present))
                elif path in self._pending or len(self._pending) < MAX_PENDING:
                    latest = self._pending.get(path, (0.0, now + MAX_DELAY))[1]
                    self._pending[path] = (min(now + self._debounce, latest), latest)
                else:
                    self._tell("pending", "too many files changed at once, some are left out")
            self._wake.notify()

    def _run(self) -> None:
        try:
            self._observer = self._observer_factory()
            self._observer.start()
        except (OSError, RuntimeError) as error:
            self._tell("limit", f"cannot watch files: {error}")
            self._observer = None
        try:
            for real, root in self._roots:
                if not real.is_dir():
                    self._tell(f"missing {root}", f"cannot watch {root}: there is no such folder")
                    continue
                for folder in self._watch_tree(real):
                    self._prime(folder)
            self._ready.set()
            while self._observer is not None and not self._stopping.is_set():
                self._work()
        finally:
            self._ready.set()
            if self._observer is not None:
                self._observer.stop()
                self._observer.join(timeout=5)

    def _work(self) -> None:
        """Wait for what is next and do it."""
        with self._wake:
            now = time.monotonic()
            due = [path for path, (when, _) in self._pending.items() if when <= now]
            if not due and not self._folders:
                waits = [when - now for when, _ in self._pending.values()]
                self._wake.wait(min(waits) if waits else None)
                return
            folders = list(self._folders)
            self._folders.clear()
            for path in due:
                del self._pending[path]
        for folder, present in folders:
            self._folder_changed(folder, present)
        for path in due:
            if self._stopping.is_set():
                return
            self._file_changed(path)

    def _folder_changed(self, folder: Path, present: bool) -> None:
        """Watch a folder that has come, with all below it, or let go of one that has gone.

        That a folder has gone may be told after another one has come in its place: its own watch
        and its parent's tell it, in either order.
        """
        exists = folder.is_dir()
        if not (present and exists):
            for watched in [p for p in self._watches if p.is_relative_to(folder)]:
                self._unwatch(watched)
            self._note(self._texts.below(folder))
        if exists and not self._pruned(folder):
            for kept in self._watch_tree(folder):
                self._note(_files_in(kept))

    def _note(self, paths: Iterable[Path]) -> None:
        for path in paths:
            self.on_any_event(FileCreatedEvent(os.fspath(path)))

    def _file_changed(self, path: Path) -> None:
        if path.name == ".gitignore":
            self._policy.refresh()
        if self._pruned(path.parent):
            return
        text, reason = self._policy.read(path)
        if reason == UNREADABLE and not os.path.lexists(path):
            if path in self._texts:
                self._call(path, self._texts.pop(path), None)
        elif text is None:
            self._texts.pop(path)
        elif not self._texts.same(path, text):
            unseen = path not in self._texts and self._complete and self._texts.complete
            old = "" if unseen else self._texts.get(path)
            self._texts.put(path, text)
            self._call(path, old, text)

    def _call(self, path: Path, old: str | None, new: str | None) -> None:
        try:
            self._callback(os.fspath(self._shown(path)), old, new)
        except Exception:
            log.exception("the callback for a changed file failed")

    def _watch_tree(self, top: Path) -> Iterator[Path]:
        """Watch `top` and the kept folders below it, nearest first, and yield each one."""
        queue = deque([top])
        while queue and not self._stopping.is_set():
            folder = queue.popleft()
            if folder in self._watches:
                continue
            covered = _WHOLE_TREE and any(folder.is_relative_to(watch) for watch in self._watches)
            if not covered and not self._watch(folder):
                continue
            yield folder
            queue.extend(child for child in _folders_in(folder) if not self._pruned(child))

    def _watch(self, folder: Path) -> bool:
        if self._observer is None or "limit" in self._told:
            return False
        if len(self._watches) >= self._max_watches:
            self._complete = False
            self._tell(
                "count",
                f"only {self._max_watches} folders are watched for changes outside of the editor",
            )
            return False
        try:
            self._watches[folder] = self._observer.schedule(
                self, os.fspath(folder), recursive=_WHOLE_TREE, event_filter=_EVENTS
            )
        except FileNotFoundError:
            return False
        except (OSError, RuntimeError) as error:  # out of inotify watches, or of threads
            self._complete = False
            self._tell("limit", f"no more folders can be watched than {self.watch_count}: {error}")
            return False
        return True

    def _unwatch(self, folder: Path) -> None:
        watch = self._watches.pop(folder)
        if self._observer is None:
            return
        try:
            self._observer.unschedule(watch)
        except (KeyError, OSError, RuntimeError):
            log.debug("a watch had gone already", exc_info=True)

    def _prime(self, folder: Path) -> None:
        """Read the files of a folder, so that the text before a change is known."""
        for path in _files_in(folder):
            if self._stopping.is_set():
                return
            if self._texts.full:
                self._texts.note(path)
                continue
            text, _ = self._policy.read(path)
            if text is not None:
                self._texts.put(path, text)

    def _pruned(self, folder: Path) -> bool:
        """Whether a folder, or one that it lies in, is not looked at."""
        for real, _ in self._roots:
            if folder == real:
                return False
            if folder.is_relative_to(real):
                names = folder.relative_to(real).parts
                return not PRUNED_FOLDERS.isdisjoint(names) or self._policy.ignores_folder(folder)
        return True

    def _shown(self, path: Path) -> Path:
        for real, root in self._roots:
            if path.is_relative_to(real):
                return root / path.relative_to(real)
        return path

    def _real(self, path: Path) -> Path:
        for real, root in self._roots:
            if path.is_relative_to(root):
                return real / path.relative_to(root)
        return path

    def _tell(self, topic: str, message: str) -> None:
        """Log a warning, once for each topic."""
        if topic not in self._told:
            self._told.add(topic)
            log.warning("%s", message)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _folders_in(folder: Path) -> list[Path]:
    return [Path(e.path) for e in _entries(folder) if e.is_dir(follow_symlinks=False)]


def _files_in(folder: Path) -> list[Path]:
    return [Path(e.path) for e in _entries(folder) if e.is_file(follow_symlinks=False)]
