"""What was not shown: missed when it was typed all the same, spared when something else was."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_feedback import TEXT, URI, Desk, states

from lsp_server.held_back import EVERY_S
from model.protocol import Edit, Prediction

AT = TEXT.index("return") + 6


class QuietDesk(Desk):
    """A desk at which the gate keeps suggestions back."""

    def __init__(self, folder: Path, **settings: bool) -> None:
        super().__init__(folder, **settings)
        self.session.held_back._clock = lambda: self.now

    def hold_back(self, new: str, at: int = AT) -> None:
        made = (Edit(at, at, new),)
        prediction = Prediction(made, 0.1, features={"prior": -5.0}, source="draft", model="m")
        version = self.document.version
        self.session.held_back.take(URI, "fim", version, made, prediction)


def test_typed_key_by_key_it_was_missed(home) -> None:
    desk = QuietDesk(home, text=True)
    desk.hold_back(" one")
    for number, char in enumerate(" one"):
        assert desk.lives() == []
        desk.type(AT + number, 0, char)
    (life,) = desk.lives()
    assert states(life) == [("missed", None, None)]
    assert life.suggested.features == {"prior": -5.0}
    assert (life.suggested.source, life.suggested.confidence) == ("draft", 0.1)
    assert life.suggested.text is None


def test_with_something_else_in_its_place_it_was_spared(home) -> None:
    desk = QuietDesk(home)
    desk.hold_back(" one")
    desk.type(0, 0, "# a note\n")  # elsewhere: nothing is known yet
    desk.type(AT + 9, 0, " o")
    assert desk.lives() == []
    desk.type(AT + 11, 0, "ther")
    assert [states(life) for life in desk.lives()] == [[("spared", None, None)]]


@pytest.mark.parametrize("over", ["closed", "shown"])
def test_where_nothing_can_be_told_nothing_is_kept(home, over: str) -> None:
    desk = QuietDesk(home)
    desk.hold_back(" one")
    if over == "closed":
        desk.session.closed(URI)
    else:
        desk.suggest((AT, AT, " one"))
        desk.type(AT, 0, " one")
    assert [states(life)[0][0] for life in desk.lives()] == (
        [] if over == "closed" else ["accepted"]
    )


def test_one_now_and_then_is_followed(home) -> None:
    desk = QuietDesk(home)
    for _ in range(3):
        desk.hold_back(" one")
        desk.type(AT, 0, "x")
    assert len(desk.lives()) == 1
    desk.now += EVERY_S
    desk.hold_back(" one")
    desk.type(AT, 0, "x")
    assert len(desk.lives()) == 2
