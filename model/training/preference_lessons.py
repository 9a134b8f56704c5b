"""Labelled lessons: what a user wanted or did not want, written as the model was asked.

Responsible for turning judged suggestions into lessons with a label: those of the simulated user, with the silences
that were right, and those of a real one who keeps text. Knows nothing of tensors or of what is learned.

The answer has two parts: *where* is a lesson for the locate head, *what* one for the language model. A completion is
both at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from diffing.edits import Edit, apply
from model.evaluation.recorded import Recorded
from model.evaluation.replay import Trace
from model.evaluation.simulate import opportunity
from model.feedback import Life
from model.protocol import Request
from model.training.labels import label
from model.training.lessons import HISTORY, Lesson, LessonWriter

NOWHERE = -1


def suggestion(
    writer: LessonWriter, request: Request, edits: Sequence[Edit], rng: random.Random
) -> Iterator[Lesson]:
    """The lessons of a suggestion, without a label."""
    request = replace(request, history=request.history[-HISTORY:])
    line = request.text.count("\n", 0, edits[0].start)
    if len(edits) == 1 and edits[0].start == edits[0].end == request.cursor:
        lesson = writer.infill("completion", request, edits[0].new_text, rng, line)
        if lesson is not None:
            yield seen(lesson)
        return
    where = writer.infill("where", request, "", rng, line)
    if where is not None and seen(where).targets:
        yield unwritten(where)
    what = writer.rewrite(request, apply(request.text, edits))
    if what is not None:
        yield what


def silence(writer: LessonWriter, request: Request, rng: random.Random) -> Iterator[Lesson]:
    """Point nowhere, and write nothing at the cursor where the model can say so."""
    request = replace(request, history=request.history[-HISTORY:])
    lesson = writer.infill("silence", request, "", rng, NOWHERE)
    if lesson is not None:
        yield lesson if writer.end else unwritten(lesson)


def seen(lesson: Lesson) -> Lesson:
    """A line that the prompt does not show cannot be pointed at."""
    return replace(lesson, targets=()) if lesson.targets == (len(lesson.lines),) else lesson


def unwritten(lesson: Lesson) -> Lesson:
    """The same question with no judgement on tokens."""
    return replace(lesson, weights=(0.0,) * len(lesson))


def simulated(traces: Iterable[Trace], record: Recorded, writer: LessonWriter) -> Iterator[Lesson]:
    """Every recorded suggestion as the simulated user judges it, and silence where there was nothing to do or nothing
    could be known."""
    rng = random.Random(0)
    for trace in traces:
        for number, pause in enumerate(trace.pauses):
            found = record(pause.request)
            if found is None:
                continue
            for offer in opportunity(trace, number, pause, *found).offers:
                for lesson in suggestion(writer, pause.request, offer.candidate.edits, rng):
                    yield replace(lesson, desirable=offer.accepted)
            if not pause.wanted or trace.linked is False:
                for lesson in silence(writer, pause.request, rng):
                    yield replace(lesson, desirable=True)


def kept(lives: Iterable[Life], writer: LessonWriter) -> Iterator[Lesson]:
    """The suggestions that a user judged and keeps as text; others are passed over."""
    rng = random.Random(0)
    for life in lives:
        said, text = label(life), life.suggested.text
        if said is None or text is None or (found := read_excerpt(text)) is None:
            continue
        around, edits = found
        history = tuple(str(diff) for diff in text.get("history", ()))
        place = edits[0].start if life.suggested.mode == "fim" else len(around)
        request = Request("fim", str(text.get("path", "")), around, place, history=history)
        for lesson in suggestion(writer, request, edits, rng):
            if lesson.kind != "where":
                yield replace(lesson, desirable=said, targets=())


def read_excerpt(text: Mapping[str, Any]) -> tuple[str, tuple[Edit, ...]] | None:
    """The lines around a suggestion and its edits in them; None where not all of it was kept."""
    try:
        around = str(text["around"])
        edits = tuple(
            Edit(int(one["start"]), int(one["start"]) + len(one["old"]), str(one["new"]))
            for one in text["edits"]
        )
        whole = all(
            edit.start >= 0
            and edit.end <= len(around)
            and around[edit.start : edit.end] == one["old"]
            for edit, one in zip(edits, text["edits"], strict=True)
        )
    except (KeyError, TypeError, ValueError):
        return None
    return (around, edits) if edits and whole else None


def read_record(path: Path) -> Recorded:
    """A record to read from; FileNotFoundError where there is none."""
    if not path.exists():
        raise FileNotFoundError(f"there is no record {path}; `redraft simulate --record` writes it")
    return Recorded(path)
