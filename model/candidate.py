"""Suggestions on their way through the gate: their shape, their confidence, and the choice of one.

Responsible for adding to what the model knows of each suggestion what the text tells, for the gate's verdict, and for
which of several is the one to show. Knows nothing of tensors or of how suggestions are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from diffing.edits import Edit
from model.features import among, describe
from model.gate import Gate
from model.protocol import Request

NEARLY = 0.6
PLACES = 5
DRAFT, COMPLETION = "draft", "completion"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One suggestion: who made it (`draft` or `completion`), and the probability that the gate gives it.

    `line` is the line that it begins on, from 0. A draft has the substitution that led to it, if any, and its signed
    distance from the cursor in lines.
    """

    source: str
    edits: tuple[Edit, ...]
    confidence: float
    features: Mapping[str, float]
    tokens: int
    link: tuple[str, str] | None = None
    distance: int = 0
    line: int = 0


NOTHING = Candidate("", (), 0.0, {}, 0)


def described(request: Request, found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates with what the text and the caller tell of them among their features."""
    drafts = [one for one in found if one.source == DRAFT]
    ranks = iter(among([one.features.get("prior", 0.0) for one in drafts]))
    full = []
    for one in found:
        rank = next(ranks) if one.source == DRAFT else {}
        told = describe(request, one.edits, one.features)
        full.append(replace(one, features={**one.features, **told, **rank, **request.signals}))
    return full


def judged(gate: Gate, found: Iterable[Candidate]) -> list[Candidate]:
    """The candidates with the gate's probabilities."""
    return [replace(one, confidence=gate.probability(one.source, one.features)) for one in found]


def best_of(found: Sequence[Candidate]) -> Candidate:
    """The candidate to show, or not; `NOTHING` where there is none."""
    return nearest_of(found, max(found, key=lambda one: one.confidence, default=NOTHING))


def nearest_of(found: Sequence[Candidate], best: Candidate) -> Candidate:
    """Of the places where the best one's substitution applies the nearest that is not much less sure, those below the
    cursor first: someone who renames goes from place to place, and what he jumps over stays broken."""
    if not best.link or not best.distance:
        return best
    alike = [c for c in found if c.link == best.link and c.distance]
    sure = [c for c in alike if c.confidence >= NEARLY * best.confidence]
    return min(sure, key=lambda c: (c.distance < 0, abs(c.distance)), default=best)


def distribution(probabilities: Iterable[tuple[int, float]]) -> dict[int | None, float]:
    """From (line, probability that an edit there is right) to one distribution over lines and None, "nowhere".

    Odds add up per line, and nowhere has odds 1: one candidate alone keeps its probability.
    """
    odds: dict[int | None, float] = {None: 1.0}
    for line, probability in probabilities:
        p = min(max(probability, 0.0), 1 - 1e-6)
        odds[line] = odds.get(line, 0.0) + p / (1 - p)
    total = sum(odds.values())
    return {line: value / total for line, value in odds.items()}


def likeliest_lines(found: Sequence[Candidate]) -> tuple[tuple[int, float], ...]:
    """The likeliest lines of the next edit with their probabilities, as the candidates tell."""
    lines = distribution((one.line, one.confidence) for one in found)
    named = [(line, chance) for line, chance in lines.items() if line is not None]
    return tuple(sorted(named, key=lambda one: -one[1])[:PLACES])
