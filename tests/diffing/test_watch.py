"""Changes made outside of the editor, on a real file system."""

from __future__ import annotations

import errno
import os
import queue
import threading
from pathlib import Path

import pytest
from watchdog.events import DirDeletedEvent
from watchdog.observers import Observer

from diffing.policy import FilePolicy
from diffing.text_cache import TextCache
from diffing.watch import FileWatcher

TIMEOUT = 20


class Calls(queue.Queue):
    """What the watcher called back with."""

    def __call__(self, path, old, new):
        self.put((Path(path), old, new))

    def next(self):
        return self.get(timeout=TIMEOUT)


@pytest.fixture
def calls():
    return Calls()


@pytest.fixture
def watch(tmp_path, calls):
    watchers = []

    def start(*roots, policy=None, **options) -> FileWatcher:
        roots = roots or (tmp_path,)
        watcher = FileWatcher(
            roots, policy or FilePolicy(roots), calls, **{"debounce": 0.1, **options}
        )
        watcher.start()
        watchers.append(watcher)
        assert watcher.wait_ready(TIMEOUT)
        return watcher

    yield start
    for watcher in watchers:
        watcher.stop()


def sentinel(folder: Path, calls: Calls) -> None:
    """Make a change that must be told, and check that nothing was told before it."""
    path = folder / "sentinel.py"
    path.write_text("done\n")
    assert calls.next() == (path, "", "done\n")


def test_written_created_and_deleted_files(tmp_path, watch, calls):
    path = tmp_path / "src" / "a.py"
    path.parent.mkdir()
    path.write_text("one\n")
    watch()
    path.write_text("two\n")
    assert calls.next() == (path, "one\n", "two\n")
    new = tmp_path / "src" / "new.py"
    new.write_text("new\n")
    assert calls.next() == (new, "", "new\n")
    path.unlink()
    assert calls.next() == (path, "two\n", None)


def test_an_atomic_save_is_a_change_of_the_file(tmp_path, watch, calls):
    path = tmp_path / "a.py"
    path.write_text("one\n")
    watch(debounce=0.4)
    temporary = tmp_path / ".a.py.swp"
    temporary.write_text("two\n")
    os.replace(temporary, path)
    assert calls.next() == (path, "one\n", "two\n")
    # As vim does: the old file becomes a backup that is deleted after the new one has been written.
    os.rename(path, tmp_path / "a.py~")
    path.write_text("three\n")
    (tmp_path / "a.py~").unlink()
    assert calls.next() == (path, "two\n", "three\n")
    sentinel(tmp_path, calls)


def test_what_is_not_a_change_is_not_told(tmp_path, watch, calls):
    path = tmp_path / "a.py"
    path.write_text("one\n")
    watcher = watch()
    path.write_text("one\n")
    path.touch()
    path.read_text()
    watcher.remember(path, "saved by the editor\n")
    path.write_text("saved by the editor\n")
    sentinel(tmp_path, calls)


def test_files_that_may_not_be_read_are_not_told(tmp_path, watch, calls):
    (tmp_path / ".gitignore").write_text("gen/\n*.log\n")
    for name in ("gen", "node_modules/x", ".git/refs", "src"):
        (tmp_path / name).mkdir(parents=True)
    watcher = watch(policy=FilePolicy([tmp_path], exclude=["*.sql"]))
    assert watcher.watch_count == 2  # the root and src
    for name in (".env", "a.log", "a.sql", "gen/a.py", "node_modules/x/a.js", "src/key.pem"):
        (tmp_path / name).write_text("secret\n")
    (tmp_path / "binary.py").write_bytes(b"a\0b")
    (tmp_path / "link.py").symlink_to(tmp_path / ".env")
    sentinel(tmp_path / "src", calls)


def test_new_folders_are_watched(tmp_path, watch, calls):
    watch()
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "one.py").write_text("1\n")
    assert calls.next() == (deep / "one.py", "", "1\n")
    (deep / "one.py").write_text("2\n")
    assert calls.next() == (deep / "one.py", "1\n", "2\n")


def test_folders_that_move_or_go(tmp_path, watch, calls):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.py").write_text("1\n")
    watcher = watch()
    (tmp_path / "old").rename(tmp_path / "new")
    told = {calls.next(), calls.next()}
    assert told == {
        (tmp_path / "old" / "a.py", "1\n", None),
        (tmp_path / "new" / "a.py", "", "1\n"),
    }
    (tmp_path / "new" / "a.py").write_text("2\n")
    assert calls.next() == (tmp_path / "new" / "a.py", "1\n", "2\n")
    (tmp_path / "new" / "a.py").unlink()
    assert calls.next() == (tmp_path / "new" / "a.py", "2\n", None)
    (tmp_path / "new").rmdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "b.py").write_text("3\n")
    assert calls.next() == (tmp_path / "new" / "b.py", "", "3\n")
    (tmp_path / "new" / "b.py").write_text("4\n")
    assert calls.next() == (tmp_path / "new" / "b.py", "3\n", "4\n")
    assert watcher.watch_count == 2


