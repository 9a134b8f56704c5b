"""The last known texts of files, within bounds.

Responsible for remembering texts (the latest used) and fingerprints of more files than texts are
kept for. Knows nothing of why files are read.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from pathlib import Path

# Most text kept, in code points, and most files that a fingerprint is kept of.
MAX_CHARS = 16_000_000
MAX_FILES = 100_000


class TextCache:
    """Texts by path; the least recently used go first. Safe to use from several threads."""

    def __init__(self, max_chars: int = MAX_CHARS, max_files: int = MAX_FILES) -> None:
        self.max_chars = max_chars
        self.max_files = max_files
        self._texts: OrderedDict[Path, str] = OrderedDict()
        self._chars = 0
        self._prints: OrderedDict[Path, bytes] = OrderedDict()
        self._lock = threading.RLock()
        # False once a file has been forgotten, so that an unknown one may not be new.
        self.complete = True

    @property
    def full(self) -> bool:
        """Whether a further text would drive out another one."""
        return self._chars >= self.max_chars or len(self._prints) >= self.max_files

    def __contains__(self, path: Path) -> bool:
        """Whether the file has been seen, even when its text is not kept."""
        return path in self._prints

    def note(self, path: Path) -> None:
        """Remember that the file is there, without its text."""
        with self._lock:
            if len(self._prints) < self.max_files:
                self._prints.setdefault(path, b"")
            else:
                self.complete = False

    def put(self, path: Path, text: str) -> None:
        """Remember a text.

        One that alone is longer than all that may be kept is kept as a fingerprint.
        """
        with self._lock:
            self._drop(path)
            self._prints[path] = _fingerprint(text)
            self._prints.move_to_end(path)
            if len(text) <= self.max_chars:
                self._texts[path] = text
                self._chars += len(text)
            while self._chars > self.max_chars:
                self._drop(next(iter(self._texts)))
            while len(self._prints) > self.max_files:
                self._drop(self._prints.popitem(last=False)[0])
                self.complete = False

    def get(self, path: Path) -> str | None:
        """The text, or None when it is not kept."""
        with self._lock:
            if path in self._texts:
                self._texts.move_to_end(path)
            return self._texts.get(path)

    def pop(self, path: Path) -> str | None:
        """Forget the file; the text it had, or None."""
        with self._lock:
            self._prints.pop(path, None)
            return self._drop(path)

    def same(self, path: Path, text: str) -> bool:
        """Whether the file is known to hold exactly this text."""
        return self._prints.get(path) == _fingerprint(text)

    def below(self, folder: Path) -> list[Path]:
        """Files that were seen below a folder."""
        with self._lock:
            return [path for path in self._prints if path.is_relative_to(folder)]

    def _drop(self, path: Path) -> str | None:
        text = self._texts.pop(path, None)
        if text is not None:
            self._chars -= len(text)
        return text


def _fingerprint(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
