"""The examples in docs/cases.md are what the code reads and writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from diffing.edits import Edit
from model.evaluation.cases import Case, parse_line
from model.evaluation.output import prediction_row
from model.protocol import Prediction

DOCUMENT = (Path(__file__).parents[3] / "docs" / "cases.md").read_text(encoding="utf-8")


def test_the_examples_are_a_case_and_its_answer() -> None:
    line, answer = re.findall(r"```json\n(.*)\n```", DOCUMENT)
    case = parse_line(line, 1)
    assert isinstance(case, Case)
    assert case.expected == ("total = 1\nprint(total)\n",)
    made = prediction_row(
        case,
        Prediction(
            edits=(Edit(16, 21, "total"),),
            shown=True,
            confidence=0.83,
            latency_ms=212.4,
            forwards=1,
            tokens=3,
            model="redraft-135m",
            where=((1, 0.83),),
        ),
    )
    assert made == json.loads(answer)
