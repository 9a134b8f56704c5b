"""The edit history: what becomes one entry, what vanishes, what is let go."""

from __future__ import annotations

import random

import pytest

import diffing.history as history_module
from diffing.edits import Edit, apply, invert, minimal_edits
from diffing.history import ACCEPTED_PREDICTION, EditHistory
from diffing.hunks import apply_unified, parse_unified, unified_diff

TEXT = "".join(f"line {i}\n" for i in range(60))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Typist:
    """A document whose changes are recorded."""

    def __init__(self, text: str = TEXT, path: str = "a.py", history: EditHistory | None = None):
        self.clock = Clock()
        self.history = history or EditHistory(clock=self.clock)
        self.path = path
        self.text = text
        self.version = 1

    def change(self, *edits: Edit, source="user", skip: int = 1) -> None:
        self.version += skip
        self.history.record(self.path, self.text, edits, self.version, source)
        self.text = apply(self.text, edits)

    def type(self, keys: str, at: str, pause: float = 0.1) -> None:
        """Type after the first place where `at` stands."""
        offset = self.text.index(at) + len(at)
        for index, key in enumerate(keys):
            self.clock.now += pause
            self.change(Edit(offset + index, offset + index, key))

    def backspace(self, times: int, at: str) -> None:
        offset = self.text.index(at) + len(at)
        for index in range(times):
            self.clock.now += 0.1
            self.change(Edit(offset - index - 1, offset - index, ""))


def replay(text: str, history: EditHistory) -> str:
    for diff in history.diffs():
        text = apply_unified(text, diff)
    return text


def test_keys_typed_in_a_row_are_one_entry():
    typist = Typist()
    typist.type("hello", "line 10")
    (entry,) = typist.history.entries()
    assert entry.diff == unified_diff(TEXT, typist.text, "a.py")
    assert "+line 10hello\n" in entry.diff
    assert entry.before == TEXT
    assert (entry.path, entry.source, entry.version) == ("a.py", "user", 6)
    assert typist.history.diffs() == [entry.diff]


@pytest.mark.parametrize(("line", "entries"), [("line 18", 1), ("line 19", 2), ("line 2\n", 1)])
def test_entries_span_eight_lines(line, entries):
    typist = Typist()
    typist.type("x", "line 10")
    typist.type("y", line)
    assert len(typist.history.entries()) == entries
    assert replay(TEXT, typist.history) == typist.text


def test_distance_counts_from_all_that_the_entry_has_touched():
    typist = Typist()
    typist.type("a", "line 10")
    typist.type("b", "line 18")
    typist.type("c", "line 26")
    assert len(typist.history.entries()) == 1
    typist.type("d", "line 35")
    assert len(typist.history.entries()) == 2


def test_a_pause_begins_a_new_entry():
    typist = Typist()
    typist.type("ab", "line 10", pause=1.0)
    assert len(typist.history.entries()) == 1
    typist.type("c", "line 10ab", pause=1.01)
    first, second = typist.history.entries()
    assert "+line 10ab\n" in first.diff
    assert "-line 10ab\n+line 10abc\n" in second.diff


def test_only_the_last_pause_parts_entries():
    typist = Typist()
    for keys, at in (("a", "line 10"), ("b", "line 10a"), ("c", "line 10ab"), ("d", "line 10abc")):
        typist.type(keys, at, pause=5)
    first, second = typist.history.entries()
    assert "-line 10\n+line 10abc\n" in first.diff
    assert "-line 10abc\n+line 10abcd\n" in second.diff
    typist.type("z", "line 40")
    assert len(typist.history.entries()) == 2
    assert replay(TEXT, typist.history) == typist.text


def test_other_files_sources_and_gaps_begin_new_entries():
    typist = Typist()
    other = Typist("x\n", "b.py", typist.history)
    typist.type("a", "line 10")
    other.type("y", "x")
    typist.type("b", "line 10a")
    assert [entry.path for entry in typist.history.entries()] == ["a.py", "b.py", "a.py"]
    assert typist.history.recent_paths() == ["a.py", "b.py"]
    offset = typist.text.index("line 10ab")
    typist.change(Edit(offset, offset, "p"), source="prediction")
    typist.change(Edit(offset + 1, offset + 1, "q"))
    sources = [entry.source for entry in typist.history.entries()]
    assert sources == ["user", "user", "user", "prediction", "user"]
    # The document changed without us: the versions do not follow and the text is another one.
    typist.text = typist.text.replace("line 11\n", "LINE 11\n")
    typist.change(Edit(offset, offset, "r"), skip=2)
    assert len(typist.history.entries()) == 6


