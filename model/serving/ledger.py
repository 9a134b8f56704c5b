"""Which answers went out, and what their users made of them.

Responsible for remembering recent answers by id and for writing those that feedback comes for to the user's store, off
the event loop. Nothing is kept of an answer that nobody reports on, for it may never have been seen. Holds numbers, no
text. Knows nothing of HTTP.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from model.feedback import Event, FeedbackError, Record, Store, Suggested
from model.protocol import Mode, Prediction

logger = logging.getLogger(__name__)

REMEMBERED = 4096
STATES = {"accept": "accepted", "reject": "rejected", "ignore": "ignored"}
MAX_WAITING = 1024


class Ledger:
    """Recent answers. `path` is the store's file; None keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._sent: OrderedDict[str, tuple[Suggested, float]] = OrderedDict()
        self._lock = threading.Lock()
        self._waiting = 0
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="feedback")
        self._store: Store | None = None
        self.problem = ""

    def sent(self, id: str, mode: Mode, path: str, made: Prediction) -> None:
        """An answer goes out under this id."""
        language = PurePosixPath(path).suffix.removeprefix(".")
        suggested = Suggested(
            id,
            time.time(),
            mode,
            made.source,
            made.confidence,
            dict(made.features),
            language,
            made.model,
        )
        with self._lock:
            self._sent[id] = (suggested, time.monotonic())
            while len(self._sent) > REMEMBERED:
                self._sent.popitem(last=False)

    def heard(self, id: str, action: str) -> bool:
        """What a user did with an answer; False when no such answer is remembered. An answer counts once."""
        with self._lock:
            known = self._sent.pop(id, None)
            if known is None:
                return False
            if self._path is None or self._waiting >= MAX_WAITING:
                return True
            self._waiting += 1
        suggested, at = known
        after = time.monotonic() - at
        records: list[Record] = [
            suggested,
            Event(id, "shown", 0.0),
            Event(id, STATES[action], after),
        ]
        self._writer.submit(self._write, self._path, records)
        return True

    def close(self) -> None:
        """Write what waits, and close the store; what is heard afterwards is not kept."""
        with self._lock:
            closed, self._path = self._path is None, None
        if not closed:
            self._writer.submit(self._close)
        self._writer.shutdown()

    def _write(self, path: Path, records: list[Record]) -> None:
        try:
            if self._store is None:
                self._store = Store(path)
                self._store.prune()
            self._store.write(records)
        except FeedbackError as error:
            self.problem = str(error)
            logger.warning("%s", error)
        finally:
            with self._lock:
                self._waiting -= 1

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
