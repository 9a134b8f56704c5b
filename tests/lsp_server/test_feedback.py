"""From outcomes to the store, and the command that reads it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types as lsp

from lsp_server.cli import run
from lsp_server.documents import Document
from lsp_server.feedback import QUIET_S, Writer
from lsp_server.session import Session
from lsp_server.suggestions import Suggestion
from model.feedback import Event, Life, Store, Suggested
from model.protocol import Edit, Prediction

URI = "file:///project/a.py"
TEXT = "def first():\n    return\n"


class Desk:
    """A session with one document, a clock that is turned by hand, and the store."""

    def __init__(self, folder: Path, **settings: bool) -> None:
        self.path = folder / "feedback.sqlite3"
        self.now = 0.0
        self.due: list[Callable[[], None]] = []
        self.session = Session(lambda method, params: None)
        self.feedback = self.session.feedback
        self.feedback._later = lambda seconds, call: self.due.append(call)
        self.feedback._clock = lambda: self.now
        self.session.configure({f"feedback.{name}": value for name, value in settings.items()})
        self.session.opened(lsp.TextDocumentItem(URI, "python", 1, TEXT))

    @property
    def document(self) -> Document:
        found = self.session.documents.get(URI)
        assert found is not None
        return found

    def suggest(self, *edits: tuple[int, int, str]) -> Suggestion:
        made = tuple(Edit(*edit) for edit in edits)
        prediction = Prediction(made, 0.4, features={"prior": -2.0}, source="draft", model="m")
        book = self.session.suggestions
        suggestion = book.offer(URI, "fim", self.document.version, made, prediction)
        self.session.presented(suggestion, self.document)
        return suggestion

    def type(self, at: int, old: int, new: str) -> None:
        start, end = self.document.position(at), self.document.position(at + old)
        change = lsp.TextDocumentContentChangePartial(lsp.Range(start, end), new)
        version = lsp.VersionedTextDocumentIdentifier(self.document.version + 1, URI)
        self.session.changed(lsp.DidChangeTextDocumentParams(version, [change]))

    def wait(self, seconds: float) -> None:
        """Time passes; what is due every quarter of the quiet runs."""
        ends = self.now + seconds
        while self.due and self.now < ends:
            self.now += QUIET_S / 4
            self.due.pop()()
        self.now = ends

    def lives(self) -> list[Life]:
        assert self.feedback.flush()
        if not self.path.exists():
            return []
        with Store(self.path) as store:
            return list(store.lives())


def states(life: Life) -> list[tuple[str, float | None, str | None]]:
    return [(event.state, event.value, event.why) for event in life.events]


def test_an_accepted_suggestion_settles_after_quiet(home) -> None:
    desk = Desk(home)
    at = TEXT.index("return") + 6
    desk.suggest((at, at, " value"))
    desk.type(at, 0, " value")
    desk.wait(5)
    desk.type(at + 6, 0, " + one_more")  # keeps what was accepted
    desk.wait(QUIET_S - 4)
    assert states(desk.lives()[0]) == [("accepted", None, None)]
    desk.wait(QUIET_S)
    (life,) = desk.lives()
    assert states(life) == [("accepted", None, None), ("settled", 1.0, None)]
    assert life.suggested.features == {"prior": -2.0}
    assert (life.suggested.source, life.suggested.language) == ("draft", "python")
    assert life.suggested.text is None


def test_what_is_taken_back_has_no_kept_rate(home) -> None:
    desk = Desk(home)
    at = TEXT.index("return") + 6
    desk.suggest((at, at, " value"))
    desk.type(at, 0, " value")
    desk.type(at, 6, "")
    desk.session.closed(URI)
    assert states(desk.lives()[0])[1:] == [("settled", 0.0, None)]


def test_every_end_has_its_reason(home) -> None:
    desk = Desk(home)
    book = desk.session.suggestions
    at = len(TEXT)
    rejected = desk.suggest((at, at, "first()"))
    book.shown(rejected.id)
    book.reject(rejected.id)
    desk.suggest((at, at, "other()"))
    desk.type(at, 0, "x")
    desk.suggest((0, 0, "import a\n"))
    desk.session.closed(URI)
    assert [states(life) for life in desk.lives()] == [
        [("shown", None, None), ("rejected", None, None)],
        [("ignored", None, "overtyped")],
        [("ignored", None, None)],
    ]


def test_a_suggestion_that_was_kept_back_leaves_no_trace(home) -> None:
    desk = Desk(home)
    prediction = Prediction((Edit(0, 0, "x"),), 0.4)
    desk.session.suggestions.offer(URI, "fim", 1, prediction.edits, prediction)
    desk.type(0, 0, "y")
    assert desk.lives() == []


def test_no_text_is_kept_unless_asked_for(home) -> None:
    desk = Desk(home)
    desk.suggest((0, 0, "import secret_thing\n"))
    desk.type(0, 0, "import secret_thing\n")
    desk.session.closed(URI)
    assert states(desk.lives()[0])[0][0] == "accepted"
    files = [file.read_bytes() for file in home.iterdir()]
    assert not any(word in data for data in files for word in (b"secret", b"first", b"a.py"))
    asked = Desk(home, text=True)
    asked.suggest((0, 0, "import secret_thing\n"))
    text = asked.lives()[1].suggested.text
    assert text is not None
    assert text["edits"] == [{"start": 0, "old": "", "new": "import secret_thing\n"}]
    assert "def first" in text["around"]


def test_nothing_is_kept_when_switched_off(home) -> None:
    desk = Desk(home, enable=False)
    desk.suggest((0, 0, "x"))
    assert desk.lives() == []
    assert not home.exists()
    assert desk.feedback.state == "off"


def test_a_store_that_cannot_be_used_stops_nothing(home) -> None:
    home.mkdir()
    (home / "feedback.sqlite3").write_text("no database " * 50)
    desk = Desk(home)
    desk.suggest((0, 0, "x"))
    assert desk.feedback.flush()
    assert "not a database" in desk.feedback.state


def test_a_full_queue_is_counted_and_waits_for_nobody(tmp_path) -> None:
    gate, begun = threading.Event(), threading.Event()

    def slow() -> Event:
        begun.set()
        gate.wait(10)
        return Event("s0", "shown", 1.0)

    writer = Writer(tmp_path / "f", most=2)
    writer.put(slow)
    begun.wait(10)
    for number in range(5):
        writer.put(Suggested(f"s{number}", 0.0, "fim", "draft", 0.5))
    assert writer.dropped == 3
    gate.set()
    assert writer.flush()
    writer.close()
    with Store(tmp_path / "f") as store:
        assert [life.suggested.id for life in store.lives()] == ["s0", "s1"]


def test_show_export_and_purge(home, capsys) -> None:
    assert run(["feedback", "show"]) == 0
    assert "no feedback yet" in capsys.readouterr().out
    assert run(["feedback", "export"]) == 1
    with Store(home / "feedback.sqlite3") as store:
        store.write([Suggested("s1", 0.0, "fim", "draft", 0.5), Event("s1", "accepted", 2.0)])
    capsys.readouterr()
    assert run(["feedback", "show"]) == 0
    shown = capsys.readouterr().out
    assert "suggestions  1" in shown
    assert shown.splitlines()[-1].split() == ["fim", "draft", "accepted", "1"]
    assert run(["feedback", "export"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["id"], row["events"][0]["state"]) == ("s1", "accepted")
    assert run(["feedback", "purge"]) == 0
    assert capsys.readouterr().out == "1 suggestions deleted\n"
    assert list(home.iterdir()) == []


def test_kept_text_says_where_the_edits_are_and_what_was_edited_before(home) -> None:
    desk = Desk(home, text=True)
    desk.type(0, 0, "import os\n" + "\n" * 30)
    at = len(desk.document.text)
    desk.suggest((at - 7, at - 1, "return value"), (at, at, "first()\n"))
    text = desk.lives()[0].suggested.text
    assert text is not None
    for edit, old in zip(text["edits"], ("return", ""), strict=True):
        assert edit["old"] == old == text["around"][edit["start"] : edit["start"] + len(old)]
    assert text["edits"][1]["start"] == len(text["around"])
    assert len(text["around"]) < at
    assert "+import os" in text["history"][-1]
