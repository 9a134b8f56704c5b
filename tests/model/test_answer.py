"""Line ends, filters and the threshold around a predictor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffing.edits import Edit, apply
from model.answer import Newlines, answer, dominant_eol
from model.protocol import Cancelled, Prediction, Request, Snippet, Stop


class Fixed:
    """Answers with what it was given and keeps what it was asked."""

    name = "fixed"

    def __init__(self, prediction: Prediction) -> None:
        self.prediction = prediction
        self.asked: Request | None = None

    def predict(self, request: Request, stop: Stop) -> Prediction:
        self.asked = request
        return self.prediction


def test_a_sure_answer_is_shown_and_an_unsure_one_is_not() -> None:
    request = Request("fim", "a.py", "x = ", 4)
    predictor = Fixed(Prediction((Edit(4, 4, "1"),), confidence=0.6))
    shown = answer(predictor, request, Stop(), threshold=0.6)
    assert (shown.shown, shown.suppressed, shown.model) == (True, None, "fixed")
    assert shown.latency_ms > 0
    unsure = answer(predictor, request, Stop(), threshold=0.61)
    assert (unsure.shown, unsure.suppressed) == (False, "low-confidence")
    assert unsure.edits == shown.edits


def test_reasons_in_their_order() -> None:
    request = Request("fim", "a.py", "x = ", 4)

    def reason(prediction: Prediction, stop: Stop | None = None) -> str | None:
        return answer(Fixed(prediction), request, stop or Stop(), threshold=0.5).suppressed

    assert reason(Prediction()) == "no-prediction"
    assert reason(Prediction(), Stop(-1)) == "deadline"
    assert reason(Prediction(suppressed="too-long")) == "too-long"
    assert reason(Prediction((Edit(4, 4, "  "),), confidence=0.1)) == "whitespace-only"


@pytest.mark.parametrize(
    ("text", "reason"), [("x = [" + "1, " * 300_000, "line-too-long"), ("a\0b", "binary")]
)
def test_texts_that_no_model_should_see(text: str, reason: str) -> None:
    predictor = Fixed(Prediction((Edit(0, 0, "1"),), confidence=1))
    found = answer(predictor, Request("fim", "a.py", text, 0), Stop(), threshold=0)
    assert (found.shown, found.suppressed, found.edits, found.model) == (False, reason, (), "fixed")
    assert predictor.asked is None


def test_a_cancelled_request_has_no_answer() -> None:
    stop = Stop()
    stop.cancel()
    with pytest.raises(Cancelled):
        answer(Fixed(Prediction()), Request("fim", "a", "", 0), stop, threshold=0)


def test_edits_are_minimal() -> None:
    def made(text: str, edit: Edit) -> tuple[Edit, ...]:
        request = Request("next_edit", "a.py", text, 0)
        return answer(Fixed(Prediction((edit,), 1.0)), request, Stop(), threshold=0).edits

    assert made("alpha beta\n", Edit(0, 11, "alpha gamma\n")) == (Edit(6, 9, "gamm"),)
    lines = "x = old\nsame\ny = old\n"
    assert made(lines, Edit(0, 21, lines.replace("old", "new"))) == (
        Edit(4, 7, "new"),
        Edit(17, 20, "new"),
    )
    assert made("f()\n", Edit(2, 2, "a,\nb")) == (Edit(2, 2, "a,\nb"),)


def test_the_model_sees_line_feeds_and_the_document_keeps_its_line_ends() -> None:
    text = "a\r\nb\r\nc\r\n"
    request = Request(
        "next_edit",
        "a.py",
        text,
        4,
        history=("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\r\n+a\r\n",),
        related=(Snippet("b.py", "y\r\n"),),
    )
    predictor = Fixed(Prediction((Edit(2, 3, "b1\nb2"),), 1.0))
    made = answer(predictor, request, Stop(), threshold=0)
    assert predictor.asked is not None
    assert predictor.asked.text == "a\nb\nc\n"
    assert predictor.asked.cursor == 3
    assert "\r" not in predictor.asked.history[0]
    assert predictor.asked.related[0].text == "y\n"
    assert apply(text, made.edits) == "a\r\nb1\r\nb2\r\nc\r\n"


def test_a_cursor_inside_a_line_end_is_before_it() -> None:
    predictor = Fixed(Prediction())
    answer(predictor, Request("fim", "a", "ab\r\nc", 3), Stop(), threshold=0)
    assert predictor.asked is not None
    assert predictor.asked.cursor == 2


@pytest.mark.parametrize(
    ("text", "eol"),
    [
        ("", "\n"),
        ("a\nb\r\n", "\n"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\rb\r", "\r"),
        ("a\r\n\r\r", "\r"),
    ],
)
def test_dominant_eol(text: str, eol: str) -> None:
    assert dominant_eol(text) == eol


@given(st.lists(st.sampled_from(["a", "é", "\n", "\r\n", "\r", "😀"]), max_size=30), st.data())
def test_offsets_survive_the_way_in_and_out(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    newlines = Newlines(text)
    plain = newlines.normalised(Request("fim", "a", text, 0)).text
    start = data.draw(st.integers(0, len(plain)))
    end = data.draw(st.integers(start, len(plain)))
    edit = newlines.restored(Edit(start, end, "X"))
    after = apply(text, [edit])
    normal = after.replace("\r\n", "\n").replace("\r", "\n")
    assert normal == plain[:start] + "X" + plain[end:]
    inwards = newlines.normalised(Request("fim", "a", text, edit.start)).cursor
    assert inwards == start
