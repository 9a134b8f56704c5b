from __future__ import annotations

from diffing.edits import apply
from diffing.hunks import unified_diff
from model.evaluation.baseline import PropagateLastSubstitution
from model.protocol import Prediction, Request, Stop

BEFORE = "count = 1\nprint(count)\nx = 0\ncounter = 2\nuse(x, count)\n"
NOW = "total = 1\nprint(count)\nx = 0\ncounter = 2\nuse(x, count)\n"


def ask(now: str, cursor: int, *history: str, mode: str = "next_edit") -> Prediction:
    request = Request(mode, "a.py", now, cursor, history=history)  # type: ignore[arg-type]
    return PropagateLastSubstitution().predict(request, Stop())


def test_the_nearest_place_gets_the_new_token() -> None:
    diff = unified_diff(BEFORE, NOW, "a.py")
    above = ask(NOW, 5, diff)
    assert apply(NOW, above.edits) == NOW.replace("print(count)", "print(total)")
    assert above.where == ((1, 0.5), (4, 0.5)), "whole tokens only, nearest first"
    below = ask(NOW, len(NOW), diff)
    assert apply(NOW, below.edits) == NOW.replace("x, count", "x, total")
    assert [line for line, _ in below.where] == [4, 1]


def test_only_the_newest_edit_counts() -> None:
    other = unified_diff("old\n", "new\n", "a.py")
    assert ask(NOW, 5, unified_diff(BEFORE, NOW, "a.py"), other).edits == ()


def test_silence_without_a_substitution() -> None:
    assert ask(NOW, 5).edits == ()
    assert ask(NOW, 5, "no diff").edits == ()
    assert ask(NOW, 5, unified_diff("x = 0\n", "x = 0\ny = 1\n", "a.py")).edits == ()
    assert ask(NOW, 5, unified_diff(BEFORE, NOW, "a.py"), mode="fim").edits == ()
