"""Scores of one answer against the right ones.

Responsible for pure functions on texts: exact match, similarity, DeltaChrF, exact lines, kept rate,
position. It knows nothing of cases, predictors or files. The definitions follow those published
with CoEditor, NEP, Sweep and Zed's edit prediction metrics; this is an independent implementation.

`original` is the text before, `actual` the text after the predicted edits, `expected` after the
right ones. Shares are 0 to 1, DeltaChrF is 0 to 100.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import NamedTuple

from diffing.hunks import change_groups
from diffing.positions import split_lines

CHRF_ORDERS = range(1, 7)
CHRF_BETA = 0.5
MAX_LENGTH_GAP = 512
MAX_TABLE = 4_000_000

_UNIT = re.compile(r"\w+|[^\w\s]")


def exact_match(actual: str, expected: str) -> bool:
    """The whole texts are equal."""
    return actual == expected


def exact_match_trailing(actual: str, expected: str) -> bool:
    """Equal once blanks at the ends of lines are removed."""
    return strip_trailing(actual) == strip_trailing(expected)


def exact_match_no_space(actual: str, expected: str) -> bool:
    """Equal once all white space is removed."""
    return "".join(actual.split()) == "".join(expected.split())


def strip_trailing(text: str) -> str:
    """The text without blanks before line ends; line ends become `\\n`."""
    return "\n".join(line.rstrip() for line in split_lines(text + "\n"))


def levenshtein(left: str, right: str) -> int:
    """Edit distance in characters, by Myers' bit-parallel algorithm (Hyyrö's form)."""
    if len(left) < len(right):
        left, right = right, left
    if not right:
        return len(left)
    positions: dict[str, int] = {}
    for index, char in enumerate(right):
        positions[char] = positions.get(char, 0) | 1 << index
    full = (1 << len(right)) - 1
    top = 1 << len(right) - 1
    plus, minus, distance = full, 0, len(right)
    for char in left:
        match = positions.get(char, 0)
        vertical = match | minus
        horizontal = (((match & plus) + plus) ^ plus) | match
        grow = minus | ~(horizontal | plus) & full
        shrink = plus & horizontal
        if grow & top:
            distance += 1
        elif shrink & top:
            distance -= 1
        grow = (grow << 1 | 1) & full
        shrink = shrink << 1 & full
        plus = shrink | ~(vertical | grow) & full
        minus = grow & vertical
    return distance


def similarity(actual: str, expected: str) -> float:
    """1 - Levenshtein distance / length of the longer text; 1 for two empty texts."""
    longest = max(len(actual), len(expected))
    return 1 - levenshtein(actual, expected) / longest if longest else 1.0


def edit_similarity(original: str, actual: str, expected: str) -> float:
    """`similarity` of the edited regions: the lines that are not common to all three texts."""
    texts = [split_lines(text) for text in (original, actual, expected)]
    shortest = min(map(len, texts))
    head = 0
    while head < shortest and len({lines[head] for lines in texts}) == 1:
        head += 1
    tail = 0
    while tail < shortest - head and len({lines[-1 - tail] for lines in texts}) == 1:
        tail += 1
    _, left, right = ("".join(lines[head : len(lines) - tail]) for lines in texts)
    return similarity(left, right)


def delta_chrf(original: str, expected: str, actual: str, beta: float = CHRF_BETA) -> float:
    """chrF of the changes: character n-grams (n = 1..6) that each edit adds or takes away, 0..100.

    Runs of blanks and of line ends count as one. A gram that an edit takes away is a token of its
    own. An order in which neither edit changes anything counts as right.
    """
    texts = without_common_ends([collapse(text) for text in (original, expected, actual)])
    precisions, recalls = [], []
    for order in CHRF_ORDERS:
        base, wanted, got = (grams(text, order) for text in texts)
        right, given = change(base, wanted), change(base, got)
        if not right and not given:
            precisions.append(1.0)
            recalls.append(1.0)
            continue
        hits = (right & given).total()
        precisions.append(hits / given.total() if given else 0.0)
        recalls.append(hits / right.total() if right else 0.0)
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    if not precision and not recall:
        return 0.0
    weight = beta * beta
    return 100 * (1 + weight) * precision * recall / (weight * precision + recall)


def collapse(text: str) -> str:
    """Every run of blanks becomes one blank, every run of line ends one line end."""
    return re.sub(r"\n+", "\n", re.sub(r"[^\S\n]+", " ", text))


def without_common_ends(texts: Sequence[str]) -> list[str]:
    """The texts without what all begin and end with, but for the characters that n-grams need.

    N-grams inside the common ends cancel out, so that the differences of their counts stay.
    """
    margin = CHRF_ORDERS[-1] - 1
    head = max(0, common_start(texts) - margin)
    texts = [text[head:] for text in texts]
    room = min(map(len, texts)) - margin
    tail = min(room, common_start([text[::-1] for text in texts])) - margin
    return [text[:-tail] for text in texts] if tail > 0 else list(texts)


def common_start(texts: Sequence[str]) -> int:
    """Number of characters that all texts begin with, by bisection."""
    low, high = 0, min(map(len, texts))
    while low < high:
        middle = (low + high + 1) // 2
        if all(text[low:middle] == texts[0][low:middle] for text in texts):
            low = middle
        else:
            high = middle - 1
    return low


def grams(text: str, order: int) -> Counter[str]:
    return Counter(text[start : start + order] for start in range(len(text) - order + 1))


def change(base: Counter[str], after: Counter[str]) -> Counter[str]:
    """What became more (`gram`) and what became less (`¬gram`), with by how much."""
    found: Counter[str] = Counter()
    for gram in chain(base, after):
        difference = after[gram] - base[gram]
        if difference:
            found[gram if difference > 0 else "¬" + gram] = abs(difference)
    return found


class Rates(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def exact_lines(original: str, expected: str, actual: str) -> Rates:
    """How many of the predicted `+` and `-` lines are right, as multisets. Two empty diffs
    agree."""
    right, given = changed_lines(original, expected), changed_lines(original, actual)
    if not right and not given:
        return Rates(1.0, 1.0, 1.0)
    hits = (right & given).total()
    precision = hits / given.total() if given else 0.0
    recall = hits / right.total() if right else 0.0
    return Rates(precision, recall, 2 * precision * recall / (precision + recall) if hits else 0.0)


def changed_lines(old: str, new: str) -> Counter[str]:
    lines: Counter[str] = Counter()
    for group in change_groups(old, new):
        lines.update("-" + line.rstrip("\r\n") for line in group.old_lines)
        lines.update("+" + line.rstrip("\r\n") for line in group.new_lines)
    return lines


class Kept(NamedTuple):
    """Shares of the prediction that stay (`kept`) and of the right change that it makes
    (`recall`)."""

    kept: float
    recall: float


def kept_rate(original: str, actual: str, expected: str) -> Kept:
    """How much of the predicted change is part of the right one, in characters of whole tokens.

    Tokens are identifiers, numbers and single marks; white space does not count. New tokens are
    those outside the longest common subsequence with the original. Two empty changes give 1, one
    empty change 0, and so does a change whose growth differs from the right one's by more than
    `MAX_LENGTH_GAP` characters.
    """
    if abs(len(actual) - len(expected)) > MAX_LENGTH_GAP:
        return Kept(0.0, 0.0)
    base, given, right = (_UNIT.findall(text) for text in (original, actual, expected))
    base_given, new_given = outside_common(base, given)
    base_right, new_right = outside_common(base, right)
    given_size = size(given, new_given) + size(base, base_given)
    right_size = size(right, new_right) + size(base, base_right)
    if not given_size or not right_size:
        agree = 1.0 if given_size == right_size else 0.0
        return Kept(agree, agree)
    new = [given[index] for index in new_given]
    left_out, _ = outside_common(new, [right[index] for index in new_right])
    kept = size(new, range(len(new))) - size(new, left_out)
    same = kept + size(base, sorted(set(base_given) & set(base_right)))
    return Kept(same / given_size, same / right_size)


def size(tokens: Sequence[str], indices: Iterable[int]) -> int:
    return sum(len(tokens[index]) for index in indices)


def outside_common(left: Sequence[str], right: Sequence[str]) -> tuple[list[int], list[int]]:
    """Indices of both sequences that are outside their longest common subsequence.

    Beyond `MAX_TABLE` pairs of differing tokens the subsequence is difflib's, which may be shorter.
    """
    head = 0
    while head < min(len(left), len(right)) and left[head] == right[head]:
        head += 1
    tail = 0
    room = min(len(left), len(right)) - head
    while tail < room and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    rows, columns = len(left) - head - tail, len(right) - head - tail
    if not rows or not columns:
        return list(range(head, head + rows)), list(range(head, head + columns))
    if rows * columns > MAX_TABLE:
        return _outside_blocks(left, right)
    table = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        here, below = table[row], table[row + 1]
        token = left[head + row]
        for column in range(columns - 1, -1, -1):
            if token == right[head + column]:
                here[column] = below[column + 1] + 1
            else:
                here[column] = max(below[column], here[column + 1])
    only_left: list[int] = []
    only_right: list[int] = []
    row = column = 0
    while row < rows and column < columns:
        if left[head + row] == right[head + column]:
            row, column = row + 1, column + 1
        elif table[row + 1][column] >= table[row][column + 1]:
            only_left.append(head + row)
            row += 1
        else:
            only_right.append(head + column)
            column += 1
    only_left += range(head + row, head + rows)
    only_right += range(head + column, head + columns)
    return only_left, only_right


def _outside_blocks(left: Sequence[str], right: Sequence[str]) -> tuple[list[int], list[int]]:
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    common_left = {block.a + step for block in blocks for step in range(block.size)}
    common_right = {block.b + step for block in blocks for step in range(block.size)}
    return (
        [index for index in range(len(left)) if index not in common_left],
        [index for index in range(len(right)) if index not in common_right],
    )


def position_match(original: str, actual: str, expected: str) -> bool:
    """Whether a predicted change group overlaps or touches a right one, by lines of the original.

    True when both change nothing, false when only one does. Stricter than NEP's measure of the same
    name, which compares lines of context.
    """
    given = [spans(group.old_start, group.old_lines) for group in change_groups(original, actual)]
    right = [spans(group.old_start, group.old_lines) for group in change_groups(original, expected)]
    if not given or not right:
        return given == right
    return any(a <= d and c <= b for a, b in given for c, d in right)


def spans(start: int, lines: Sequence[str]) -> tuple[int, int]:
    return start, start + len(lines)
