"""What was edited lately, as unified diffs a model can read.

Responsible for coalescing changes into entries and for keeping them bounded. Knows nothing of LSP,
of which files may be recorded (the caller asks the policy first) or of prompts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from diffing.edits import Edit, apply, check, compose, shrink
from diffing.hunks import unified_diff

Source = Literal["user", "prediction", "disk"]

ACCEPTED_PREDICTION = "// User accepted prediction:\n"
# A change further than this many lines from the last entry begins a new one.
GROUPING_LINE_SPAN = 8
# So does one after a pause of this many seconds.
GROUPING_PAUSE = 1.0
# Longest diff of one entry; a longer one (a file pasted whole) tells a model little and is left
# out.
MAX_ENTRY_CHARS = 8_192
# Longest text whose changes are recorded, and most text that is held for diffs not yet made.
MAX_FILE_CHARS = 4_000_000
MAX_HELD_CHARS = 16_000_000
CONTEXT_LINES = 3


@dataclass(frozen=True)
class HistoryEntry:
    """One coalesced change of one file.

    `diff` leads from the text at the start of the entry to the text at its end. `before` is that
    first text, or None where it was let go to bound memory. `time` is the clock's value at the last
    change.
    """

    path: str
    diff: str
    source: Source
    time: float
    version: int
    before: str | None = None

    @property
    def text(self) -> str:
        """The diff as it stands in a prompt: accepted predictions are marked."""
        return ACCEPTED_PREDICTION + self.diff if self.source == "prediction" else self.diff


@dataclass
class _Span:
    """An entry in the making: the text it began with and one composed change."""

    path: str
    source: Source
    before: str | None
    edits: tuple[Edit, ...]
    version: int
    time: float
    length: int  # of the text after the change
    # Whether only a pause (nothing else) parts this entry from the one before it.
    after_pause: bool = False
    diff: str | None = None

    def render(self) -> str:
        if self.diff is None:
            self.diff = "" if self.before is None else _diff(self.before, self.edits, self.path)
        return self.diff


class EditHistory:
    """Recent edits, oldest first.

    A change joins the last entry when it is of the same file, source and run of versions, within 8
    lines of it and at most a second later; an accepted prediction is always an entry of its own.
    The last pause stays visible as a border between entries; when a further entry begins, the
    entries on both sides of it become one, so that slow
    typing does not crowd out the rest. Entries that undo each other vanish. Not thread-safe.
    """

    def __init__(
        self,
        max_entries: int = 16,
        max_chars: int = 32_768,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_entries < 1 or max_chars < 1:
            raise ValueError("max_entries and max_chars must be at least 1")
        self.max_entries = max_entries
        self.max_chars = max_chars
        self._clock = clock
        self._spans: list[_Span] = []

    def record(
        self,
        path: str,
        before_text: str,
        edits: Iterable[Edit],
        version: int,
        source: Source = "user",
    ) -> None:
        """Add one change.

        `before_text` is the text that `edits` count in, `version` the document's after them.
        ValueError when the edits do not fit. Texts above MAX_FILE_CHARS are not recorded.
        """
        change = _normalised(before_text, edits)
        if len(before_text) > MAX_FILE_CHARS or not change:
            return
        now = self._clock()
        length = len(before_text) + _growth(change)
        last = self._spans[-1] if self._spans else None
        joins = (
            last is not None
            and source != "prediction"
            and (last.path, last.source) == (path, source)
            and _continues(last, before_text, version)
            and _lines_apart(last, before_text, change) <= GROUPING_LINE_SPAN
        )
        if last is not None and joins and now - last.time <= GROUPING_PAUSE:
            self._extend(last, change, version, now)
        else:
            remains = self._join_across_pause()
            span = _Span(path, source, before_text, change, version, now, length)
            span.after_pause = joins and remains
            self._spans.append(span)
        self._drop_inverse_pair()
        self._bound()

    def _extend(self, span: _Span, change: tuple[Edit, ...], version: int, now: float) -> None:
        """Add a change to the last entry; the entry goes when nothing is left of it."""
        assert span.before is not None
        span.edits = _normalised(span.before, compose(span.edits, change))
        span.length = len(span.before) + _growth(span.edits)
        span.version, span.time, span.diff = version, now, None
        if not span.edits:
            self._spans.pop()

    def _join_across_pause(self) -> bool:
        """Make one entry of the last two if only a pause parts them. False if nothing remains."""
        if len(self._spans) < 2:
            return True
        earlier, last = self._spans[-2:]
        if not last.after_pause or earlier.before is None:
            return True
        self._spans.pop()
        self._extend(earlier, last.edits, last.version, last.time)
        return bool(earlier.edits)

    def _drop_inverse_pair(self) -> None:
        """Drop the last two entries when the last puts back what the one before it changed."""
        if len(self._spans) < 2:
            return
        earlier, last = self._spans[-2:]
        if earlier.path != last.path or earlier.before is None or last.before is None:
            return
        if len(earlier.before) != last.length or not _continues(earlier, last.before, -1):
            return
        if not _normalised(earlier.before, compose(earlier.edits, last.edits)):
            del self._spans[-2:]

    def _bound(self) -> None:
        """Let the oldest entries go, then the texts of the oldest left, until the limits hold."""
        del self._spans[: -self.max_entries]
        held = sum(len(span.before or "") for span in self._spans)
        for span in self._spans[:-1]:
            if held <= MAX_HELD_CHARS:
                break
            held -= len(span.before or "")
            span.render()
            span.before = None

    def fork(self) -> EditHistory:
        """A history of the same past, whose future is its own."""
        other = EditHistory(self.max_entries, self.max_chars, self._clock)
        other._spans = [replace(span) for span in self._spans]
        return other

    def entries(self, limit: int | None = None) -> list[HistoryEntry]:
        """The entries, oldest first; with `limit` the newest so many. Makes the diffs."""
        chosen: list[_Span] = []
        budget = self.max_chars
        for span in reversed(self._spans):
            if limit is not None and len(chosen) >= limit:
                break
            diff = span.render()
            if not diff or len(diff) > MAX_ENTRY_CHARS:
                continue
            budget -= len(diff)
            if budget < 0:
                break
            chosen.append(span)
        return [
            HistoryEntry(s.path, s.render(), s.source, s.time, s.version, s.before)
            for s in reversed(chosen)
        ]

    def diffs(self) -> list[str]:
        """The entries' diffs, oldest first; a comment marks those of accepted predictions."""
        return [entry.text for entry in self.entries()]

    def recent_paths(self) -> list[str]:
        """Paths that were edited, the latest first."""
        return list(dict.fromkeys(span.path for span in reversed(self._spans)))

    def last_edit(self, path: str) -> HistoryEntry | None:
        """The latest entry of a file."""
        for span in reversed(self._spans):
            if span.path == path:
                diff = span.render()
                return HistoryEntry(path, diff, span.source, span.time, span.version, span.before)
        return None

    def forget(self, path: str) -> None:
        """Drop all that is known of a file."""
        self._spans = [span for span in self._spans if span.path != path]


