"""The embedded model for real. `-m "not weights"` leaves these out."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from diffing.edits import apply
from diffing.hunks import unified_diff
from model.answer import answer
from model.candidate import Candidate, nearest_of
from model.config import ModelError
from model.local import LocalPredictor, mid_typing, settled_history
from model.protocol import Cancelled, Request, Stop

BEFORE = """\
class Account:
    def __init__(self, owner, amount):
        self.owner = owner
        self.amount = amount

    def deposit(self, value):
        self.amount += value

    def withdraw(self, value):
        if value > self.amount:
            raise ValueError("not enough")
        self.amount -= value
"""
RENAMED = BEFORE.replace("self.amount = amount", "self.balance = amount")
HISTORY = (unified_diff(BEFORE, RENAMED, "account.py"),)


@pytest.fixture(scope="module")
def predictor() -> LocalPredictor:
    return LocalPredictor.load(threads=2)


def fim(text: str) -> Request:
    cursor = text.index("|")
    return Request("fim", "example.py", text[:cursor] + text[cursor + 1 :], cursor, max_tokens=24)


def completed(predictor: LocalPredictor, text: str) -> str:
    request = fim(text)
    return apply(request.text, predictor.predict(request, Stop()).edits)


@pytest.mark.weights
def test_the_model_fills_in_the_middle(predictor) -> None:
    text = "def area(width, height):\n    return width * |\n\nprint(area(3, 4))\n"
    assert "return width * height\n" in completed(predictor, text)
    # the cursor in the middle of a word: without token healing this cannot be right
    text = "def read(path):\n    with open(path) as fil|\n        return file.read()\n"
    assert "as file:" in completed(predictor, text)


@pytest.mark.weights
def test_causal_decoding_gives_the_same_text(predictor) -> None:
    baseline = LocalPredictor.load(decoding="causal")
    request = fim("def mean(values):\n    total = sum(values)\n    return |\n")
    ours, plain = predictor.predict(request, Stop()), baseline.predict(request, Stop())
    assert ours.edits == plain.edits
    assert ours.forwards <= plain.forwards


@pytest.mark.weights
def test_the_next_edit_follows_the_rename(predictor) -> None:
    request = Request(
        "next_edit", "account.py", RENAMED, RENAMED.index("balance") + 7, history=HISTORY
    )
    prediction = predictor.predict(request, Stop())
    assert [edit.new_text for edit in prediction.edits] == ["balance"]
    after = apply(RENAMED, prediction.edits)
    assert after.count("self.balance") == 2
    assert 0 < prediction.confidence < 1
    assert prediction.features["p_nowhere"] < 1
    assert prediction.forwards == 1
    again = predictor.predict(request, Stop()).features
    assert again["prompt_tokens"] == prediction.features["prompt_tokens"] > 20
    assert again["prompt_tokens"] > again["cached_tokens"] > 20, "the newest diff is read anew"


@pytest.mark.weights
def test_no_history_and_nothing_typed_is_answered_by_silence(predictor) -> None:
    prediction = predictor.predict(Request("next_edit", "a.py", BEFORE, 0), Stop())
    assert prediction.edits == ()
    assert prediction.forwards == 0


@pytest.mark.weights
def test_a_second_key_reuses_the_first_ones_context(predictor) -> None:
    text = BEFORE * 3 + "def close(account):\n    acc"
    first = predictor.predict(Request("fim", "a.py", text, len(text), max_tokens=4), Stop())
    second = predictor.predict(
        Request("fim", "a.py", text + "o", len(text) + 1, max_tokens=4), Stop()
    )
    assert second.features["cached_tokens"] > 0.9 * second.features["prompt_tokens"]
    assert first.features["prompt_tokens"] == second.features["prompt_tokens"]


@pytest.mark.weights
def test_cancelling_stops_between_forwards(predictor) -> None:
    stop = Stop()
    threading.Timer(0.2, stop.cancel).start()
    began = time.monotonic()
    asked = 0
    with pytest.raises(Cancelled):  # noqa: PT012
        while time.monotonic() - began < 60:
            predictor.predict(fim("def f(x):\n    |\n"), stop)
            asked += 1
    assert time.monotonic() - began < 60, f"{asked} answers came"


@pytest.mark.weights
def test_a_passed_deadline_gives_an_answer_and_no_error(predictor) -> None:
    result = answer(predictor, fim("def f(x):\n    return |\n"), Stop(timeout=0.0), threshold=0.0)
    assert result.edits == ()
    assert result.suppressed == "deadline"


@pytest.mark.weights
@pytest.mark.parametrize(
    "text", ["", "\n", "   ", "\x0c", "\ud800", "é" * 50, "x" * 30_000, "a\u2028b\r\nc"]
)
def test_odd_texts_are_answered(predictor, text) -> None:
    for mode in ("fim", "next_edit"):
        request = Request(mode, "odd.txt", text, len(text), history=HISTORY, max_tokens=4)
        result = answer(predictor, request, Stop(), threshold=0.0)
        apply(text, result.edits)


def test_the_change_under_the_cursor_is_not_told_twice() -> None:
    text = RENAMED
    at = text.index("self.balance = amount") + len("self.balance")
    assert settled_history(Request("fim", "account.py", text, at, history=("old", *HISTORY))) == (
        "old",
    )
    assert settled_history(Request("fim", "account.py", text, 0, history=HISTORY)) == HISTORY


def test_mid_typing_means_the_newest_change_ends_at_the_cursor() -> None:
    end = RENAMED.index("self.balance = amount") + len("self.balance = amount")
    assert mid_typing(Request("next_edit", "account.py", RENAMED, end, history=HISTORY))
    assert not mid_typing(Request("next_edit", "account.py", RENAMED, end - 1, history=HISTORY))
    assert not mid_typing(Request("next_edit", "account.py", RENAMED, end, history=()))


@pytest.mark.weights
def test_the_context_is_bounded_by_the_models_own_limit() -> None:
    with pytest.raises(
        ModelError, match="a context of 10 tokens is too short; at least 64 are needed"
    ):
        LocalPredictor.load(context_tokens=10)
    large = LocalPredictor.load(context_tokens=32_768)
    assert large.contexts.budget == 8192 - 512
    text = "value = compute(value)\n" * 4000 + "resu"
    prediction = large.predict(
        Request("fim", "a.py", text, len(text), max_tokens=1), Stop(timeout=0.0)
    )
    assert prediction.features["prompt_tokens"] <= 8192


@pytest.mark.weights
def test_nothing_is_sent_anywhere(monkeypatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"a connection was opened: {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    request = fim("def area(width, height):\n    return width * |\n")
    assert LocalPredictor.load().predict(request, Stop()).edits


def test_a_rename_goes_to_the_nearest_place_that_is_about_as_sure() -> None:
    def place(confidence: float, distance: int, link: tuple[str, str] | None = ("a", "b")):
        return Candidate("draft", (), confidence, {}, 1, link, distance)

    near, far, above, weak = place(0.5, 3), place(0.6, 6), place(0.55, -1), place(0.2, 1)
    other = place(0.9, 1, ("c", "d"))
    assert nearest_of([far, above, near, weak], far) is near
    assert nearest_of([far, above, weak], above) is far
    assert nearest_of([far, near, other], other) is other
    assert nearest_of([near], place(0.6, 0)).distance == 0  # the line being typed comes first
    unlinked = place(0.6, 6, None)
    assert nearest_of([place(0.5, 2, None)], unlinked) is unlinked
