from __future__ import annotations

import random
from functools import lru_cache

import pytest

from model.evaluation import keystrokes
from model.evaluation.keystrokes import JUMP, group_cost, saving, typing_cost


@pytest.mark.parametrize(
    ("old", "new", "cost"),
    [
        ("same\n", "same\n", 0),
        ("a = 1\n", "a = 2\n", 4 + 1 + 1),  # come, delete, type
        ("", "xyz\n", 4 + 4),  # come, type three letters and a line end
        ("x\n", "", 4 + 2),  # two deletions, or begin and end of a range
        ("one line\nanother\n", "", 4 + 2),  # a range has any length
        ("f(a)\n", "f(ab, c)\n", 4 + 4),  # come, type "b, c"
        ("abXcdYe\n", "abcde\n", 4 + 1 + 2 + 1),  # X, over "cd" to Y
        ("aX123456Y\n", "a123456\n", 4 + 1 + 4 + 1),  # the way to Y is far: a jump
        ("call(argument)\n", "call()\n", 4 + 2),  # eight letters as one range
        ("gone\n", "new\n", 4 + 2 + 2 + 1),  # g and o, over "ne" to type w
    ],
)
def test_costs_by_hand(old: str, new: str, cost: int) -> None:
    assert group_cost(old, new) == cost


def test_change_groups_are_added_up() -> None:
    before = "a = 1\nkeep\nkeep too\nb = 1\n"
    assert typing_cost(before, "a = 2\nkeep\nkeep too\nb = 2\n") == 6 + 6
    assert typing_cost(before, before) == 0


def textbook_cost(old: str, new: str) -> int:
    """The same moves as a shortest path, one key or move at a time."""
    states = {(0, 0, JUMP, False): 0}
    queue: list[list[tuple[int, int, int, bool]]] = [[(0, 0, JUMP, False)]]
    cost = 0
    while True:
        for state in queue[cost]:
            if states[state] < cost:
                continue
            i, j, away, deleting = state
            if (i, j) == (len(old), len(new)) and not deleting:
                return cost
            moves = []
            if deleting:
                moves.append((1, (i, j, 0, False)))
                if i < len(old):
                    moves.append((0, (i + 1, j, 0, True)))
            else:
                if i < len(old) and j < len(new) and old[i] == new[j]:
                    moves.append((0, (i + 1, j + 1, min(away + 1, JUMP), False)))
                if away:
                    moves.append((away, (i, j, 0, False)))
                else:
                    moves.append((1, (i, j, 0, True)))
                    if i < len(old):
                        moves.append((1, (i + 1, j, 0, False)))
                    if j < len(new):
                        moves.append((1, (i, j + 1, 0, False)))
            for price, after in moves:
                if cost + price < states.get(after, 1 << 30):
                    states[after] = cost + price
                    while len(queue) <= cost + price:
                        queue.append([])
                    queue[cost + price].append(after)
        cost += 1


def test_rows_at_once_give_the_shortest_path() -> None:
    rng = random.Random(0)
    for _ in range(200):
        old, new = ("".join(rng.choices("abc", k=rng.randint(0, 14))) for _ in range(2))
        assert group_cost(old, new) == (textbook_cost(old, new) if old != new else 0)


def test_huge_groups_are_typed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keystrokes, "MAX_TABLE", 3)
    uncached = lru_cache(group_cost.__wrapped__)
    assert uncached("abcd", "abce") == 4 + 2 + 4


def test_what_an_accepted_suggestion_saves() -> None:
    original, answer = "value = 1\n", "value = compute(1)\n"
    by_hand = 4 + len("compute(") + 1 + 1  # come, type, over the 1, close
    assert typing_cost(original, answer) == by_hand
    assert saving(original, answer, (answer,)) == (by_hand, by_hand - 1)
    half = "value = compute(1\n"
    assert saving(original, half, (answer,)) == (by_hand, by_hand - 1 - 5)
    wrong = "value = 1\nvalue = 2\n"
    assert saving(original, wrong, (answer,))[1] < 0


def test_the_answer_that_is_done_counts() -> None:
    original = "a = 1\nkeep\nb = 1\n"
    first, second = "a = 2\nkeep\nb = 1\n", "a = 1\nkeep\nb = 222\n"
    both = "a = 2\nkeep\nb = 222\n"
    assert saving(original, second, (first, second, both)) == (8, 7)
    assert saving(original, both, (first, second, both)) == (14, 13)
