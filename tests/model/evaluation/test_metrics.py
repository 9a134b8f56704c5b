from __future__ import annotations

import random

import pytest

from model.evaluation import metrics
from model.evaluation.metrics import Kept, Rates


def test_exact_match_in_three_degrees() -> None:
    assert metrics.exact_match("a\n", "a\n")
    assert not metrics.exact_match("a\n", "a \n")
    assert metrics.exact_match_trailing("a \nb\t\n", "a\nb\n")
    assert metrics.exact_match_trailing("a\r\nb", "a\nb")
    assert not metrics.exact_match_trailing(" a\n", "a\n")
    assert not metrics.exact_match_trailing("a\n\nb", "a\nb")
    assert metrics.exact_match_no_space("f( a,\n  b )", "f(a, b)")
    assert not metrics.exact_match_no_space("f(a)", "f(b)")


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("same", "same", 0), ("ab", "ba", 2), ("é", "e", 1)],
)
def test_levenshtein_known(left: str, right: str, distance: int) -> None:
    assert metrics.levenshtein(left, right) == distance
    assert metrics.levenshtein(right, left) == distance


def naive_levenshtein(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row = row, [i]
        for j, b in enumerate(right, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b)))
    return row[-1]


def test_levenshtein_equals_the_textbook() -> None:
    rng = random.Random(0)
    for _ in range(300):
        left, right = ("".join(rng.choices("abc", k=rng.randint(0, 90))) for _ in range(2))
        assert metrics.levenshtein(left, right) == naive_levenshtein(left, right)


def test_similarity() -> None:
    assert metrics.similarity("", "") == 1.0
    assert metrics.similarity("abcd", "abxd") == 0.75
    assert metrics.similarity("", "abcd") == 0.0


def test_edit_similarity_looks_at_the_edited_lines_only() -> None:
    original = "one\ntwo\nthree\n"
    assert metrics.edit_similarity(original, "one\n2345\nthree\n", "one\n2346\nthree\n") == 0.8
    assert metrics.edit_similarity(original, original, original) == 1.0


def test_delta_chrf_extremes() -> None:
    assert metrics.delta_chrf("abc", "abc", "abc") == 100
    assert metrics.delta_chrf("x = 1", "x = 2", "x = 2") == 100
    old, new = "value = 1", "value = 2"
    assert metrics.delta_chrf(old, new, old) == 0
    assert metrics.delta_chrf(old, old, new) == 0
    assert metrics.delta_chrf(old, "value = 11", "1 value = 1") < 40


def test_delta_chrf_by_hand() -> None:
    # "a" -> "ab" wanted, "ac" given. Order 1: +b against +c. Order 2: +ab against +ac.
    # Orders 3 to 6: nothing changes, which counts as right. P = R = 4 / 6.
    assert metrics.delta_chrf("a", "ab", "ac") == pytest.approx(100 * 4 / 6)
    # "ab" -> "" wanted, "a" given. Order 1: right {¬a, ¬b}, given {¬b}: P 1, R 1/2.
    # Order 2: {¬ab} both. Orders 3 to 6 empty. P = 1, R = 5.5 / 6.
    recall = 5.5 / 6
    assert metrics.delta_chrf("ab", "", "a") == pytest.approx(
        100 * 1.25 * recall / (0.25 * 1 + recall)
    )
    # With beta = 2 recall weighs more.
    assert metrics.delta_chrf("ab", "", "a", beta=2) == pytest.approx(
        100 * 5 * recall / (4 + recall)
    )


def test_delta_chrf_ignores_the_amount_of_white_space() -> None:
    assert metrics.delta_chrf("a\nb", "a\n\n\nc", "a\nc") == 100
    assert metrics.collapse("a \t b\n\n\nc") == "a b\nc"


