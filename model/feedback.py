"""What became of suggestions: a small SQLite store on the user's own machine.

Responsible for the file: its place, its schema and migrations, its bounds in size and age, reading it again, exporting
and purging it. It holds numbers (features, times, outcomes) and text only where the caller hands it some. Knows nothing
of editors, of who writes, or of what is learned from it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

FOLDER_VARIABLE = "REDRAFT_HOME"
FILE = "feedback.sqlite3"
MAX_SUGGESTIONS = 20_000
MAX_DAYS = 180
MAX_BYTES = 32 * 2**20
DAY_S = 86_400.0
BUSY_S = 5.0
MISSED, SPARED = "missed", "spared"
"""What became of a suggestion that was not shown: the user typed just that, or something else in its place."""


MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE suggestions (
        id TEXT PRIMARY KEY, made REAL NOT NULL, mode TEXT NOT NULL, source TEXT NOT NULL,
        language TEXT NOT NULL, model TEXT NOT NULL, confidence REAL NOT NULL, features TEXT NOT NULL,
        text TEXT
    ) WITHOUT ROWID;
    CREATE INDEX by_time ON suggestions (made);
    CREATE TABLE events (
        suggestion TEXT NOT NULL REFERENCES suggestions (id) ON DELETE CASCADE,
        state TEXT NOT NULL, after REAL NOT NULL, value REAL, why TEXT
    );
    CREATE INDEX of_suggestion ON events (suggestion);
    """,
)
"""One script for each version of the schema; `user_version` counts those that were run."""


class FeedbackError(Exception):
    """The store cannot be used; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """A suggestion that was offered. `made` is Unix time; `text` is None unless the user keeps text. `group` is
    set where a simulation made it, and not kept in a store."""

    id: str
    made: float
    mode: str
    source: str
    confidence: float
    features: Mapping[str, float] = field(default_factory=dict)
    language: str = ""
    model: str = ""
    text: Mapping[str, Any] | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a suggestion `after` seconds; `value` is the kept rate of `settled` and the accepted
    length of `partly-accepted`, `why` the reason where a state has several."""

    suggestion: str
    state: str
    after: float
    value: float | None = None
    why: str | None = None


Record = Suggested | Event


@dataclass(frozen=True, slots=True)
class Life:
    """One suggestion with all its events, in order."""

    suggested: Suggested
    events: tuple[Event, ...]


