"""The simulated user: what he would make of every suggestion while he works through an edit.

Responsible for labelling recorded suggestions (`opportunities`), for walking through the pauses with a gate that
decides what he sees (`walk`), and for the sums of it. He accepts by the rule of `model.evaluation.oracle`, pays with
time for what he reads, never sees what comes after his next key, and goes on typing where an accepted suggestion
leaves him. Deterministic. Knows nothing of files, of training, or of how suggestions are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diffing.edits import apply
from model.candidate import NOTHING, Candidate, best_of, described, judged
from model.evaluation.gate_metrics import share
from model.evaluation.keystrokes import ACCEPT, KEY_S, READ, reading_seconds, typing_cost
from model.evaluation.oracle import accepts
from model.evaluation.replay import IDLE_S, Pause, Trace, typed
from model.evaluation.score import mentions
from model.filters import suppress_reason
from model.gate import Gate
from model.protocol import Prediction, Request

Answers = Callable[[Request], "tuple[Sequence[Candidate], float] | None"]
Decide = Callable[["Opportunity"], "Offer | None"]

FINISHED = 1 << 30


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggestion that could be shown, and what the user would make of it.

    `saved` are keys that accepting it saves (possibly negative), `reaches` the key of the way to the target at which he
    goes on after it; `size` counts the characters that it inserts.
    """

    candidate: Candidate
    accepted: bool
    saved: int = 0
    reaches: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Opportunity:
    """One pause with all offers that pass the structural filters. `keys` were typed before it, of `by_hand` from
    here; the offers took `ms` milliseconds when they were recorded, and the next key comes after `rest` seconds."""

    trace: str
    number: int
    kind: str
    package: str
    release: str
    linked: bool | None
    mode: str
    wanted: bool
    keys: int
    by_hand: int
    ms: float
    offers: tuple[Offer, ...] = ()
    rest: float = IDLE_S

    def late(self, speed: float | None) -> bool:
        """Whether the next key comes before the offers, from a machine that is `speed` times as fast as the one that
        recorded them; without a speed nothing is late."""
        return speed is not None and self.ms / 1000 > self.rest * speed


def opportunities(traces: Iterable[Trace], answers: Answers) -> Iterator[Opportunity]:
    """Every pause for which there is an answer, labelled."""
    for trace in traces:
        for number, pause in enumerate(trace.pauses):
            if (found := answers(pause.request)) is not None:
                yield opportunity(trace, number, pause, *found)


def opportunity(
    trace: Trace, number: int, pause: Pause, found: Sequence[Candidate], ms: float
) -> Opportunity:
    request = pause.request
    target = pause.expected[0]
    by_hand = typing_cost(request.text, target) if pause.wanted else 0
    offers = []
    for one in described(request, found):
        if suppress_reason(request, Prediction(one.edits)) is None:
            offers.append(labelled(pause, one, by_hand))
    known = (str(trace.id), number, trace.kind, trace.package, trace.release, trace.linked)
    costs = (pause.keys, by_hand, ms)
    return Opportunity(*known, request.mode, pause.wanted, *costs, tuple(offers), pause.rest)


def labelled(pause: Pause, one: Candidate, by_hand: int) -> Offer:
    """What the user makes of one suggestion at a pause."""
    request = pause.request
    after = apply(request.text, one.edits)
    size = sum(len(edit.new_text) for edit in one.edits)
    history = [diff for diff in request.history if mentions(diff, request.path)]
    python = request.path.endswith(".py")
    if not accepts(request.text, after, pause.expected, history, python=python):
        return Offer(one, False, size=size)
    left = min(typing_cost(after, answer) for answer in pause.expected)
    return Offer(one, True, by_hand - ACCEPT - left, reached(pause, after), size)


def reached(pause: Pause, after: str) -> int:
    """The key of the way to the target that an accepted suggestion stands for; the last one if it finishes an answer or
    leaves the way."""
    if after in pause.expected:
        return FINISHED
    for moment in typed(pause.request.text, pause.expected[0]):
        if moment.text.rstrip() == after.rstrip() or same_lines(moment.text, after):
            return pause.keys + moment.keys
    return FINISHED