def test_skipped_versions_are_contiguous_when_the_text_is_the_same():
    typist = Typist()
    typist.change(Edit(0, 0, "a"))
    typist.change(Edit(1, 1, "b"), skip=3)
    assert len(typist.history.entries()) == 1


def test_an_accepted_prediction_is_marked():
    typist = Typist()
    typist.change(Edit(0, 4, "LINE"), source="prediction")
    (diff,) = typist.history.diffs()
    assert diff.startswith(ACCEPTED_PREDICTION + "--- a/a.py\n+++ b/a.py\n")
    assert diff.startswith("// User accepted prediction:\n")
    assert parse_unified(diff)[0].path == "a.py"


def test_typing_and_deleting_the_same_leaves_nothing():
    typist = Typist()
    typist.type("hello", "line 10")
    typist.backspace(5, "line 10hello")
    assert typist.text == TEXT
    assert typist.history.entries() == []
    typist.change(Edit(0, 1, ""))
    typist.change(Edit(0, 0, "l"))
    assert typist.history.diffs() == []


def test_entries_that_undo_each_other_vanish():
    typist = Typist()
    typist.type("k", "line 30")
    typist.clock.now += 10
    undo = invert(typist.text, (Edit(0, 6, "first"),))
    typist.change(Edit(0, 6, "first"), source="prediction")
    typist.clock.now += 10
    typist.change(*undo)
    (entry,) = typist.history.entries()
    assert "+line 30k\n" in entry.diff
    # Across a pause, and key by key.
    typist.type("abc", "line 50")
    typist.clock.now += 10
    typist.backspace(3, "line 50abc")
    assert len(typist.history.entries()) == 1
    assert replay(TEXT, typist.history) == typist.text


def test_changes_that_change_nothing_are_not_recorded():
    typist = Typist()
    typist.change(Edit(0, 4, "line"))
    typist.change(Edit(3, 3, ""))
    typist.change()
    assert typist.history.entries() == []
    with pytest.raises(ValueError, match="edit"):
        typist.history.record("a.py", "abc", [Edit(2, 9, "")], 1)


def test_disk_changes_are_entries():
    typist = Typist()
    new = TEXT.replace("line 7\n", "seven\n")
    typist.history.record("b.py", TEXT, minimal_edits(TEXT, new), 0, "disk")
    (entry,) = typist.history.entries()
    assert entry.source == "disk"
    assert apply_unified(TEXT, entry.text) == new


def test_bounded_in_number():
    typist = Typist("".join(f"row {i:03}\n" for i in range(900)))
    typist.history.max_entries = 5
    for i in range(0, 900, 20):
        typist.type("x", f"row {i:03}")
    entries = typist.history.entries()
    assert len(entries) == 5
    assert "+row 880x\n" in entries[-1].diff
    assert "+row 800x\n" in entries[0].diff
    assert [entry.diff for entry in typist.history.entries(2)] == [e.diff for e in entries[-2:]]


def test_bounded_in_characters():
    typist = Typist()
    typist.history.max_chars = 300
    for line in ("line 5\n", "line 20", "line 35", "line 50"):
        typist.type("x" * 60, line[:7].rstrip("\n"))
    entries = typist.history.entries()
    assert 1 <= len(entries) < 4
    assert sum(len(entry.diff) for entry in entries) <= 300
    assert "line 50x" in entries[-1].diff


def test_an_oversized_entry_is_left_out():
    typist = Typist()
    typist.type("x", "line 5")
    typist.change(Edit(len(TEXT) + 1, len(TEXT) + 1, "pasted\n" * 5_000))
    (entry,) = typist.history.entries()
    assert "line 5x" in entry.diff


