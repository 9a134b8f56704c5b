"""`redraft simulate`: a simulated user works through cases and says what he makes of each suggestion.

Responsible for the command: which suggestions are asked of a model and which are on record, which gates are compared,
and what is written. With `--record` a run can be interrupted, resumed, and repeated with other gates without a model.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from model import bounds
from model.bundle import EMBEDDED
from model.candidate import Candidate
from model.config import ModelError
from model.evaluation.cases import BadCase, read_cases
from model.evaluation.gate_report import run_gate, table
from model.evaluation.progress import progress
from model.evaluation.recorded import Recorded
from model.evaluation.replay import Trace, trace_of
from model.evaluation.simulate import Offer, Opportunity, Step, opportunities
from model.feedback import Event, Life, Suggested, to_json
from model.gate import FILE, SETTINGS, Gate
from model.protocol import Request
from model.targets import check_file

if TYPE_CHECKING:
    from model.local import LocalPredictor

SECONDS_BETWEEN = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", type=Path, help="JSONL file of cases with `expected`")
    parser.add_argument(
        "--record", type=Path, required=True, help="what the model proposed: read, and added to"
    )
    parser.add_argument(
        "--gate",
        type=Path,
        nargs="*",
        default=[],
        metavar="FILE",
        help="gates to compare, the first with each other one (default: the model's own)",
    )
    parser.add_argument("--setting", choices=SETTINGS, default="balanced")
    parser.add_argument(
        "--taste",
        choices=sorted(TASTES),
        default="any",
        help="a user who never takes edits of several lines, or who takes just those",
    )
    parser.add_argument(
        "--speed",
        type=positive,
        metavar="FACTOR",
        help="lose what comes after the user's next key, on a machine so many times as fast as that of the record "
        "(default: nothing is late)",
    )
    parser.add_argument("--offline", action="store_true", help="only what is on record, no model")
    parser.add_argument("--limit", type=bounds.count, metavar="N", help="the first N cases only")
    parser.add_argument("--pauses", type=bounds.count, default=3, help="most pauses for each case")
    parser.add_argument("--model", default="embedded", help="embedded, or a model folder")
    parser.add_argument(
        "--threads", type=bounds.threads, metavar="N", help="processor threads of the model"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the first gate's run as feedback, for `redraft tune`",
    )
    parser.add_argument(
        "--all", action="store_true", help="with --out: all suggestions, whether shown or not"
    )


def positive(word: str) -> float:
    """A number above 0. Raises ValueError."""
    value = float(word)
    if not 0 < value < float("inf"):
        raise ValueError(f"{word} is not above 0")
    return value


def run(args: argparse.Namespace) -> int:
    """Walk, print, write; 2 when it cannot begin."""
    folder = EMBEDDED if args.model == "embedded" else Path(args.model)
    try:
        gates = {str(path): Gate.read(path) for path in args.gate or [folder / FILE]}
        traces = list(read_traces(args.cases, args.limit, args.pauses))
        if not traces:
            raise ValueError(f"{args.cases} holds no case with `expected`")
        check_file(args.out)
        if args.offline and not args.record.exists():
            raise ValueError(f"there is no record {args.record} to work from --offline")
        record = Recorded(args.record, None if args.offline else Asking(folder, args.threads))
    except (OSError, ModelError, ValueError) as error:
        print(f"redraft simulate: {error}", file=sys.stderr)
        return 2
    shown = progress(traces, "simulate") if not args.offline else traces
    chances = [to_taste(one, TASTES[args.taste]) for one in opportunities(shown, record)]
    record.close()
    runs = [run_gate(name, gate, chances, args.setting, args.speed) for name, gate in gates.items()]
    print(f"{len(chances)} pauses in {len({c.trace for c in chances})} of {len(traces)} traces")
    if args.speed:
        late = sum(chance.late(args.speed) for chance in chances if chance.offers)
        print(
            f"at {args.speed:g} times the speed of the record {late} of them are answered too late"
        )
    print(table(runs))
    if args.out:
        steps = everything(chances) if args.all else runs[0].steps
        lives = list(feedback(steps, next(iter(gates.values()))))
        args.out.write_text("".join(json.dumps(to_json(life)) + "\n" for life in lives))
        print(f"{len(lives)} suggestions written to {args.out}")
    return 0


def several_lines(offer: Offer) -> bool:
    """Whether a suggestion brings more than one line."""
    return any("\n" in edit.new_text.strip("\n") for edit in offer.candidate.edits)


TASTES: Mapping[str, Callable[[Offer], bool]] = {
    "any": lambda offer: offer.accepted,
    "one-line": lambda offer: offer.accepted and not several_lines(offer),
    "several-lines": several_lines,
}


def to_taste(chance: Opportunity, takes: Callable[[Offer], bool]) -> Opportunity:
    """A pause of a user who takes only what `takes` says. What he takes against the rule saves him nothing."""
    offers = (replace(offer, accepted=takes(offer)) for offer in chance.offers)
    return replace(chance, offers=tuple(offers))


def read_traces(path: Path, limit: int | None, most: int) -> Iterator[Trace]:
    """The traces of a file of cases; lines that are none are passed over. Raises `OSError`."""
    for number, case in enumerate(read_cases(path)):
        if limit is not None and number >= limit:
            return
        if not isinstance(case, BadCase) and case.expected:
            yield trace_of(case, most)


class Asking:
    """All suggestions of the model for a request; it is loaded when the first one is asked for."""

    def __init__(self, folder: Path, threads: int | None) -> None:
        self._folder, self._threads = folder, threads
        self._predictor: LocalPredictor | None = None

    def __call__(self, request: Request) -> tuple[Sequence[Candidate], float]:
        if self._predictor is None:
            from model.local import LocalPredictor

            self._predictor = LocalPredictor.load(self._folder, threads=self._threads or None)
        began = time.perf_counter()
        found = self._predictor.propose(request)
        return found, (time.perf_counter() - began) * 1000


def everything(chances: Sequence[Opportunity]) -> Iterator[Step]:
    """Every suggestion as if it had been shown."""
    for chance in chances:
        for offer in chance.offers:
            yield Step(chance, offer)


def feedback(steps: Sequence[Step] | Iterator[Step], gate: Gate) -> Iterator[Life]:
    """What the store would hold after a walk; the user says no by rejecting."""
    for number, step in enumerate(steps):
        if step.shown is None:
            continue
        one = step.shown.candidate
        name = f"{step.chance.trace}/{step.chance.number}/{number}"
        suggested = Suggested(
            name,
            number * SECONDS_BETWEEN,
            step.chance.mode,
            one.source,
            gate.probability(one.source, one.features),
            one.features,
            group=step.chance.release,
        )
        state = "accepted" if step.accepted else "rejected"
        yield Life(suggested, (Event(name, state, 1.0),))
