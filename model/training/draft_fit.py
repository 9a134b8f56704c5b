"""Fit the weights that order drafts: `python -m model.training.draft_fit CASES.jsonl`.

Responsible for logistic regression (L2, Newton's method) over the features of drafts of cases with
known answers, and for printing the table of `model/draft_rank.py`. Looks at no language model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.draft import drafts
from model.evaluation.cases import Case
from model.training.draft_recall import Judge, next_edit_cases

RIDGE = 2.0
ALL = 1000
# A rule is not trusted less than this: the data has few renames, which users make often.
LEAST_RULE = -1.0


def collect(cases: Iterable[Case]) -> tuple[list[Mapping[str, float]], list[bool]]:
    """Features and rightness of all drafts of the cases, however unlikely."""
    known: list[Mapping[str, float]] = []
    right: list[bool] = []
    for case in cases:
        judge = Judge(case)
        for draft in drafts(case.request, ALL, least=-float("inf")):
            known.append(draft.known)
            right.append(judge.right(draft))
    return known, right


def design(known: list[Mapping[str, float]], names: list[str]) -> NDArray[np.float64]:
    """Features as a matrix `[drafts, names + 1]`; the last column is 1."""
    column = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(known), len(names) + 1))
    matrix[:, -1] = 1.0
    for row, features in enumerate(known):
        for name, value in features.items():
            matrix[row, column[name]] = value
    return matrix


def fit(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights that maximise the penalised likelihood; the last one is the bias, unpenalised."""
    weights = np.zeros(matrix.shape[1])
    penalty = np.full(matrix.shape[1], RIDGE)
    penalty[-1] = 1e-6
    for _ in range(30):
        chance = 1 / (1 + np.exp(-matrix @ weights))
        slope = matrix.T @ (chance - right) + penalty * weights
        curve = (matrix * (chance * (1 - chance))[:, None]).T @ matrix + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m model.training.draft_fit", description=__doc__.split("\n")[0]
    )
    parser.add_argument("cases", type=Path, help="cases with `expected`, one JSON object a line")
    parser.add_argument("--first", type=int, default=None, help="look only at the first N cases")
    args = parser.parse_args(arguments)
    known, right = collect(next_edit_cases(args.cases, args.first))
    names = sorted({name for features in known for name in features})
    weights = fit(design(known, names), np.array(right, dtype=float))
    print(f"{len(known)} drafts, {sum(right)} right", file=sys.stderr)
    for name, weight in zip([*names, "bias"], weights, strict=True):
        floor = LEAST_RULE if name.startswith("rule:") else -float("inf")
        print(f'    "{name}": {max(float(weight), floor):.2f},')
    return 0


if __name__ == "__main__":
    sys.exit(main())
