"""`redraft tune`: the gate learns from what its user accepted and rejected, on his own machine.

Responsible for the command: reading the store or exported lines, the split by time, training, the refusal of a gate
that is not better on the feedback it has not seen, the files in the user's folder, and what is printed. Knows nothing
of a running server; one that starts later loads the new gate.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from model.bundle import EMBEDDED
from model.config import ModelConfig, ModelError
from model.evaluation.gate_metrics import auroc, expected_calibration_error, share
from model.evaluation.picture import PictureError, check
from model.feedback import FILE as STORE
from model.feedback import MISSED, SPARED, FeedbackError, Life, Store, data_folder, read_lives
from model.gate import FILE, Gate, Logistic, fingerprint, load_for_user, tuned_path
from model.remote.predictor import GATE, gate_name
from model.targets import check_folder
from model.training.gate_fit import Sample, calibrated_and_unseen, tune
from model.training.labels import label
from model.training.threshold import THETAS, choose_all, interval, utility

LEAST_EVENTS = 40
LEAST_OF_EACH = 5
HELD_OUT = 0.3
PENALTIES = (0.3, 0.1, 0.03, 0.01)
BETA = 2.0
STEPS = 150
LEAST_OF_A_SOURCE = 3
TOGETHER = 5
SHOWN_COUNTS = 2
"""What was shown counts so much of what was held back: of that nobody said anything."""

TASTE = (
    *(
        "after rejection",
        "typing speed",
        "grown lines",
        "new lines",
        "lines",
        "inserted",
        "removed",
    ),
    *("linked", "ahead", "in comment", "in string", "unknown words", "repeats"),
)
"""Features that a tuned gate may weigh although the one before did not."""

KEPT_BACK = ".before"


class TuneError(Exception):
    """Nothing was changed; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A suggestion that its user judged, or typed or did not type when it was held back."""

    mode: str
    source: str
    sample: Sample
    held_back: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "feedback", nargs="?", type=Path, help="JSON lines (default: your own store)"
    )
    parser.add_argument("--model", type=Path, default=EMBEDDED, help="the folder of the model")
    parser.add_argument(
        "--remote",
        metavar="MODEL",
        help="tune the gate of a service's model instead (`remote.model`)",
    )
    parser.add_argument("--home", type=Path, help="where the tuned gate goes (default: your data)")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw before and after (.svg)")
    parser.add_argument("--dry-run", action="store_true", help="tell only; change nothing")
    parser.add_argument("--rollback", action="store_true", help="the gate before the last tuning")


def run(args: argparse.Namespace) -> int:
    """0: the gate was replaced (or would be), 1: it was not, and why."""
    try:
        if args.picture:
            check(args.picture)
        home = args.home or data_folder()
        folder, name = shipped(args)
        path = tuned_path(home, name)
        if args.rollback:
            print(rollback(path))
            return 0
        if not args.dry_run:
            check_folder(path.parent)
        gate = load_for_user(folder, name, home)
        judged = judgements(relevant(read(args.feedback, home), gate.models, args.remote))
        seconds = time.perf_counter()
        seen, held = split(judged)
        candidate = tuned(gate, seen)
        final = tuned(gate, judged)
        seconds = time.perf_counter() - seconds
        print(report(gate, candidate, held, len(seen), seconds))
        if args.picture:
            from model.training.tune_picture import draw

            draw(args.picture, {"before": outcomes(gate, held), "after": outcomes(candidate, held)})
        refuse_unless_better(gate, candidate, held)
        if args.dry_run:
            print("The new gate is better; nothing was changed (--dry-run).")
            return 0
        about = {"base": fingerprint(folder / FILE), "events": len(judged)}
        about["made"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        install(replace(final, about=about), path)
        print(
            f"The new gate is in use from the next start on: {path}\nBack: redraft tune --rollback"
        )
    except (TuneError, FeedbackError, ModelError, PictureError, OSError, ValueError) as error:
        print(f"redraft tune: {error}", file=sys.stderr)
        return 1
    return 0


def shipped(args: argparse.Namespace) -> tuple[Path, str]:
    """The folder of the gate to begin with, and the name that the tuned one is filed under."""
    if args.remote is None:
        return args.model, ModelConfig.load(args.model).name
    return GATE, gate_name(args.remote)


def relevant(lives: Sequence[Life], sources: Container[str], model: str | None) -> list[Life]:
    """What a gate for these sources, of this model of a service if one is named, can learn from."""
    return [
        life
        for life in lives
        if life.suggested.source in sources and model in (None, life.suggested.model)
    ]


def read(path: Path | None, home: Path) -> list[Life]:
    """Feedback of a file of exported lines, else of the user's store."""
    if path is not None:
        return read_lives(path)
    store = home / STORE
    if not store.exists():
        raise TuneError(f"there is no feedback yet ({store})")
    with Store(store) as opened:
        return list(opened.lives())


