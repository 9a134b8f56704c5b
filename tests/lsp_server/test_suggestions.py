"""The life of a suggestion."""

from __future__ import annotations

import pytest

from diffing.edits import Edit, apply
from lsp_server.suggestions import Outcome, State, Suggestion, SuggestionBook
from model.protocol import Prediction

URI = "file:///a.py"


class Desk:
    """A document, a book, and what the book has told."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.version = 1
        self.told: list[State] = []
        self.book = SuggestionBook(self._hear)

    def _hear(self, outcome: Outcome) -> None:
        assert outcome.state is outcome.suggestion.state
        self.told.append(outcome.state)

    def offer(self, *edits: tuple[int, int, str], confidence: float = 0.9) -> Suggestion:
        made = tuple(Edit(*edit) for edit in edits)
        prediction = Prediction(made, confidence)
        return self.book.offer(URI, "fim", self.version, made, prediction)

    def change(self, *edits: tuple[int, int, str]) -> bool:
        made = tuple(Edit(*edit) for edit in edits)
        self.version += 1
        accepted = self.book.document_changed(URI, self.text, made, made, self.version)
        self.text = apply(self.text, made)
        return accepted

    @property
    def live(self) -> Suggestion | None:
        return self.book.live(URI, "fim")


def test_typing_through_shortens_it_and_typing_it_all_ends_it() -> None:
    desk = Desk("ab")
    suggestion = desk.offer((2, 2, "cde"))
    assert desk.change((2, 2, "c")) is False
    assert desk.live is suggestion
    assert suggestion.edits == (Edit(3, 3, "de"),)
    assert (suggestion.version, suggestion.followed) == (2, True)
    desk.change((3, 3, "d"))
    desk.change((4, 4, "e"))
    assert desk.told == [State.TYPED]
    assert desk.live is None


def test_going_another_way_ends_it() -> None:
    desk = Desk("ab")
    desk.offer((2, 2, "cde"))
    desk.change((2, 2, "x"))
    assert desk.told == [State.IGNORED]


def test_an_edit_elsewhere_moves_it_but_it_is_not_served_again() -> None:
    desk = Desk("ab")
    suggestion = desk.offer((2, 2, "cde"))
    desk.change((0, 0, "__"))
    assert suggestion.edits == (Edit(4, 4, "cde"),)
    assert suggestion.followed is False


def test_a_change_that_changes_nothing_keeps_it_alive() -> None:
    desk = Desk("ab")
    suggestion = desk.offer((2, 2, "cde"))
    desk.change((0, 1, "a"))
    desk.change()
    assert (suggestion.version, suggestion.followed) == (3, True)


def test_the_exact_change_is_an_acceptance_also_before_the_command() -> None:
    desk = Desk("ab")
    suggestion = desk.offer((2, 2, "cde"))
    assert desk.change((0, 2, "abcde")) is True  # the client replaced more than was needed
    assert desk.told == [State.ACCEPTED]
    desk.book.accept(suggestion.id)
    assert desk.told == [State.ACCEPTED]


def test_the_command_may_come_before_the_change() -> None:
    desk = Desk("ab")
    suggestion = desk.offer((2, 2, "c"))
    desk.book.accept(suggestion.id)
    assert desk.change((2, 2, "c")) is True
    assert desk.change((3, 3, "c")) is False
    assert desk.told == [State.ACCEPTED]


def test_one_key_is_no_acceptance() -> None:
    desk = Desk("ab")
    desk.offer((2, 2, "c"))
    assert desk.change((2, 2, "c")) is False
    assert desk.told == [State.TYPED]


def test_rejected_edits_are_remembered_and_moved() -> None:
    desk = Desk("ab\ncd\n")
    desk.book.reject(desk.offer((3, 5, "xy")).id)
    assert desk.told == [State.REJECTED]
    assert desk.book.was_rejected(URI, (Edit(3, 5, "xy"),))
    desk.change((0, 0, "__"))
    assert desk.book.was_rejected(URI, (Edit(5, 7, "xy"),))
    assert not desk.book.was_rejected(URI, (Edit(3, 5, "xy"),))
    desk.change((5, 6, "C"))  # the place itself has changed: it may be tried again
    assert not desk.book.was_rejected(URI, (Edit(5, 7, "xy"),))


def test_the_memory_of_rejections_is_bounded_and_ends_with_the_document() -> None:
    desk = Desk("ab")
    for number in range(100):
        desk.book.reject(desk.offer((2, 2, str(number))).id)
    assert desk.book.was_rejected(URI, (Edit(2, 2, "99"),))
    assert not desk.book.was_rejected(URI, (Edit(2, 2, "0"),))
    desk.book.document_closed(URI)
    assert not desk.book.was_rejected(URI, (Edit(2, 2, "99"),))


@pytest.mark.parametrize(
    ("edit", "confidence", "replaced"),
    [
        ((2, 2, "cde"), 0.5, False),  # the same
        ((2, 2, "cdefg"), 0.5, True),  # continues the old one
        ((2, 2, "xyz"), 0.9, False),  # as good, but the user is reading the old one
        ((2, 2, "xyz"), 1.0, True),  # much surer
        ((0, 1, "z"), 0.9, False),
    ],
)
def test_a_newer_prediction_replaces_a_live_one_only_with_reason(
    edit: tuple[int, int, str], confidence: float, replaced: bool
) -> None:
    desk = Desk("ab")
    old = desk.offer((2, 2, "cde"))
    new = desk.offer(edit, confidence=confidence)
    assert (new is not old) is replaced
    assert desk.told == ([State.REPLACED] if replaced else [])


def test_reports_on_suggestions_that_are_over_change_nothing() -> None:
    desk = Desk("ab")
    suggestion = desk.offer((2, 2, "cde"))
    desk.book.ignore(suggestion.id)
    desk.book.reject(suggestion.id)
    desk.book.accept_partly(suggestion.id, 2)
    assert desk.told == [State.IGNORED]
    assert not desk.book.was_rejected(URI, (Edit(2, 2, "cde"),))


def test_partial_acceptance_counts_up() -> None:
    desk = Desk("ab")
    suggestion = desk.offer((2, 2, "cde"))
    desk.book.shown(suggestion.id)
    assert suggestion.state is State.SHOWN
    desk.book.accept_partly(suggestion.id, 2)
    desk.book.accept_partly(suggestion.id, 1)
    assert (suggestion.accepted_length, suggestion.state) == (2, State.PARTLY_ACCEPTED)
    desk.change((2, 2, "cd"))
    assert desk.live is suggestion


def test_only_so_many_are_kept() -> None:
    desk = Desk("ab")
    first = desk.offer((2, 2, "x"))
    for number in range(200):
        desk.book.ignore(desk.offer((2, 2, str(number))).id)
    assert desk.book.get(first.id) is None