def test_delta_chrf_is_the_same_with_and_without_common_ends() -> None:
    rng = random.Random(1)
    for _ in range(50):
        core = ["".join(rng.choices("ab =\n", k=rng.randint(0, 12))) for _ in range(3)]
        head, tail = ("".join(rng.choices("ab =", k=30)) for _ in range(2))
        texts = [metrics.collapse(head + middle + tail) for middle in core]
        base, wanted, got = metrics.without_common_ends(texts)
        for order in metrics.CHRF_ORDERS:
            for after, after_short in ((texts[1], wanted), (texts[2], got)):
                full = metrics.change(metrics.grams(texts[0], order), metrics.grams(after, order))
                short = metrics.change(
                    metrics.grams(base, order), metrics.grams(after_short, order)
                )
                assert full == short


def test_common_start() -> None:
    assert metrics.common_start(["abcd", "abxd", "abc"]) == 2
    assert metrics.common_start(["", "a"]) == 0
    assert metrics.common_start(["aaa", "aaa"]) == 3


def test_exact_lines() -> None:
    original = "a\nb\nc\n"
    assert metrics.exact_lines(original, "a\nB\nc\n", "a\nB\nc\n") == Rates(1, 1, 1)
    # Right: -b +B. Given: -b +X -c +C: one of four is right, one of two is found.
    rates = metrics.exact_lines(original, "a\nB\nc\n", "a\nX\nC\n")
    assert rates == (0.25, 0.5, pytest.approx(1 / 3))
    assert metrics.exact_lines(original, original, original) == Rates(1, 1, 1)
    assert metrics.exact_lines(original, original, "a\n") == Rates(0, 0, 0)


def test_kept_rate_by_hand() -> None:
    # Base: value = old. Given replaces old by newer, right by newer + extra.
    kept = metrics.kept_rate("value = old", "value = newer", "value = newer + extra")
    # Given: 5 new + 3 deleted, all right. Right: newer(5) +(1) extra(5) new, 3 deleted.
    assert kept == Kept(1.0, 8 / 14)
    kept = metrics.kept_rate("value = old", "value = wrong", "value = newer")
    assert kept == Kept(3 / 8, 3 / 8), "only the deletion is shared"
    assert metrics.kept_rate("a", "a", "a") == Kept(1, 1)
    assert metrics.kept_rate("a", "a b", "a") == Kept(0, 0)
    assert metrics.kept_rate("a", "a", "a b") == Kept(0, 0)
    assert metrics.kept_rate("a", "a" + " b" * 300, "a") == Kept(0, 0)


def test_outside_common_is_the_longest() -> None:
    left, right = "abcbdab", "bdcaba"
    only_left, only_right = metrics.outside_common(left, right)
    assert (len(only_left), len(only_right)) == (3, 2)
    common = [char for index, char in enumerate(left) if index not in only_left]
    assert common == [char for index, char in enumerate(right) if index not in only_right]
    assert metrics.outside_common("abc", "abc") == ([], [])
    assert metrics.outside_common("abc", "") == ([0, 1, 2], [])


def test_outside_blocks_agrees_on_an_easy_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = ["a", "x", "b", "y", "c"], ["a", "z", "b", "w", "c"]
    assert metrics.outside_common(left, right) == ([1, 3], [1, 3])
    monkeypatch.setattr(metrics, "MAX_TABLE", 0)
    assert metrics.outside_common(left, right) == ([1, 3], [1, 3])


def test_position_match() -> None:
    original = "a\nb\nc\nd\ne\n"
    right = "a\nB\nc\nd\ne\n"
    assert metrics.position_match(original, "a\nX\nc\nd\ne\n", right)
    assert metrics.position_match(original, "a\nb\nX\nc\nd\ne\n", right), "touching counts"
    assert not metrics.position_match(original, "a\nb\nc\nX\ne\n", right)
    assert metrics.position_match(original, original, original)
    assert not metrics.position_match(original, right, original)
    assert not metrics.position_match(original, original, right)