def judgements(lives: Sequence[Life]) -> list[Judged]:
    """What was said of suggestions, oldest first. TuneError when it is too little to learn from."""
    found: list[Judged] = []
    for life in sorted(lives, key=lambda one: one.suggested.made):
        one = life.suggested
        if one.source and (said := label(life)) is not None:
            group = one.group or f"sitting {len(found) // TOGETHER}"
            hidden = any(event.state in (MISSED, SPARED) for event in life.events)
            found.append(Judged(one.mode, one.source, Sample(one.features, said, group), hidden))
    shown = [one for one in found if not one.held_back]
    accepted = sum(one.sample.accepted for one in shown)
    if len(shown) < LEAST_EVENTS or min(accepted, len(shown) - accepted) < LEAST_OF_EACH:
        raise TuneError(
            f"{len(shown)} suggestions were judged, {accepted} of them wanted; at least {LEAST_EVENTS} "
            f"are needed, {LEAST_OF_EACH} of each sort. Nothing was changed."
        )
    return found


def weighed(judged: Sequence[Judged]) -> list[Judged]:
    """What was shown `SHOWN_COUNTS` times, what was held back once."""
    if not any(one.held_back for one in judged):
        return list(judged)
    return [one for one in judged for _ in range(1 if one.held_back else SHOWN_COUNTS)]


