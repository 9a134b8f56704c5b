"""Edits: the laws that hold between apply, invert, compose, shrink, rebase and interpolate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffing.edits import (
    Edit,
    apply,
    compose,
    interpolate,
    invert,
    minimal_edits,
    rebase,
    shrink,
)

ALPHABET = "ab\n\r \f\u2028é\u0301😀\ud83d\ude00"
TEXTS = st.text(st.sampled_from(ALPHABET), max_size=40)


@st.composite
def changes(draw, text: str, most: int = 4) -> tuple[Edit, ...]:
    offsets = st.integers(0, len(text))
    cuts = sorted(draw(st.lists(offsets, max_size=2 * most)))
    short = st.text(st.sampled_from(ALPHABET), max_size=4)
    return tuple(Edit(a, b, draw(short)) for a, b in zip(cuts[::2], cuts[1::2], strict=False))


def test_apply():
    text = "hello world"
    assert apply(text, [Edit(0, 1, "J"), Edit(5, 5, ","), Edit(6, 11, "you")]) == "Jello, you"
    assert apply(text, []) == text


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(0, 3, ""), Edit(2, 4, "")],
        [Edit(4, 5, ""), Edit(0, 1, "")],
        [Edit(3, 2, "")],
        [Edit(-1, 2, "")],
        [Edit(0, 99, "")],
    ],
)
def test_what_does_not_fit_is_refused(edits):
    with pytest.raises(ValueError, match="edit"):
        apply("hello world", edits)
    with pytest.raises(ValueError, match="edit"):
        invert("hello world", edits)


@given(st.data())
def test_invert_undoes(data):
    text = data.draw(TEXTS)
    edits = data.draw(changes(text))
    assert apply(apply(text, edits), invert(text, edits)) == text


@given(st.data())
def test_compose_is_one_after_the_other(data):
    text = data.draw(TEXTS)
    first = data.draw(changes(text))
    middle = apply(text, first)
    second = data.draw(changes(middle))
    assert apply(text, compose(first, second)) == apply(middle, second)


def test_compose_joins_keys_typed_in_a_row():
    change: tuple[Edit, ...] = ()
    for index, key in enumerate("hello"):
        change = compose(change, (Edit(7 + index, 7 + index, key),))
    assert change == (Edit(7, 7, "hello"),)
    assert compose(change, (Edit(7, 12, ""),)) == ()
    assert compose(change, (Edit(20, 21, "x"),)) == (Edit(7, 7, "hello"), Edit(15, 16, "x"))


@given(TEXTS, TEXTS)
def test_minimal_edits_lead_to_the_new_text(old, new):
    edits = minimal_edits(old, new)
    assert apply(old, edits) == new
    assert (edits == ()) == (old == new)
    result, shift = new, 0
    for edit in edits:
        for text, at in ((old, edit.start), (old, edit.end), (result, edit.start + shift)):
            assert text[at - 1 : at + 1] not in ("\r\n", "\ud83d\ude00")
        shift += len(edit.new_text) - (edit.end - edit.start)


def test_minimal_edits_are_small():
    old = "import os\n\ndef f(a):\n    return a\n\nx = f(1)\n"
    new = "import os\nimport re\n\ndef f(b):\n    return b\n\nx = f(1)\n"
    assert minimal_edits(old, new) == (
        Edit(10, 10, "import re\n"),
        Edit(17, 18, "b"),
        Edit(32, 33, "b"),
    )
    assert minimal_edits("a\nb\n", "a\n") == (Edit(2, 4, ""),)


def test_minimal_edits_keep_clusters_together():
    assert minimal_edits("xe\u0301y", "xey") == (Edit(1, 3, "e"),)
    assert minimal_edits("a\r\nb", "a\nb") == (Edit(1, 3, "\n"),)
    assert minimal_edits("\ud83d\ude00", "\ud83d\ude01") == (Edit(0, 2, "\ud83d\ude01"),)
    assert minimal_edits("👩\u200d👧", "👩\u200d👦") == (Edit(0, 3, "👩\u200d👦"),)


def test_minimal_edits_on_a_huge_text():
    lines = [f"line {i}\n" for i in range(100_000)]
    old = "".join(lines)
    new = "".join([*lines[:200], "new\n", *lines[200:90_000], "x" + lines[90_000], *lines[90_001:]])
    edits = minimal_edits(old, new)
    assert [edit.new_text for edit in edits] == ["new\n", "x"]
    assert apply(old, edits) == new


@given(st.data())
def test_shrink_means_the_same(data):
    text = data.draw(TEXTS)
    edit = data.draw(changes(text, 1).filter(bool))[0]
    small = shrink(text, edit)
    if small is None:
        assert apply(text, [edit]) == text
    else:
        assert apply(text, [small]) == apply(text, [edit]) != text
        assert small.start >= edit.start
        assert small.end <= edit.end


def test_shrink():
    assert shrink("foo(a)", Edit(0, 6, "foo(b)")) == Edit(4, 5, "b")
    assert shrink("aaa", Edit(0, 3, "aa")) == Edit(2, 3, "")
    assert shrink("abc", Edit(1, 2, "b")) is None
    assert shrink("abc", Edit(1, 1, "")) is None


@given(st.data())
def test_rebase_commutes(data):
    text = data.draw(TEXTS)
    edits, change = data.draw(changes(text)), data.draw(changes(text))
    moved = rebase(edits, change)
    if moved is not None:
        back = rebase(change, edits)
        assert back is not None
        assert apply(apply(text, change), moved) == apply(apply(text, edits), back)


def test_rebase():
    edits = (Edit(10, 12, "x"),)
    assert rebase(edits, (Edit(0, 1, "abc"), Edit(20, 21, ""))) == (Edit(12, 14, "x"),)
    for touching in (Edit(9, 10, ""), Edit(12, 12, "y"), Edit(0, 99, ""), Edit(11, 11, "y")):
        assert rebase(edits, (touching,)) is None
    assert rebase(edits, ()) == edits


@given(st.data())
def test_interpolation_equals_recomputation(data):
    """Typing through leads to the predicted text; an edit elsewhere leads to both changes."""
    text = data.draw(TEXTS)
    edits = tuple(e for e in data.draw(changes(text)) if e.start != e.end or e.new_text)
    user = data.draw(changes(text, 1).filter(bool))[0]
    if edits and data.draw(st.booleans()):
        target = data.draw(st.sampled_from(edits))
        typed = target.new_text[: data.draw(st.integers(0, len(target.new_text)))]
        user = Edit(target.start, data.draw(st.integers(target.start, target.end)), typed)
    left = interpolate(edits, user)
    if left is None:
        return
    reached = apply(apply(text, [user]), left)
    moved = rebase([user], edits)
    if moved is None:
        assert reached == apply(text, edits)
    else:
        assert reached == apply(apply(text, edits), moved)


def test_typing_through_a_prediction():
    prediction = (Edit(5, 5, "hello"), Edit(20, 23, "bar"))
    for index, key in enumerate("hello"):
        rest = interpolate(prediction, Edit(5 + index, 5 + index, key))
        assert rest is not None
        prediction = rest
    assert prediction == (Edit(25, 28, "bar"),)
    assert interpolate(prediction, Edit(25, 28, "bar")) == ()
    assert interpolate(prediction, Edit(25, 28, "b")) == (Edit(26, 26, "ar"),)
    assert interpolate(prediction, Edit(25, 25, "x")) is None
    assert interpolate(prediction, Edit(28, 28, "x")) is None
    assert interpolate(prediction, Edit(0, 2, "")) == (Edit(23, 26, "bar"),)
    assert interpolate(prediction, Edit(40, 41, "zz")) == prediction
    assert interpolate(prediction, Edit(3, 3, "")) == prediction


def test_deleting_along_with_a_predicted_deletion():
    prediction = (Edit(5, 9, ""),)
    assert interpolate(prediction, Edit(8, 9, "")) == (Edit(5, 8, ""),)
    assert interpolate(prediction, Edit(5, 9, "")) == ()
    assert interpolate(prediction, Edit(4, 6, "")) is None


def test_a_bracket_that_the_editor_closed_is_followed():
    text = "call = f"
    prediction = (Edit(8, 8, "(a, (b)) + 1"),)
    rest = interpolate(prediction, Edit(8, 8, "()"))
    assert rest == (Edit(9, 9, "a, (b)"), Edit(10, 10, " + 1"))
    assert apply(apply(text, [Edit(8, 8, "()")]), rest) == apply(text, prediction)
    assert interpolate((Edit(8, 8, "(a,"),), Edit(8, 8, "()")) is None
    assert interpolate((Edit(8, 8, "[0]"),), Edit(8, 8, "()")) is None
    assert interpolate((Edit(0, 0, '"hi"'),), Edit(0, 0, '""')) == (Edit(1, 1, "hi"),)