def same_lines(left: str, right: str) -> bool:
    """Equal but for blanks at line ends."""
    return len(left) - len(right) in range(-8, 9) and [
        line.rstrip() for line in left.split("\n")
    ] == [line.rstrip() for line in right.split("\n")]


def by_gate(gate: Gate, setting: str = "balanced", threshold: float | None = None) -> Decide:
    """Show what the server would: the best by the gate's probabilities if it reaches the threshold of the mode."""

    def decide(chance: Opportunity) -> Offer | None:
        offers = {id(offer.candidate.features): offer for offer in chance.offers}
        best = best_of(judged(gate, [offer.candidate for offer in chance.offers]))
        least = gate.threshold(chance.mode, setting) if threshold is None else threshold
        if best is NOTHING or not best.edits or best.confidence < least:
            return None
        return offers[id(best.features)]

    return decide


@dataclass(frozen=True, slots=True)
class Step:
    """A pause that the user came to, and what he was shown there; `late` if it came too late to be seen."""

    chance: Opportunity
    shown: Offer | None
    late: bool = False

    @property
    def accepted(self) -> bool:
        return self.shown is not None and self.shown.accepted


def walk(
    chances: Iterable[Opportunity], decide: Decide, speed: float | None = None
) -> Iterator[Step]:
    """The pauses in order; those that an accepted suggestion has jumped over are left out. What is late is never
    seen."""
    trace, at = "", 0
    for chance in chances:
        if chance.trace != trace:
            trace, at = chance.trace, 0
        if chance.keys < at:
            continue
        shown = decide(chance)
        late = shown is not None and chance.late(speed)
        if late:
            shown = None
        if shown is not None and shown.accepted:
            at = shown.reaches
        yield Step(chance, shown, late)


@dataclass
class Sums:
    """What a user went through, in numbers. `theta` weighs shown suggestions in `utility`."""

    pauses: int = 0
    shown: int = 0
    accepted: int = 0
    shown_unwanted: int = 0
    unwanted_pauses: int = 0
    saved: int = 0
    characters: int = 0
    by_hand: int = 0
    late: int = 0
    reading: float = 0.0
    by_kind: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        chance = step.chance
        shown, accepted = step.shown is not None, step.accepted
        self.pauses += 1
        self.late += step.late
        self.shown += shown
        self.accepted += accepted
        self.unwanted_pauses += not chance.wanted
        self.shown_unwanted += shown and not chance.wanted
        self.by_hand += chance.by_hand if chance.number == 0 else 0
        if step.shown is not None:
            self.reading += reading_seconds(step.shown.size)
        if step.shown is not None and step.accepted:
            self.saved += step.shown.saved
            self.characters += step.shown.size
        counts = self.by_kind.get(chance.kind, (0, 0, 0))
        self.by_kind[chance.kind] = (counts[0] + 1, counts[1] + shown, counts[2] + accepted)

    def utility(self, theta: float = 0.25) -> float:
        return self.accepted - theta * self.shown

    def figures(self) -> dict[str, Any]:
        """Rates; None where there is nothing to divide by. `keys_saved` is net of looks at what was turned down,
        `time_saved` of reading all that was shown; `reading` are seconds for each suggestion shown."""
        unwanted = self.shown - self.accepted
        time_saved = self.saved * KEY_S - self.reading
        return {
            "pauses": self.pauses,
            "shown": self.shown,
            "accepted": self.accepted,
            "accept_rate": share(self.accepted, self.shown),
            "show_rate": share(self.shown, self.pauses),
            "unwanted": unwanted,
            "quiet": share(self.unwanted_pauses - self.shown_unwanted, self.unwanted_pauses),
            "utility": self.utility(),
            "keys_saved": share(self.saved - READ * unwanted, self.by_hand),
            "characters": share(self.characters, self.accepted),
            "late": self.late,
            "reading": share(self.reading, self.shown),
            "time_saved": share(time_saved, self.by_hand * KEY_S),
        }


def sums(steps: Iterable[Step]) -> Sums:
    total = Sums()
    for step in steps:
        total.add(step)
    return total


def ratios(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, float | None]:
    """The four readings of "more accepted, more selective": after divided by before."""
    names = ("accepted", "accept_rate", "shown", "unwanted")
    return {name: share(after[name] or 0, before[name] or 0) for name in names}
