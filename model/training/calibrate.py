"""Make the gate that a model ships with, and say whether it is better than the one before.

    python -m model.evaluation.replay CASES.jsonl --count 900 --out TRAIN.jsonl         (the same for DEV.jsonl)
    redraft simulate TRAIN.jsonl --record TRAIN-RECORD.jsonl                            (the model proposes; resumes)
    python -m model.training.calibrate first-look CASES.jsonl --out DRAFTS.jsonl
    python -m model.training.calibrate fit --train TRAIN.jsonl TRAIN-RECORD.jsonl \
        --dev DEV.jsonl DEV-RECORD.jsonl --first-look DRAFTS.jsonl --model model/embedded

Responsible for the order of the work: drafts of many cases, which need no model, give a first look; suggestions of the
model on some hundreds of cases give the rest by maximum likelihood; KTO tunes that. Everything is chosen on training
packages, thresholds by one rule for all; packages for development only tell how good it is. Knows nothing of a user.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from diffing.edits import shrink
from model.bundle import EMBEDDED
from model.candidate import COMPLETION, DRAFT, Candidate
from model.draft import drafts
from model.evaluation.gate_report import Run, compared, run_gate, table
from model.evaluation.recorded import Recorded
from model.evaluation.replay import drawn, trace_of
from model.evaluation.simulate import Opportunity, opportunities, opportunity
from model.evaluation.simulate_command import read_traces
from model.gate import FILE, FIRST_LOOK, FIRST_ODDS, Gate, Logistic
from model.local import JUDGED
from model.locate import place_of
from model.training.gate_fit import Fit, Sample, calibrated_and_unseen, fit_likelihood, tune
from model.training.threshold import choose_all

FIRST_LOOK_CASES = 8000
PER_PACKAGE = 250
FIRST_PENALTY = 0.001
SELDOM = 20
NAMES = {
    DRAFT: (FIRST_ODDS, "doubt", "worst", "mean", "now", "gain", "tokens"),
    COMPLETION: (
        *("log_odds", "share", "mean", "least", "entropy", "tokens", "lines", "ended"),
        *("denoising_steps", "inserted", "unknown words", "repeats", "open", "linked", "fim"),
        *("in word", "rest", "blank", "in comment", "in string"),
    ),
}
"""What is weighed besides the first look: few, for there are only hundreds of suggestions of the model. Chosen, with
the figures below, by the ranking of suggestions of training packages that were held out."""

PENALTIES = {DRAFT: 0.003, COMPLETION: 0.03}
RAW = {
    DRAFT: Logistic(0.0, {"mean": (1.0, 0.0, 1.0)}),
    COMPLETION: Logistic(0.0, {"mean": (1.0, 0.0, 1.0)}),
}
"""The untuned confidence: the mean probability of the tokens."""

Models = Mapping[str, Fit]


def first_look(args: argparse.Namespace) -> int:
    """Write one row for every draft of many cases, with what the text tells of it and whether it is right."""
    count = 0
    with args.out.open("w") as out:
        for case in drawn(args.cases, args.count, args.per_package):
            trace = trace_of(case, 2)
            for number, pause in enumerate(trace.pauses):
                request = pause.request
                if request.mode == "fim":
                    continue
                found = []
                for draft in drafts(request)[:JUDGED]:
                    if (edit := shrink(request.text, draft.edit)) is not None:
                        place = (draft.link, draft.distance, place_of(request.text, draft).first)
                        found.append(Candidate(DRAFT, (edit,), 0.0, draft.features(), 0, *place))
                for offer in opportunity(trace, number, pause, found, 0.0).offers:
                    features = {k: round(v, 4) for k, v in offer.candidate.features.items() if v}
                    row = {"package": trace.package, "accepted": offer.accepted}
                    out.write(json.dumps(row | {"features": features}) + "\n")
                    count += 1
    print(f"{count} drafts")
    return 0


def read_first_look(path: Path) -> list[Sample]:
    """The rows of `first_look`; features that are 0 were left out of them."""
    rows = [json.loads(line) for line in path.open()]
    names = {name for row in rows for name in row["features"]}
    zero = dict.fromkeys(names, 0.0)
    return [Sample({**zero, **row["features"]}, row["accepted"], row["package"]) for row in rows]


def often(samples: Sequence[Sample]) -> list[str]:
    """Features that differ from their commonest value in enough samples to weigh them."""
    found = []
    for name in sorted({name for sample in samples for name in sample.features}):
        values = Counter(sample.features.get(name) for sample in samples)
        if len(samples) - values.most_common(1)[0][1] >= SELDOM:
            found.append(name)
    return found


def samples_of(chances: Sequence[Opportunity], source: str, first: Logistic | None) -> list[Sample]:
    """Every offer of one source, with what the first look makes of it."""
    found = []
    for chance in chances:
        for offer in chance.offers:
            one = offer.candidate
            if one.source == source:
                features = dict(one.features)
                if first is not None:
                    features[FIRST_ODDS] = first.log_odds(one.features)
                found.append(Sample(features, offer.accepted, chance.package))
    return found


class Maker:
    """Fits gates to opportunities: `likelihood` and, with that as the reference, `kto`."""

    def __init__(self, chances: Sequence[Opportunity], first: Logistic | None) -> None:
        self.chances, self.first = chances, first
        self.samples = {
            DRAFT: samples_of(chances, DRAFT, first),
            COMPLETION: samples_of(chances, COMPLETION, None),
        }

    def likelihood(self) -> Gate:
        return self._gate({source: self._likelihood(source) for source in self.samples})

    def kto(self, beta: float, penalty: float, ratio: float) -> Gate:
        def fit_of(source: str) -> Fit:
            reference = self._likelihood(source)
            return lambda samples: tune(
                samples, reference(samples), beta=beta, penalty=penalty, ratio=ratio
            )

        return self._gate({source: fit_of(source) for source in self.samples})

    def _likelihood(self, source: str) -> Fit:
        names, penalty = NAMES[source], PENALTIES[source]
        return lambda samples: fit_likelihood(samples, names, penalty)

    def _gate(self, fits: Models) -> Gate:
        """A calibrated gate with the thresholds that suggestions of packages it was not fitted to ask for."""
        models: dict[str, Logistic] = {}
        unseen: dict[str, Iterator[float]] = {}
        for source, fit in fits.items():
            models[source], found = calibrated_and_unseen(fit, self.samples[source])
            unseen[source] = iter(found)
        if self.first is not None:
            models[DRAFT + FIRST_LOOK] = self.first
        best = []
        for chance in self.chances:
            scored = [(next(unseen[o.candidate.source]), o.accepted) for o in chance.offers]
            best.append((chance.mode, *max(scored, default=(0.0, False))))
        return Gate(models, thresholds(best))


def thresholds(
    best: Sequence[tuple[str, float, bool]],
) -> dict[str, dict[str, float]]:
    """For each mode and setting the threshold of most utility; `best` are (mode, probability, accepted)."""
    return {
        mode: choose_all([(p, a) for m, p, a in best if m == mode]) for mode in ("fim", "next_edit")
    }


def by_the_same_rule(gate: Gate, chances: Sequence[Opportunity]) -> Gate:
    """A gate with thresholds chosen on the training packages as those of the fitted ones are."""
    best = []
    for chance in chances:
        scored = [
            (gate.probability(o.candidate.source, o.candidate.features), o.accepted)
            for o in chance.offers
        ]
        best.append((chance.mode, *max(scored, default=(0.0, False))))
    return Gate(gate.models, thresholds(best), gate.about)


def fit(args: argparse.Namespace) -> int:
    """Fit, compare on the development packages, and write `gate.json` where it is better."""
    train, dev = (recorded(*map(Path, pair)) for pair in (args.train, args.dev))
    looked = read_first_look(args.first_look)
    first = fit_likelihood(looked, often(looked), FIRST_PENALTY)
    maker = Maker(train, first)
    before = Gate.load(args.model)
    gates = {
        "shipped before": before,
        "raw confidence, threshold tuned": by_the_same_rule(Gate(RAW, {}), train),
        "shipped before, threshold tuned": by_the_same_rule(before, train),
        "logistic": maker.likelihood(),
        "KTO": maker.kto(args.beta, args.penalty, args.ratio),
    }
    runs = {name: run_gate(name, gate, dev) for name, gate in gates.items()}
    print(
        f"{len(train)} pauses to train, {len(dev)} to tell; {len(looked)} drafts for a first look"
    )
    print(f"thresholds: {json.dumps({name: gate.thresholds for name, gate in gates.items()})}\n")
    print(table([runs["raw confidence, threshold tuned"], *others(runs)]))
    for name in ("logistic", "KTO"):
        told = compared(runs["shipped before, threshold tuned"], runs[name])
        print(f"\n{name} against shipped before, threshold tuned: {sentence(told)}")
    print(f"\nKTO against logistic: {sentence(compared(runs['logistic'], runs['KTO']))}")
    chosen = args.choose or ("KTO" if better(runs["KTO"], runs["logistic"]) else "logistic")
    if not better(runs[chosen], runs["shipped before"]):
        print(f"\n{chosen} is not better than what is shipped; nothing was written")
        return 1
    about = {"kind": chosen, "made by": "model.training.calibrate fit"}
    about |= {"pauses": len(train), "first look": len(looked), "development": facts(runs[chosen])}
    Gate(gates[chosen].models, gates[chosen].thresholds, about).write(args.model / FILE)
    print(f"\n{chosen} was written to {args.model / FILE}")
    return 0


def others(runs: Mapping[str, Run]) -> list[Run]:
    return [run for name, run in runs.items() if not name.startswith("raw")]


def better(after: Run, before: Run) -> bool:
    return bool(after.figures["utility"] > before.figures["utility"])


def sentence(told: Mapping[str, tuple[float, tuple[float, float]]]) -> str:
    return ", ".join(
        f"{name} {v:.2f} ({low:.2f} to {high:.2f})" for name, (v, (low, high)) in told.items()
    )


def facts(run: Run) -> dict[str, Any]:
    names = ("pauses", "shown", "accepted")
    figures: dict[str, Any] = {name: run.figures[name] for name in names}
    for source in (DRAFT, COMPLETION):
        _, area, error = run.ranking[source]
        figures[source] = {"auroc": round(area or 0.5, 3), "ece": round(error or 0.0, 3)}
    return figures


def recorded(cases: Path, record: Path) -> list[Opportunity]:
    return list(opportunities(read_traces(cases, None, 3), Recorded(record)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    look = commands.add_parser("first-look")
    look.add_argument("cases", type=Path)
    look.add_argument("--out", type=Path, required=True)
    look.add_argument("--count", type=int, default=FIRST_LOOK_CASES)
    look.add_argument("--per-package", type=int, default=PER_PACKAGE)
    look.set_defaults(command=first_look)
    solve = commands.add_parser("fit")
    for part in ("--train", "--dev"):
        solve.add_argument(part, nargs=2, required=True, metavar=("CASES", "RECORD"))
    solve.add_argument("--first-look", type=Path, required=True)
    solve.add_argument("--model", type=Path, default=EMBEDDED)
    solve.add_argument("--beta", type=float, default=1.0)
    solve.add_argument("--penalty", type=float, default=0.03)
    solve.add_argument("--ratio", type=float, default=4 / 3)
    solve.add_argument("--choose", choices=("logistic", "KTO"))
    solve.set_defaults(command=fit)
    args = parser.parse_args()
    result: int = args.command(args)
    return result


if __name__ == "__main__":
    sys.exit(main())
