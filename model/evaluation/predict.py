"""Asks predictors for answers to cases.

Responsible for the loop of `redraft predict` and for asking several predictors the same questions
in turn, so that their times can be compared. It knows nothing of files or scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diffing.policy import SECRET_FILE
from diffing.secret_files import is_secret
from model.answer import answer
from model.evaluation.cases import BadCase, Case
from model.evaluation.output import Output, error_row, prediction_row
from model.protocol import Prediction, Predictor, Stop

DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True)
class Settings:
    """How each case is asked: the least confidence that is shown (None: the predictor's own choice)
    and the time limit in seconds (None: none)."""

    threshold: float | None = None
    deadline: float | None = None


def threshold_for(predictor: Predictor, case: Case, settings: Settings) -> float:
    """The least confidence to show: as set, else the predictor's own for a balanced gate."""
    if settings.threshold is not None:
        return settings.threshold
    own = getattr(predictor, "threshold", None)
    return float(own(case.request.mode, "balanced")) if callable(own) else DEFAULT_THRESHOLD


def ask(predictor: Predictor, case: Case, settings: Settings) -> dict[str, Any]:
    """One answer in the contract's shape; a predictor that fails gives a row with `error`."""
    try:
        if is_secret(Path("/", case.request.path), None):
            return prediction_row(case, Prediction(suppressed=SECRET_FILE, model=predictor.name))
        least = threshold_for(predictor, case, settings)
        prediction = answer(predictor, case.request, Stop(settings.deadline), threshold=least)
        row = prediction_row(case, prediction)
    except Exception as error:  # whatever one case provokes must not end the run
        return error_row(BadCase(case.id, f"{type(error).__name__}: {error}"))
    return row


def predict_all(
    predictor: Predictor, cases: Iterable[Case | BadCase], output: Output, settings: Settings
) -> tuple[int, int]:
    """Answer every case that `output` does not hold yet, in order; (cases, errors) counted."""
    count = errors = 0
    for case in cases:
        if output.done(case.id):
            continue
        row = error_row(case) if isinstance(case, BadCase) else ask(predictor, case, settings)
        count += 1
        errors += "error" in row
        output.write(row)
    return count, errors


def interleaved(
    predictors: Sequence[Predictor],
    cases: Iterable[Case],
    settings: Settings,
    first: Predictor | None = None,
) -> Iterator[tuple[Case, list[dict[str, Any]]]]:
    """Ask all predictors each case, one after the other; who comes first goes round.

    `first` is asked before them and its answer dropped: where predictors share encoded contexts it
    encodes them, so that the times of the others are all with the context warm. Yields the case and
    the rows in the order of `predictors`.
    """
    for number, case in enumerate(cases):
        if first is not None:
            ask(first, case, settings)
        rows: dict[int, dict[str, Any]] = {}
        for turn in range(len(predictors)):
            index = (number + turn) % len(predictors)
            rows[index] = ask(predictors[index], case, settings)
        yield case, [rows[index] for index in range(len(predictors))]