def _normalised(text: str, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits without what they leave as it was. ValueError when they do not fit."""
    edits = tuple(edits)
    check(edits, len(text))
    return tuple(e for edit in edits if (e := shrink(text, edit)) is not None)


def _growth(edits: Iterable[Edit]) -> int:
    return sum(len(edit.new_text) - (edit.end - edit.start) for edit in edits)


def _continues(span: _Span, before_text: str, version: int) -> bool:
    """Whether `before_text` is the text that the entry ends with.

    Trusts the version where it is the entry's or the next; clients may also skip versions or begin
    anew.
    """
    if span.before is None or span.length != len(before_text):
        return False
    if version - span.version in (0, 1):
        return True
    return apply(span.before, span.edits) == before_text


def _lines_apart(span: _Span, text: str, change: tuple[Edit, ...]) -> int:
    """Lines between what the entry touched and what the change will touch in `text`."""
    low, high = span.edits[0].start, span.edits[-1].end + _growth(span.edits)
    if change[0].start > high:
        low, high = high, change[0].start
    elif change[-1].end < low:
        low, high = change[-1].end, low
    else:
        return 0
    return max(text.count("\n", low, high), text.count("\r", low, high))


def _diff(before: str, edits: tuple[Edit, ...], path: str) -> str:
    """The unified diff of a change, made from the lines around it only."""
    margin = 2 * CONTEXT_LINES + 2
    start = edits[0].start
    for _ in range(margin):
        start = before.rfind("\n", 0, max(start, 0))
        if start < 0:
            break
    start += 1
    end = edits[-1].end
    for _ in range(margin):
        end = before.find("\n", end) + 1
        if end == 0:
            end = len(before)
            break
    old = before[start:end]
    new = apply(old, (Edit(e.start - start, e.end - start, e.new_text) for e in edits))
    first_line = before.count("\n", 0, start)
    return unified_diff(old, new, path, CONTEXT_LINES, first_line=first_line)
