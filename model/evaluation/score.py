"""Scores predictions against cases and sums them up.

Responsible for which measure is taken of which text, per case (`score`) and over many
(`summarise`). It knows nothing of predictors, files or tables.

Content is measured twice: of what was shown (the buffer stays as it is when nothing was) and of the
candidate, which counts a suppressed answer too. With several right answers the best one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from model.evaluation import metrics
from model.evaluation.cases import Case
from model.evaluation.execute import Verdict, infilling_program, run_program
from model.evaluation.gate_metrics import (
    Outcome,
    auroc,
    average_precision,
    expected_calibration_error,
    mean,
    percentile,
    share,
    show_rates,
)
from model.evaluation.keystrokes import READ, saving, typing_cost
from model.evaluation.oracle import accepts, reversal
from model.evaluation.where import named_lines, rank, right_lines

Run = Callable[[str], Verdict]


@dataclass(frozen=True)
class Score:
    """The measures of one answer. `content` and `candidate` map measure to value (0 to 1, DeltaChrF
    0 to 100); `accepted` is about the candidate, whether shown or not.

    Of next edits, `place` is the rank of the first right line among those named, from 1. `by_hand`
    are the keystrokes that the change costs without the suggestion and `saved` those that the
    suggestion saves where it is shown and accepted.
    """

    id: str | int
    mode: str
    labels: Mapping[str, str]
    wanted: bool
    error: str | None = None
    shown: bool = False
    proposed: bool = False
    accepted: bool = False
    suppressed: str | None = None
    confidence: float = 0.0
    latency_ms: float = 0.0
    forwards: int = 0
    tokens: int = 0
    content: Mapping[str, float] = field(default_factory=dict)
    candidate: Mapping[str, float] = field(default_factory=dict)
    denoising_steps: int = 0
    place: int | None = None
    by_hand: int = 0
    saved: int = 0
    verdict: Verdict | None = None


def score(case: Case, row: Mapping[str, Any] | None, run: Run | None = None) -> Score:
    """Score one prediction row (None: it is missing). `run` executes the tests that a case brings.

    ValueError when the case has no right answer.
    """
    if case.expected is None:
        raise ValueError(f"case {case.id}: no `expected`, nothing to score against")
    request = case.request
    edits = tuple(answer for answer in case.expected if answer != request.text)
    wanted = bool(edits)
    labels = labels_of(case)
    by_hand = typing_cost(request.text, edits[0]) if edits and request.mode == "next_edit" else 0
    if row is None or "error" in row:
        error = "no prediction" if row is None else str(row["error"])
        return Score(case.id, request.mode, labels, wanted, error=error, by_hand=by_hand)
    text, candidate = row["text"], row.get("candidate", row["text"])
    history = [diff for diff in request.history if mentions(diff, request.path)]
    python = request.language == "python"
    content = measure(case, text, history)
    accepted = accepts(request.text, candidate, case.expected, history, python=python)
    place, saved = None, 0
    if request.mode == "next_edit" and wanted:
        place = rank(named_lines(row, request.text), right_lines(request.text, edits))
        if row["shown"] and accepted:
            by_hand, saved = saving(request.text, text, edits)
    check = case.row.get("check")
    verdict = None
    if run is not None and request.mode == "fim" and check:
        verdict = run(infilling_program(candidate, check["test"], check["entry_point"]))
    return Score(
        case.id,
        request.mode,
        labels,
        wanted,
        shown=bool(row["shown"]),
        proposed=candidate != request.text,
        accepted=accepted,
        suppressed=row.get("suppressed"),
        confidence=row["confidence"],
        latency_ms=row["latency_ms"],
        forwards=row["forwards"],
        tokens=row["tokens"],
        content=content,
        candidate=content if candidate == text else measure(case, candidate, history),
        denoising_steps=row.get("denoising_steps", 0),
        place=place,
        by_hand=by_hand,
        saved=saved,
        verdict=verdict,
    )


def labels_of(case: Case) -> dict[str, str]:
    """What cases can be grouped by: language, mode, and the plain values of the row's `meta`."""
    labels = {"language": case.request.language or "unknown", "mode": case.request.mode}
    meta = case.row.get("meta")
    for name, value in meta.items() if isinstance(meta, dict) else ():
        if isinstance(value, str | int | bool):
            labels[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return labels


def mentions(diff: str, path: str) -> bool:
    """Whether a unified diff is of this file."""
    heads = [
        line[4:].split("\t")[0].strip() for line in diff.split("\n", 4)[:4] if line[:4] == "+++ "
    ]
    return any(head == path or head.removeprefix("b/") == path for head in heads)


def measure(case: Case, actual: str, history: Sequence[str]) -> dict[str, float]:
    """All measures of one text; with several right answers each measure takes its best."""
    assert case.expected is not None
    each = [compare(case, actual, answer) for answer in case.expected]
    found = {name: max(values[name] for values in each) for name in (each[0] if each else ())}
    if case.request.mode == "next_edit":
        found["reversal"] = reversal(case.request.text, actual, history)
    return found


def compare(case: Case, actual: str, expected: str) -> dict[str, float]:
    """The measures of one text against one right answer."""
    original = case.request.text
    exact = float(metrics.exact_match(actual, expected))
    if case.request.mode == "fim":
        got, right = middle(case, actual), middle(case, expected)
        if got is None or right is None:
            alike = metrics.edit_similarity(original, actual, expected)
            stripped = exact
        else:
            alike = metrics.similarity(got, right)
            stripped = float(got.strip() == right.strip())
        return {"em": exact, "em_stripped": stripped, "similarity": alike}
    kept = metrics.kept_rate(original, actual, expected)
    return {
        "em": exact,
        "em_trailing": float(metrics.exact_match_trailing(actual, expected)),
        "em_ws": float(metrics.exact_match_no_space(actual, expected)),
        "delta_chrf": metrics.delta_chrf(original, expected, actual),
        "position": float(metrics.position_match(original, actual, expected)),
        "lines_f1": metrics.exact_lines(original, expected, actual).f1,
        "kept": kept.kept,
        "recall": kept.recall,
    }


def middle(case: Case, filled: str) -> str | None:
    """What was put at the cursor; None when the text was changed elsewhere too."""
    before, after = (
        case.request.text[: case.request.cursor],
        case.request.text[case.request.cursor :],
    )
    if len(filled) < len(case.request.text):
        return None
    if not filled.startswith(before) or not filled.endswith(after):
        return None
    return filled[len(before) : len(filled) - len(after)]


class Checker:
    """Executes programs, each distinct one once."""

    def __init__(self) -> None:
        self._known: dict[str, Verdict] = {}

    def __call__(self, program: str) -> Verdict:
        if program not in self._known:
            self._known[program] = run_program(program)
        return self._known[program]


def summarise(scores: Iterable[Score]) -> dict[str, Any]:
    """The figures of one group of scores, all of one mode. Shares are 0 to 1, times milliseconds.

    Content is that of the cases where an edit is wanted. Cases without an answer (errors) count as
    wrong and not shown, and are left out of the times.
    """
    every = list(scores)
    answered = [score for score in every if score.error is None]
    summary: dict[str, Any] = {"cases": len(every), "errors": len(every) - len(answered)}
    if not answered:
        return summary
    wanted = [score for score in every if score.wanted]
    for part in ("content", "candidate"):
        tables = [getattr(score, part) for score in answered if score.wanted]
        summary[part] = {
            name: sum(table[name] for table in tables) / len(wanted)
            for name in (tables[0] if tables else ())
        }
    rates = show_rates(
        Outcome(score.wanted, score.shown, score.shown and score.accepted) for score in every
    )
    summary["gate"] = vars(rates) | confidence_figures(answered)
    if every[0].mode == "next_edit":
        summary["where"] = where_figures(wanted)
        summary["keystrokes"] = keystroke_figures(every)
        shown = [score.content["reversal"] for score in answered if score.shown]
        summary["gate"]["reversal"] = mean(shown)
    summary["suppressed"] = count_reasons(answered)
    checked = [score for score in every if score.verdict is not None]
    if checked:
        summary["pass_at_1"] = sum(score.verdict == "pass" for score in checked) / len(every)
        summary["timeouts"] = sum(score.verdict == "timeout" for score in checked)
    latencies = [score.latency_ms for score in answered]
    summary["latency_ms"] = {f"p{q}": percentile(latencies, q) for q in (50, 90, 99)}
    summary["forwards"] = mean([score.forwards for score in answered])
    summary["denoising_steps"] = mean([score.denoising_steps for score in answered])
    summary["tokens"] = mean([score.tokens for score in answered])
    summary["tokens_per_forward"] = share(
        sum(score.tokens for score in answered), sum(score.forwards for score in answered)
    )
    return summary


def where_figures(wanted: Sequence[Score]) -> dict[str, float | None]:
    """How often the line of a wanted edit is the first, or among the first three, that is named."""
    return {
        f"top{count}": share(
            sum(score.place is not None and score.place <= count for score in wanted), len(wanted)
        )
        for count in (1, 3)
    }


def keystroke_figures(every: Sequence[Score]) -> dict[str, float | None]:
    """Keystrokes for each case by hand, and the shares of them that the accepted suggestions save.

    `net` takes off what it costs to look at the suggestions that are turned down.
    """
    by_hand = sum(score.by_hand for score in every)
    saved = sum(score.saved for score in every)
    looks = READ * sum(score.shown and not score.accepted for score in every)
    return {
        "by_hand": mean([score.by_hand for score in every]),
        "saved": share(saved, by_hand),
        "net": share(saved - looks, by_hand),
    }


def confidence_figures(answered: Sequence[Score]) -> dict[str, float | None]:
    """How well the confidence tells candidates that would be accepted from those that would not."""
    proposed = [score for score in answered if score.proposed]
    scores = [score.confidence for score in proposed]
    labels = [score.accepted for score in proposed]
    return {
        "proposed": share(len(proposed), len(answered)),
        "acceptable": share(sum(labels), len(labels)),
        "auroc": auroc(scores, labels),
        "ap": average_precision(scores, labels),
        "ece": expected_calibration_error(scores, labels),
    }


def count_reasons(answered: Iterable[Score]) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for score in answered:
        if score.suppressed:
            reasons[score.suppressed] = reasons.get(score.suppressed, 0) + 1
    return dict(sorted(reasons.items(), key=lambda item: -item[1]))


def grouped(scores: Sequence[Score], by: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Summaries per mode and group: `fim`, `next_edit`, and for each label of `by` `fim/<value>`
    and so on."""
    found: dict[str, dict[str, Any]] = {}
    for mode in ("fim", "next_edit"):
        of_mode = [score for score in scores if score.mode == mode]
        if not of_mode:
            continue
        found[mode] = summarise(of_mode)
        for label in by:
            parts: dict[str, list[Score]] = {}
            for score in of_mode:
                if value := label_value(score, label):
                    parts.setdefault(value, []).append(score)
            found |= {f"{mode}/{value}": summarise(parts[value]) for value in sorted(parts)}
    return found


def label_value(score: Score, label: str) -> str | None:
    """`jump` for the label `kind`; yes-or-no labels say which they are: `linked`, `not linked`.

    `a+b` joins the values of two labels. None where the case has no such label.
    """
    values = []
    for name in label.split("+"):
        if value := score.labels.get(name):
            values.append({"true": name, "false": f"not {name}"}.get(value, value))
    return ", ".join(values) or None
