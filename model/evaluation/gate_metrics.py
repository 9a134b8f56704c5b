"""How good the decision to show is, over many answers.

Responsible for rates of shown, accepted and quiet answers, for ranking and calibration measures of
the confidence, and for percentiles. Pure functions on numbers; it knows nothing of texts or cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ECE_BINS = 10


@dataclass(frozen=True)
class Outcome:
    """One opportunity: whether an edit was wanted, whether one was shown, and whether that is one
    that the user would accept."""

    wanted: bool
    shown: bool
    accepted: bool


@dataclass(frozen=True)
class ShowRates:
    """Shares over opportunities; None where nothing was there to count.

    show: shown of all; show_wanted: shown where an edit was wanted; accept: accepted of shown
    (precision); recall: accepted of wanted; quiet: not shown where none was wanted; unwanted: shown
    but not accepted, of all; f05: F-score of precision and recall with beta = 0.5.
    """

    show: float | None
    show_wanted: float | None
    accept: float | None
    recall: float | None
    quiet: float | None
    unwanted: float | None
    f05: float | None


def show_rates(outcomes: Iterable[Outcome]) -> ShowRates:
    every = list(outcomes)
    shown = sum(outcome.shown for outcome in every)
    accepted = sum(outcome.shown and outcome.accepted for outcome in every)
    wanted = sum(outcome.wanted for outcome in every)
    unwanted_places = [outcome for outcome in every if not outcome.wanted]
    quiet = sum(not outcome.shown for outcome in unwanted_places)
    precision, recall = share(accepted, shown), share(accepted, wanted)
    f05 = None
    if precision is not None and recall is not None:
        bottom = 0.25 * precision + recall
        f05 = 1.25 * precision * recall / bottom if bottom else 0.0
    return ShowRates(
        show=share(shown, len(every)),
        show_wanted=share(sum(outcome.wanted and outcome.shown for outcome in every), wanted),
        accept=precision,
        recall=recall,
        quiet=share(quiet, len(unwanted_places)),
        unwanted=share(shown - accepted, len(every)),
        f05=f05,
    )


def share(part: float, whole: float) -> float | None:
    """The quotient, None when there is nothing to divide by."""
    return part / whole if whole else None


def auroc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Probability that a positive scores above a negative, ties counting half. None without
    both."""
    positives = sum(labels)
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    order = sorted(range(len(scores)), key=lambda index: scores[index])
    rank_sum = 0.0
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and scores[order[end + 1]] == scores[order[start]]:
            end += 1
        rank = (start + end) / 2 + 1
        rank_sum += rank * sum(labels[order[index]] for index in range(start, end + 1))
        start = end + 1
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def average_precision(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Area under the step-wise precision-recall curve, equal scores taken together."""
    positives = sum(labels)
    if not positives:
        return None
    total = hits = seen = 0.0
    for group in by_score(scores, labels):
        found = sum(group)
        hits += found
        seen += len(group)
        total += found / positives * hits / seen
    return total


def accepted_at_precision(
    scores: Sequence[float], labels: Sequence[bool], precision: float
) -> tuple[int, float | None]:
    """The most positives that a threshold can show with at least this precision, and the threshold.

    (0, None) when no threshold reaches it.
    """
    best: tuple[int, float | None] = (0, None)
    hits = seen = 0
    distinct = sorted(set(scores), reverse=True)
    for score, group in zip(distinct, by_score(scores, labels), strict=True):
        hits += sum(group)
        seen += len(group)
        if hits > best[0] and hits >= precision * seen:
            best = (hits, score)
    return best


def show_curve(
    scores: Sequence[float], labels: Sequence[bool], opportunities: int
) -> list[tuple[float, float, float]]:
    """(threshold, show rate, accept rate) of every threshold that shows something, the highest
    first.

    `scores` and `labels` are those of the suggestions that a threshold may show, `opportunities`
    counts the cases where one was wanted or not.
    """
    curve = []
    shown = accepted = 0
    distinct = sorted(set(scores), reverse=True)
    for score, group in zip(distinct, by_score(scores, labels), strict=True):
        shown += len(group)
        accepted += sum(group)
        curve.append((score, shown / opportunities, accepted / shown))
    return curve


def by_score(scores: Sequence[float], labels: Sequence[bool]) -> list[list[bool]]:
    """The labels of each distinct score, highest score first."""
    groups: dict[float, list[bool]] = {}
    for score, label in zip(scores, labels, strict=True):
        groups.setdefault(score, []).append(label)
    return [groups[score] for score in sorted(groups, reverse=True)]


def expected_calibration_error(
    scores: Sequence[float], labels: Sequence[bool], bins: int = ECE_BINS
) -> float | None:
    """Mean |confidence - accuracy| over bins of equal width, weighted by their size.

    Scores are taken as probabilities; 1 belongs to the last bin.
    """
    if not scores:
        return None
    members: list[list[int]] = [[] for _ in range(bins)]
    for index, score in enumerate(scores):
        members[min(bins - 1, max(0, math.floor(score * bins)))].append(index)
    total = 0.0
    for group in members:
        if group:
            confidence = sum(scores[index] for index in group) / len(group)
            accuracy = sum(labels[index] for index in group) / len(group)
            total += len(group) / len(scores) * abs(confidence - accuracy)
    return total


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Percentile with linear interpolation between the two nearest values; None for no values."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