def data_folder() -> Path:
    """Where Redraft keeps what it learns of its user: `$REDRAFT_HOME`, else the platform's folder for such data."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else user_data_path("redraft", appauthor=False)


class Store:
    """An open store, for one thread. Raises `FeedbackError` where the file cannot be used.

    What `write` has returned for survives the end of the process, however it ends (write-ahead log).
    """

    def __init__(
        self,
        path: Path,
        *,
        max_suggestions: int = MAX_SUGGESTIONS,
        max_days: float = MAX_DAYS,
        max_bytes: int = MAX_BYTES,
        migrations: Sequence[str] = MIGRATIONS,
    ) -> None:
        self.path = path
        self._bounds = (max_suggestions, max_days, max_bytes)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            path.chmod(0o600)  # what SQLite puts beside it takes over its mode
            self._db = _connect(path)
            self._migrate(migrations)
        except (OSError, sqlite3.Error) as error:
            raise FeedbackError(f"the feedback store {path} cannot be used: {error}") from error

    def _migrate(self, migrations: Sequence[str]) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > len(migrations):
            raise FeedbackError(f"the feedback store {self.path} was made by a newer Redraft")
        for number, script in enumerate(migrations[version:], version + 1):
            # executescript commits what is open, so the transaction is part of the script.
            self._db.executescript(
                f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;"
            )

    def write(self, records: Iterable[Record]) -> None:
        """Keep all of `records`, in one transaction. Events of unknown suggestions are passed over."""
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                for record in records:
                    if isinstance(record, Suggested):
                        self._db.execute(
                            "INSERT OR REPLACE INTO suggestions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                            _row(record),
                        )
                    else:
                        self._db.execute(
                            "INSERT INTO events SELECT ?, ?, ?, ?, ? "
                            "WHERE EXISTS (SELECT 1 FROM suggestions WHERE id = ?)",
                            (*_happened(record), record.suggestion),
                        )
        except sqlite3.Error as error:
            raise FeedbackError(
                f"the feedback store {self.path} cannot be written: {error}"
            ) from error

    def prune(self, now: float | None = None) -> int:
        """Delete what is too old or too much, the oldest first; how many suggestions went."""
        most, days, size = self._bounds
        before = len(self)
        oldest = (time.time() if now is None else now) - days * DAY_S
        with self._db:
            self._db.execute("DELETE FROM suggestions WHERE made < ?", (oldest,))
            self._drop_oldest(len(self) - most)
        while self.size() > size and len(self):
            with self._db:
                self._drop_oldest(max(1, len(self) // 10))
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before - len(self)

    def _drop_oldest(self, count: int) -> None:
        oldest = "SELECT id FROM suggestions ORDER BY made LIMIT ?"
        self._db.execute(f"DELETE FROM suggestions WHERE id IN ({oldest})", (max(0, count),))

    def size(self) -> int:
        """Bytes in use, those of deleted rows left out."""
        page, count, free = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        return int(page * (count - free))

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM suggestions").fetchone()[0])

    def lives(self) -> Iterator[Life]:
        """All suggestions with their events, oldest first."""
        happened: dict[str, list[Event]] = {}
        for row in self._db.execute(
            "SELECT suggestion, state, after, value, why FROM events ORDER BY rowid"
        ):
            happened.setdefault(row[0], []).append(Event(*row))
        columns = "id, made, mode, source, confidence, features, language, model, text"
        for row in self._db.execute(f"SELECT {columns} FROM suggestions ORDER BY made, id"):
            features, text = json.loads(row[5]), None if row[8] is None else json.loads(row[8])
            id, made, mode, source, confidence = row[:5]
            known = (features, row[6], row[7], text)
            suggested = Suggested(id, made, mode, source, confidence, *known)
            yield Life(suggested, tuple(happened.get(row[0], ())))

    def empty(self) -> int:
        """Forget everything, in the write-ahead log and in unused pages too; how many suggestions there were."""
        count = len(self)
        with self._db:
            self._db.execute("DELETE FROM suggestions")
            self._db.execute("DELETE FROM events")
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return count

    def alone(self) -> bool:
        """Whether nobody else has the store open; the write-ahead log is given up then."""
        try:
            (mode,) = self._db.execute("PRAGMA journal_mode = DELETE").fetchone()
        except sqlite3.OperationalError:
            return False
        return bool(mode == "delete")

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def purge(path: Path) -> int:
    """Delete a store; how many suggestions it held. One that a running server has open is emptied and stays."""
    if not path.exists():
        return 0
    with Store(path) as store:
        count = store.empty()
        alone = store.alone()
    if alone:
        for name in (path.name, path.name + "-wal", path.name + "-shm"):
            path.with_name(name).unlink(missing_ok=True)
    return count


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA journal_size_limit = 1048576")
    return db


def _row(one: Suggested) -> tuple[Any, ...]:
    text = None if one.text is None else json.dumps(one.text)
    features = json.dumps({name: round(float(v), 5) for name, v in one.features.items()})
    known = (one.mode, one.source, one.language, one.model, one.confidence)
    return (one.id, one.made, *known, features, text)


def _happened(one: Event) -> tuple[Any, ...]:
    return one.suggestion, one.state, one.after, one.value, one.why


def to_json(life: Life) -> dict[str, Any]:
    """One line of an export."""
    one = life.suggested
    row: dict[str, Any] = {"id": one.id, "made": one.made, "mode": one.mode, "source": one.source}
    row |= {"confidence": one.confidence, "features": dict(one.features)}
    row |= {"language": one.language, "model": one.model}
    if one.group:
        row["group"] = one.group
    if one.text is not None:
        row["text"] = dict(one.text)
    row["events"] = [
        {"state": e.state, "after": e.after, "value": e.value, "why": e.why} for e in life.events
    ]
    return row


def read_lives(path: Path) -> list[Life]:
    """An export's suggestions. `FeedbackError` says which line is none, `OSError` that the file cannot be read."""
    found = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    found.append(from_json(json.loads(line.decode("utf-8"))))
            except UnicodeDecodeError:
                raise FeedbackError(f"{path}, line {number}: not UTF-8 text") from None
            except (ValueError, FeedbackError) as error:
                raise FeedbackError(f"{path}, line {number}: {error}") from error
    return found


def from_json(row: Mapping[str, Any]) -> Life:
    """The inverse of `to_json`. `FeedbackError` says what is wrong with the row."""
    try:
        suggested = Suggested(
            str(row["id"]),
            float(row["made"]),
            str(row["mode"]),
            str(row["source"]),
            float(row["confidence"]),
            {str(name): float(value) for name, value in row["features"].items()},
            str(row.get("language", "")),
            str(row.get("model", "")),
            row.get("text"),
            str(row.get("group", "")),
        )
        events = tuple(
            Event(suggested.id, e["state"], float(e["after"]), e.get("value"), e.get("why"))
            for e in row["events"]
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FeedbackError(f"not a line of feedback: {error!r}") from error
    return Life(suggested, events)
