from __future__ import annotations

from tiny import random_bundle

from model.excerpts import Excerpts, Window, find, overlap
from model.prompt import PromptWriter, present_lines

LINES = [f"line_{i} = {i}" for i in range(100)]
HEAD = [5, 6, 7]


def writer() -> PromptWriter:
    bundle = random_bundle()
    return PromptWriter(bundle.tokenizer, bundle.config)


def test_excerpts_made_anew_follow_the_file_and_windows_end_where_they_say() -> None:
    write = writer()
    first, second, inside = Window(4, 12), Window(40, 48), Window(4, 8)
    ids, ends = Excerpts(write).arrange(HEAD, LINES, [second, first, inside], 2000)
    texts = [present_lines(LINES, 4, 12), present_lines(LINES, 40, 48)]
    assert ids == [*HEAD, *write.encode(texts[0]), *write.encode(texts[1])]
    assert ends == {
        inside: len(HEAD) + write.count(present_lines(LINES, 4, 8)),
        first: len(HEAD) + write.count(texts[0]),
        second: len(ids),
    }


def test_neighbouring_windows_are_one_stretch() -> None:
    write = writer()
    ids, ends = Excerpts(write).arrange(HEAD, LINES, [Window(4, 12), Window(8, 15)], 2000)
    assert ids == [*HEAD, *write.encode(present_lines(LINES, 4, 15))]
    assert ends[Window(8, 15)] == len(ids)


def test_what_is_new_goes_behind_what_is_encoded_and_lines_may_move() -> None:
    excerpts = Excerpts(writer())
    before, _ = excerpts.arrange(HEAD, LINES, [Window(40, 48)], 2000)
    moved = ["import this", *LINES]
    ids, ends = excerpts.arrange(HEAD, moved, [Window(5, 13), Window(41, 49)], 2000)
    assert ids[: len(before)] == before
    assert ends[Window(41, 49)] == len(before)
    assert ends[Window(5, 13)] == len(ids) > len(before)


def test_a_changed_line_forgets_itself_and_what_is_behind_it() -> None:
    write = writer()
    excerpts = Excerpts(write)
    excerpts.arrange(HEAD, LINES, [Window(40, 48), Window(60, 68)], 2000)
    edited = [*LINES[:44], "other", *LINES[45:]]
    ids, ends = excerpts.arrange(HEAD, edited, [Window(40, 48), Window(60, 68)], 2000)
    made_anew = Excerpts(write).arrange(HEAD, edited, [Window(40, 48), Window(60, 68)], 2000)
    assert (ids, ends) == made_anew


def test_a_full_context_is_made_anew_with_what_weighs_most() -> None:
    write = writer()
    excerpts = Excerpts(write)
    cost = write.count(present_lines(LINES, 40, 48))
    budget = len(HEAD) + 2 * cost + 2
    windows = [Window(40, 48), Window(20, 28), Window(60, 68)]
    _, ends = excerpts.arrange(HEAD, LINES, windows, budget)
    assert set(ends) == {Window(40, 48), Window(20, 28)}
    ids, ends = excerpts.arrange(HEAD, LINES, [Window(80, 88)], budget)
    assert set(ends) == {Window(80, 88)}
    assert ids == [*HEAD, *write.encode(present_lines(LINES, 80, 88))]


def test_another_head_starts_anew() -> None:
    excerpts = Excerpts(writer())
    excerpts.arrange(HEAD, LINES, [Window(40, 48)], 2000)
    ids, _ = excerpts.arrange([1], LINES, [Window(0, 0)], 2000)
    assert ids == [1]


def test_stretches() -> None:
    assert find(["b", "c"], ["a", "b", "c", "b"]) == 3
    assert find(["c", "a"], ["a", "b", "c"]) is None
    assert find([], ["a"]) == 0
    assert overlap(["a", "b"], ["b", "c"]) == 1
    assert overlap(["a", "b"], ["a", "b"]) == 2
    assert overlap(["a", "b"], ["c"]) == 0