def split(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """The older ones to learn from and the newest to tell whether it helped."""
    at = round(len(judged) * (1 - HELD_OUT))
    return list(judged[:at]), list(judged[at:])


def tuned(gate: Gate, judged: Sequence[Judged]) -> Gate:
    """The gate after KTO with itself as the reference, calibrated, and thresholds of most utility.

    Both by suggestions that the model was not tuned with. A source with too few judgements of a sort stays as it is,
    and so does one of which the gate before tells more.
    """
    judged = weighed(judged)
    models = dict(gate.models)
    probabilities = [p for p, _ in outcomes(gate, judged)]
    for source in sorted({one.source for one in judged} & set(gate.models)):
        places = [number for number, one in enumerate(judged) if one.source == source]
        samples = [
            replace(
                judged[number].sample, features=gate.full(source, judged[number].sample.features)
            )
            for number in places
        ]
        if not both_sorts(samples):
            continue
        for model, unseen in best_fit(
            gate.models[source], samples, [probabilities[n] for n in places]
        ):
            models[source] = model
            for number, probability in zip(places, unseen, strict=True):
                probabilities[number] = probability
    thresholds = {}
    for mode, values in gate.thresholds.items():
        pairs = [
            (p, one.sample.accepted)
            for one, p in zip(judged, probabilities, strict=True)
            if one.mode == mode
        ]
        enough = len(pairs) >= LEAST_EVENTS
        thresholds[mode] = choose_all(pairs) if enough else values
    return Gate(models, thresholds, gate.about)


def best_fit(
    reference: Logistic, samples: Sequence[Sample], before: Sequence[float]
) -> list[tuple[Logistic, list[float]]]:
    """KTO from a reference, as bold as pays: of several penalties the one that tells best what it was not tuned with.

    The calibrated model and its probabilities of unseen samples; nothing where the reference's, `before`, tell better.
    """
    names = [name for name in TASTE if any(name in sample.features for sample in samples)]
    best, least = [], surprise(before, samples)
    for penalty in PENALTIES:

        def fit(part: Sequence[Sample], penalty: float = penalty) -> Logistic:
            return tune(part, reference, names=names, beta=BETA, penalty=penalty, steps=STEPS)

        found = calibrated_and_unseen(fit, samples)
        if (cost := surprise(found[1], samples)) < least:
            best, least = [found], cost
    return best


def surprise(probabilities: Sequence[float], samples: Sequence[Sample]) -> float:
    """Mean negative log-likelihood of what was said, in nats."""
    bounded = [min(max(p, 1e-6), 1 - 1e-6) for p in probabilities]
    pairs = zip(bounded, samples, strict=True)
    return -sum(math.log(p if s.accepted else 1 - p) for p, s in pairs) / len(samples)


def both_sorts(samples: Sequence[Sample]) -> bool:
    accepted = sum(sample.accepted for sample in samples)
    return min(accepted, len(samples) - accepted) >= LEAST_OF_A_SOURCE


def outcomes(gate: Gate, judged: Sequence[Judged]) -> list[tuple[float, bool]]:
    """The gate's probability of each suggestion, and whether it was wanted."""
    return [(gate.probability(o.source, o.sample.features), o.sample.accepted) for o in judged]


def worth(gate: Gate, judged: Sequence[Judged], setting: str = "balanced") -> float:
    """Utility of what the gate would have shown of these."""
    return sum(
        utility([pair], gate.threshold(one.mode, setting), THETAS[setting])
        for one, pair in zip(judged, outcomes(gate, judged), strict=True)
    )


def refuse_unless_better(before: Gate, after: Gate, held: Sequence[Judged]) -> None:
    """TuneError unless the new gate is worth more on the newest feedback, which it has not seen."""
    old, new = worth(before, held), worth(after, held)
    if new <= old:
        raise TuneError(
            f"the tuned gate is not better on the newest {len(held)} suggestions "
            f"(utility {new:.2f}, before {old:.2f}). The gate stays as it is."
        )


def report(before: Gate, after: Gate, held: Sequence[Judged], seen: int, seconds: float) -> str:
    """Before and after on the feedback that was held out."""
    lines = [f"{seen} suggestions to learn from, the newest {len(held)} to tell; {seconds:.1f} s"]
    lines += ["", "| | shown | accepted | accept rate | utility | AUROC | ECE |"]
    lines.append("| --- |" + " ---: |" * 6)
    for name, gate in (("before", before), ("after", after)):
        pairs = outcomes(gate, held)
        shown = [
            accepted
            for one, (p, accepted) in zip(held, pairs, strict=True)
            if p >= gate.threshold(one.mode, "balanced")
        ]
        rate = share(sum(shown), len(shown))
        scores, said = [p for p, _ in pairs], [a for _, a in pairs]
        area, error = auroc(scores, said), expected_calibration_error(scores, said)
        told = ["-" if rate is None else f"{100 * rate:.1f} %", f"{worth(gate, held):.2f}"]
        told += ["-" if value is None else f"{value:.3f}" for value in (area, error)]
        lines.append(f"| {name} | {len(shown)} | {sum(shown)} | " + " | ".join(told) + " |")
    for mode in sorted({one.mode for one in held}):
        pairs = [p for one, p in zip(held, outcomes(after, held), strict=True) if one.mode == mode]
        low, high = interval(pairs)
        lines.append(
            f"\nThreshold of {mode}: {after.threshold(mode, 'balanced'):.3f}, was "
            f"{before.threshold(mode, 'balanced'):.3f}; 95 % of samples of the held-out feedback choose "
            f"{low:.3f} to {high:.3f}"
        )
    return "\n".join(lines)


def install(gate: Gate, path: Path) -> None:
    """Put a gate in its place; the one that was there is kept."""
    if path.exists():
        os.replace(path, path.with_name(path.name + KEPT_BACK))
    gate.write(path)


def rollback(path: Path) -> str:
    """Undo the last tuning: back to the tuned gate before it, or to the one that the model ships with."""
    if not path.exists():
        raise TuneError("there is no tuned gate to go back from")
    before = path.with_name(path.name + KEPT_BACK)
    if before.exists():
        os.replace(before, path)
        return "The tuned gate of before is in use again."
    path.unlink()
    return "The gate that the model ships with is in use again."
