"""Fit the gate: from a suggestion's features to the probability that it is accepted.

    python -m model.training.calibrate collect CASES.jsonl --out ROWS.jsonl --limit 600   (repeat to resume)
    python -m model.training.calibrate collect TEXTS.jsonl --out ROWS.jsonl --share 1     (lines being typed)
    python -m model.training.calibrate fit ROWS.jsonl --model model/embedded

Responsible for collecting labelled suggestions of the predictor itself on cases with known answers, and for a
logistic model per source with its thresholds. The label is the acceptance rule of `model.evaluation.oracle`; packages
are held out whole, so the printed figures are for code that was not fitted.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diffing.edits import apply
from model.bundle import EMBEDDED, Bundle
from model.evaluation.cases import Case, parse_line
from model.evaluation.oracle import accepts
from model.gate import FILE, Gate, Logistic
from model.local import CPU_CONTEXT, LocalPredictor, Work
from model.protocol import Request, Stop

FEATURES = {
    "draft": ("prior", "doubt", "worst", "above", "votes", "new lines"),
    "completion": ("log_odds", "share", "mean", "least", "tokens", "lines", "ended"),
}
THRESHOLDS = {"eager": 0.15, "balanced": 0.25, "quiet": 0.45}
PENALTY = 0.003
MAX_TEXT = 60_000


def spread(kind: str, index: str) -> float:
    """A fixed pseudo-random number in [0, 1) for a case."""
    return zlib.crc32(f"{kind}:{index}".encode()) / 2**32


def typing_case(row: Mapping[str, Any], index: int) -> Case | None:
    """A line of a finished file as if it were being typed: what follows a random place in it is taken out.

    In a third of the cases up to three lines after it are taken out too.
    """
    rng = random.Random(f"{row['path']}:{index}")
    lines = row["text"].split("\n")
    at = rng.randrange(len(lines))
    line = lines[at].rstrip()
    body = len(line) - len(line.lstrip())
    if len(line) - body < 4 or len(line) > 120:
        return None
    column = rng.randrange(body, len(line) - 1)
    low, high = max(0, at - 120), at + 60
    before = "\n".join([*lines[low:at], line[:column]])
    rest = at + 1 + (rng.randrange(1, 4) if rng.random() < 1 / 3 else 0)
    after = "\n".join(["", *lines[rest:high]])
    whole = before + "\n".join([line[column:], *lines[at + 1 : rest]]) + after
    request = Request(
        "fim", row["path"], before + after, len(before), language=row.get("language", "python")
    )
    meta = {"meta": {"kind": "typing", "package": row["package"]}}
    return Case(f"{row['path']}-{at}-{column}", request, (whole,), meta)


def read_sample(path: Path, share: float) -> Iterator[Case]:
    """A fixed random sample, in random order, of a file of cases or of texts (`{"path", "text", "package"}`)."""
    with path.open("rb") as lines:
        sample = [line for i, line in enumerate(lines) if spread("sample", str(i)) < share]
    sample.sort(key=zlib.crc32)
    for number, line in enumerate(sample):
        row = json.loads(line)
        case = parse_line(line, number) if "cursor" in row else typing_case(row, number)
        if (
            isinstance(case, Case)
            and case.expected is not None
            and len(case.request.text) <= MAX_TEXT
        ):
            yield case


def collect(args: argparse.Namespace) -> int:
    """Append one row for every suggestion on a fixed random sample of the cases."""
    bundle = Bundle.load(args.model, threads=args.threads)
    predictor = LocalPredictor(bundle, Gate.untrained(), CPU_CONTEXT)
    done = set()
    if args.out.exists():
        done = {json.loads(line)["id"] for line in args.out.open()}
    count = 0
    with args.out.open("a") as out, torch.inference_mode():
        for case in read_sample(args.cases, args.share):
            if count >= args.limit:
                break
            if case.id in done:
                continue
            request, meta = case.request, case.row["meta"]
            rows = []
            for candidate in predictor.candidates(request, Work(), Stop(), exhaustive=True):
                after = apply(request.text, candidate.edits)
                accepted = accepts(
                    request.text,
                    after,
                    case.expected or (),
                    request.history,
                    python=request.path.endswith(".py"),
                )
                rows.append(
                    {
                        "source": candidate.source,
                        "features": candidate.features,
                        "accepted": accepted,
                    }
                )
            out.write(
                json.dumps(
                    {
                        "id": case.id,
                        "mode": request.mode,
                        "kind": meta["kind"],
                        "package": meta["package"],
                        "rows": rows,
                    }
                )
                + "\n"
            )
            out.flush()
            count += 1
    print(f"{count} cases collected")
    return 0


def matrix(rows: Iterable[Mapping[str, Any]], names: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    """Features `[n, len(names)]` and labels `[n]`."""
    rows = list(rows)
    x = torch.tensor([[float(row["features"][name]) for name in names] for row in rows])
    return x, torch.tensor([float(row["accepted"]) for row in rows])


def fit_logistic(x: Tensor, y: Tensor, names: tuple[str, ...]) -> dict[str, Any]:
    """Penalised maximum likelihood on standardised, squashed features."""
    mean, scale = x.mean(0), x.std(0).clamp(min=1e-3)
    z = 3 * torch.tanh((x - mean) / scale / 3)
    w = torch.zeros(x.shape[1], requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.LBFGS([w, b], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (
            torch.nn.functional.binary_cross_entropy_with_logits(z @ w + b, y)
            + PENALTY * (w * w).sum()
        )
        loss.backward()
        return loss

    optimizer.step(closure)
    return {
        "bias": round(b.item(), 4),
        "weights": {
            name: [round(float(v), 4) for v in (w.detach()[i], mean[i], scale[i])]
            for i, name in enumerate(names)
        },
    }


def area(scores: list[float], labels: list[bool]) -> float:
    """Area under the ROC curve; 0.5 where only one class is there."""
    positive = [s for s, label in zip(scores, labels, strict=True) if label]
    negative = [s for s, label in zip(scores, labels, strict=True) if not label]
    if not positive or not negative:
        return 0.5
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return wins / len(positive) / len(negative)


def fit(args: argparse.Namespace) -> int:
    """Fit on four fifths of the packages, print figures on the rest, then fit on all and write `gate.json`."""
    cases = [json.loads(line) for line in args.rows.open()]
    held = {c["package"] for c in cases if spread("held", c["package"]) < 0.25}
    report: dict[str, Any] = {}
    models: dict[str, Any] = {}
    for source, names in FEATURES.items():
        parts: dict[bool, list[dict[str, Any]]] = defaultdict(list)
        for case in cases:
            parts[case["package"] in held].extend(r for r in case["rows"] if r["source"] == source)
        train, test = parts[False], parts[True]
        model = gate_of({source: fit_logistic(*matrix(train, names), names)})
        scores = [model.probability(source, row["features"]) for row in test]
        labels = [row["accepted"] for row in test]
        models[source] = fit_logistic(*matrix([*train, *test], names), names)
        report[source] = {
            "suggestions": len(train) + len(test),
            "accepted": sum(r["accepted"] for r in [*train, *test]),
            "held_out": len(test),
            "held_out_auc": round(area(scores, labels), 3),
        }
        for name, least in THRESHOLDS.items():
            shown = [label for s, label in zip(scores, labels, strict=True) if s >= least]
            report[source][name] = {"shown": len(shown), "accepted": sum(shown)}
    thresholds = dict.fromkeys(("fim", "next_edit"), THRESHOLDS)
    gate = {"models": models, "thresholds": thresholds, "fitted": report}
    (args.model / FILE).write_text(json.dumps(gate, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    return 0


def gate_of(models: Mapping[str, Any]) -> Gate:
    return Gate(
        {
            k: Logistic(m["bias"], {n: tuple(v) for n, v in m["weights"].items()})
            for k, m in models.items()
        },
        {},
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    gather = commands.add_parser("collect")
    gather.add_argument("cases", type=Path)
    gather.add_argument("--out", type=Path, required=True)
    gather.add_argument("--limit", type=int, default=600)
    gather.add_argument(
        "--share", type=float, default=0.05, help="share of the cases to sample from"
    )
    gather.add_argument("--threads", type=int, default=1)
    gather.set_defaults(command=collect)
    solve = commands.add_parser("fit")
    solve.add_argument("rows", type=Path)
    solve.set_defaults(command=fit)
    for command in (gather, solve):
        command.add_argument("--model", type=Path, default=EMBEDDED)
    args = parser.parse_args()
    result: int = args.command(args)
    return result


if __name__ == "__main__":
    sys.exit(main())