def test_texts_are_held_within_a_limit(monkeypatch):
    monkeypatch.setattr(history_module, "MAX_HELD_CHARS", 3 * len(TEXT))
    typist = Typist()
    expected = []
    for line in ("line 5", "line 20", "line 35", "line 50", "line 59"):
        before = typist.text
        typist.clock.now += 2
        typist.type("!", line)
        expected.append(unified_diff(before, typist.text, "a.py"))
    entries = typist.history.entries()
    assert sum(len(entry.before or "") for entry in entries) <= 3 * len(TEXT)
    assert entries[0].before is None
    assert entries[-1].before is not None
    assert [entry.diff for entry in entries] == expected
    assert replay(TEXT, typist.history) == typist.text


def test_huge_texts_are_not_recorded(monkeypatch):
    monkeypatch.setattr(history_module, "MAX_FILE_CHARS", 100)
    typist = Typist()
    typist.type("x", "line 5")
    assert typist.history.entries() == []


def test_forget_and_last_edit():
    typist = Typist()
    other = Typist("x\n", "b.py", typist.history)
    typist.type("a", "line 10")
    other.type("y", "x")
    last = typist.history.last_edit("a.py")
    assert last is not None
    assert "+line 10a\n" in last.diff
    assert typist.history.last_edit("c.py") is None
    typist.history.forget("a.py")
    assert typist.history.recent_paths() == ["b.py"]
    assert typist.history.last_edit("a.py") is None
    assert len(typist.history.diffs()) == 1


def test_no_diff_is_made_while_typing(monkeypatch):
    def forbidden(*_args, **_kwargs):
        raise AssertionError("a diff on the keystroke path")

    monkeypatch.setattr(history_module, "unified_diff", forbidden)
    typist = Typist("".join(f"row {i}\n" for i in range(5_000)))
    typist.type("some keys", "row 2500")
    typist.type("more keys", "row 100\nrow"[:7])
    with pytest.raises(AssertionError, match="keystroke"):
        typist.history.diffs()


def test_the_diff_of_an_entry_reads_only_the_lines_around_it(monkeypatch):
    lengths = []

    def watched(old, new, *args, **kwargs):
        lengths.append(len(old))
        return unified_diff(old, new, *args, **kwargs)

    monkeypatch.setattr(history_module, "unified_diff", watched)
    text = "".join(f"row {i}\n" for i in range(5_000))
    typist = Typist(text)
    typist.type("keys", "row 2500")
    assert replay(text, typist.history) == typist.text
    assert "@@ -2498,7 +2498,7 @@" in typist.history.diffs()[0]
    assert lengths[0] < 400


@pytest.mark.parametrize("seed", range(40))
def test_entries_in_order_lead_to_the_present_text(seed):
    """Random typing, pauses, undo, predictions in two files; the limits are never reached."""
    rng = random.Random(seed)
    history = EditHistory(max_entries=10_000, max_chars=10**9)
    clock = Clock()
    history._clock = clock
    start = {"a.py": TEXT, "b.py": "one\r\ntwo\fthree\rfour\u2028five"}
    typists = {path: Typist(text, path, history) for path, text in start.items()}
    undo: dict[str, list[tuple[Edit, ...]]] = {path: [] for path in start}
    for _ in range(120):
        clock.now += rng.choice((0.1, 0.1, 0.1, 1.5))
        path = rng.choice(("a.py", "a.py", "b.py"))
        typist = typists[path]
        if undo[path] and rng.random() < 0.3:
            edits = undo[path].pop()
        else:
            a = rng.randrange(len(typist.text) + 1)
            b = min(a + rng.choice((0, 0, 0, 1, 9)), len(typist.text))
            edits = (Edit(a, b, rng.choice(("x", "yz", "\n", "\r\n", "", "word\n", "\u2028"))),)
            undo[path].append(invert(typist.text, edits))
        typist.change(*edits, source=rng.choice(("user", "user", "user", "prediction")))
    for path, text in start.items():
        reached = text
        for entry in history.entries():
            if entry.path == path:
                assert entry.before == reached
                reached = apply_unified(reached, entry.text)
        assert reached == typists[path].text
