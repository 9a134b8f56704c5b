"""The store of feedback on disk."""

from __future__ import annotations

import json
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from model.feedback import (
    MIGRATIONS,
    Event,
    FeedbackError,
    Store,
    Suggested,
    data_folder,
    from_json,
    purge,
    to_json,
)

ROOT = Path(__file__).parents[2]
DAY = 86_400.0


def suggested(number: int, made: float | None = None, **more) -> Suggested:
    features = {"prior": -1.5, "rule:span": 1.0}
    at = float(number) if made is None else made
    return Suggested(f"s{number}", at, "next_edit", "draft", 0.25, features, "python", "m", **more)


def test_a_life_comes_back_as_it_was_written(tmp_path) -> None:
    path = tmp_path / "deep" / "feedback.sqlite3"
    with Store(path) as store:
        store.write([suggested(1), Event("s1", "shown", 0.1), suggested(2, text={"path": "a.py"})])
        store.write([Event("s1", "accepted", 1.5), Event("unknown", "accepted", 1.0)])
        store.write([Event("s1", "settled", 12.0, 0.75)])
    with Store(path) as store:
        first, second = store.lives()
    assert first.suggested == suggested(1)
    assert [(e.state, e.after, e.value) for e in first.events] == [
        ("shown", 0.1, None),
        ("accepted", 1.5, None),
        ("settled", 12.0, 0.75),
    ]
    assert (second.suggested.text, second.events) == ({"path": "a.py"}, ())
    assert from_json(json.loads(json.dumps(to_json(first)))) == first
    files = [path, *path.parent.glob(path.name + "-*")]
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    with pytest.raises(FeedbackError, match="KeyError"):
        from_json({"id": "1"})


def test_old_and_surplus_suggestions_go_with_their_events(tmp_path) -> None:
    with Store(tmp_path / "f", max_suggestions=3, max_days=10) as store:
        store.write([suggested(n, n * DAY) for n in range(30)])
        store.write([Event(f"s{n}", "accepted", 1.0) for n in range(30)])
        assert store.prune(now=30 * DAY) == 27
        assert [life.suggested.id for life in store.lives()] == ["s27", "s28", "s29"]
        assert store._db.execute("SELECT count(*) FROM events").fetchone() == (3,)


def test_the_size_is_bounded(tmp_path) -> None:
    with Store(tmp_path / "f", max_bytes=200_000, max_days=1e6) as store:
        store.write([suggested(n, text={"around": "x" * 1000}) for n in range(500)])
        assert store.size() > 200_000
        gone = store.prune(now=500.0)
        assert 0 < gone < 500
        assert store.size() <= 200_000
        assert [life.suggested.id for life in store.lives()][-1] == "s499"


def test_a_store_is_migrated_and_a_newer_one_left_alone(tmp_path) -> None:
    path = tmp_path / "f"
    with Store(path) as store:
        store.write([suggested(1)])
    newer = (*MIGRATIONS, "ALTER TABLE suggestions ADD COLUMN note TEXT")
    with Store(path, migrations=newer) as store:
        assert store._db.execute("SELECT id, note FROM suggestions").fetchall() == [("s1", None)]
        assert store._db.execute("PRAGMA user_version").fetchone() == (2,)
    with pytest.raises(FeedbackError, match="newer Redraft"):
        Store(path)
    with pytest.raises(FeedbackError, match="cannot be used"):
        Store(path, migrations=(*newer, "CREATE TABLE broken (", "SELECT 1"))
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (2,)


def test_a_file_that_is_no_store_is_named_and_kept(tmp_path) -> None:
    path = tmp_path / "f"
    path.write_text("no database, and longer than a header of one: " + "x" * 200)
    with pytest.raises(FeedbackError, match="cannot be used: file is not a database"):
        Store(path)
    assert path.read_text().startswith("no database")


WRITE = """
import sys
from pathlib import Path
from model.feedback import Event, Store, Suggested
store = Store(Path(sys.argv[1]))
for number in range(500):
    store.write([Suggested(f"s{number}", number, "fim", "draft", 0.5), Event(f"s{number}", "shown", 1)])
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path) -> None:
    for attempt in range(20):
        path = tmp_path / str(attempt)
        with subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path)],
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": str(ROOT)},
        ) as writer:
            assert writer.stdout is not None
            seen = [writer.stdout.readline() for _ in range(5 + 20 * attempt)]
            writer.kill()
            seen += writer.stdout.readlines()
        acknowledged = [int(line) for line in seen if line.endswith(b"\n")]
        assert len(acknowledged) >= 5 + 20 * attempt
        with Store(path) as store:
            found = {life.suggested.id: life.events for life in store.lives()}
        assert all(found[f"s{number}"][0].state == "shown" for number in acknowledged)


def test_purging_leaves_nothing(tmp_path) -> None:
    path = tmp_path / "f"
    assert purge(path) == 0
    with Store(path) as store:
        store.write([suggested(n, text={"around": "SECRET_WORD"}) for n in range(50)])
        assert any(b"SECRET_WORD" in file.read_bytes() for file in tmp_path.iterdir())
        assert purge(path) == 50  # a server still has it open: emptied, but not pulled away
        assert not any(b"SECRET_WORD" in file.read_bytes() for file in tmp_path.iterdir())
        store.write([suggested(99)])
        assert len(store) == 1
    assert purge(path) == 1
    assert list(tmp_path.iterdir()) == []


def test_where_it_lies(home, monkeypatch) -> None:
    assert data_folder() == home
    monkeypatch.delenv("REDRAFT_HOME")
    assert data_folder().name == "redraft"