def test_that_a_folder_went_may_be_told_after_another_took_its_place(tmp_path, watch, calls):
    folder = tmp_path / "again"
    folder.mkdir()
    watcher = watch()
    for number in range(5):
        folder.rmdir()
        folder.mkdir()
        (folder / "a.py").write_text(f"{number}\n")
        assert calls.next()[:2] == (folder / "a.py", "")
        watcher.on_any_event(DirDeletedEvent(str(folder)))
        (folder / "a.py").write_text("changed\n")
        assert calls.next() == (folder / "a.py", f"{number}\n", "changed\n")
        (folder / "a.py").unlink()
        assert calls.next() == (folder / "a.py", "changed\n", None)
    assert watcher.watch_count == 2


def test_paths_come_back_as_the_root_was_given(tmp_path, watch, calls):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").write_text("1\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    watch(tmp_path / "link")
    (tmp_path / "real" / "a.py").write_text("2\n")
    assert calls.next() == (tmp_path / "link" / "a.py", "1\n", "2\n")


def test_the_number_of_watches_is_bounded(tmp_path, watch, calls, caplog):
    for index in range(10):
        (tmp_path / f"folder{index}").mkdir()
    watcher = watch(max_watches=4)
    assert watcher.watch_count == 4
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == [
        "only 4 folders are watched for changes outside of the editor"
    ]
    path = tmp_path / "folder1" / "a.py"
    path.write_text("x\n")
    # Files of folders that were not looked at may have been there, so the old text is not known.
    assert calls.next() == (path, None, "x\n")


def test_a_missing_folder_is_logged_once_and_the_others_are_watched(tmp_path, watch, calls, caplog):
    here = tmp_path / "here"
    here.mkdir()
    watch(tmp_path / "missing", here)
    warnings = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "missing" in warnings[0]
    sentinel(here, calls)


def test_the_systems_limit_is_logged_once(tmp_path, watch, calls, caplog):
    class Limited(Observer):
        left = 2

        def schedule(self, *args, **kwargs):
            if not self.left:
                raise OSError(errno.ENOSPC, "inotify watch limit reached")
            self.left -= 1
            return super().schedule(*args, **kwargs)

    for index in range(5):
        (tmp_path / f"folder{index}").mkdir()
    watcher = watch(observer_factory=Limited)
    assert watcher.watch_count == 2
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1
    (tmp_path / "folder0" / "a.py").write_text("x\n")
    assert calls.next()[0] == tmp_path / "folder0" / "a.py"


def test_without_a_working_observer_nothing_happens(tmp_path, watch, caplog):
    def broken():
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    watcher = watch(observer_factory=broken)
    assert watcher.watch_count == 0
    assert "cannot watch files" in caplog.text


def test_a_failing_callback_does_not_end_the_watch(tmp_path, caplog):
    calls = Calls()

    def callback(path, old, new):
        calls(path, old, new)
        if calls.qsize() == 1 and "bad" in path:
            raise RuntimeError("no")

    with FileWatcher([tmp_path], FilePolicy([tmp_path]), callback, debounce=0.1) as watcher:
        assert watcher.wait_ready(TIMEOUT)
        (tmp_path / "bad.py").write_text("x\n")
        assert calls.next()[0].name == "bad.py"
        (tmp_path / "good.py").write_text("x\n")
        assert calls.next()[0].name == "good.py"
    assert "callback for a changed file failed" in caplog.text


def test_stop_ends_all_threads(tmp_path, calls):
    (tmp_path / "a").mkdir()
    before = set(threading.enumerate())
    watcher = FileWatcher([tmp_path], FilePolicy([tmp_path]), calls)
    watcher.stop()  # before it has begun
    watcher = FileWatcher([tmp_path], FilePolicy([tmp_path]), calls)
    watcher.start()
    assert watcher.wait_ready(TIMEOUT)
    watcher.stop()
    watcher.stop()
    left = [t for t in threading.enumerate() if t not in before and "Inotify" not in t.name]
    assert [t for t in left if type(t).__name__ != "InotifyFD"] == []
    (tmp_path / "late.py").write_text("x\n")
    assert calls.empty()


def test_the_text_cache_is_bounded():
    cache = TextCache(max_chars=10, max_files=3)
    a, b, c, d = (Path(name) for name in "abcd")
    cache.put(a, "1234")
    cache.put(b, "1234")
    assert cache.get(a) == "1234"
    cache.put(c, "1234")  # drives out b, which was used longest ago
    assert (cache.get(a), cache.get(b), cache.get(c)) == ("1234", None, "1234")
    assert b in cache
    assert cache.same(b, "1234")
    assert not cache.same(b, "12345")
    assert cache.complete
    cache.put(d, "x" * 11)
    assert cache.get(d) is None
    assert cache.same(d, "x" * 11)
    assert a not in cache
    assert not cache.complete
    assert cache.pop(c) == "1234"
    assert cache.pop(c) is None
    cache.put(a, "\ud800")
    assert cache.same(a, "\ud800")
