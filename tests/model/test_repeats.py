from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model.denoise import ngram_draft
from model.repeats import Repeats


def test_the_longest_run_is_taken_from_where_it_stood_last() -> None:
    repeats = Repeats([1, 2, 3, 4, 9, 2, 3, 7, 7, 8, 2])
    assert repeats.draft(3) == [7, 7, 8], "a run of two is trusted for three tokens"
    repeats.extend([3, 5])
    assert repeats.tokens[-2:] == [3, 5]
    assert repeats.draft(6) == []
    repeats.extend([1, 2, 3])
    assert repeats.draft(4) == [9, 2, 3, 7, 7, 8, 2, 3, 5, 1], "and one of four for ten"
    assert Repeats().draft(1) == []


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, 3))
def test_the_index_finds_what_a_search_finds(tokens: list[int], last: int) -> None:
    sequence = [*tokens, last]
    assert Repeats(tokens).draft(last) == ngram_draft(sequence, sequence)[: len(sequence)]
