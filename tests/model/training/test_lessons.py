"""Lessons must look exactly like the prompts that serve, and ask for exactly what is right."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiny import real_tokenizer

from model.bundle import EMBEDDED
from model.config import ModelConfig
from model.context import ContextBuilder
from model.prompt import PromptWriter
from model.protocol import Request
from model.training.lessons import FAR, NEAR, LessonWriter

CONFIG = ModelConfig.load(EMBEDDED)
END = CONFIG.special["endoftext"]
TEXT = """import math


def area(radius):
    square = radius * radius
    return math.pi * square


def volume(radius, height):
    return area(radius) * height
"""


def writer(room: int = 256) -> LessonWriter:
    return LessonWriter(real_tokenizer(), CONFIG, room)


def test_a_gap_is_asked_with_the_serving_prompt_and_answered_with_what_is_missing() -> None:
    start = TEXT.index("radius * radius")
    end = start + len("radius * radius")
    tokenizer = real_tokenizer()
    prompts = PromptWriter(tokenizer, replace(CONFIG, infill=True))
    request = Request("fim", "a.py", TEXT[:start] + TEXT[end:], start)
    for seed in range(8):
        lesson = writer().gap("a.py", TEXT, start, end, random.Random(seed))
        assert lesson is not None
        assert lesson.tokens[0] == CONFIG.special["fim_suffix"]
        assert lesson.tokens[-1] == END
        assert tokenizer.decode(lesson.tokens[lesson.answer : -1]) == " radius * radius"
    budget = 256 - (prompts.count("radius * radius") + 8)
    served = prompts.fim("a.py", ContextBuilder(prompts.count, budget).build(request))
    asked = [writer().gap("a.py", TEXT, start, end, random.Random(seed)) for seed in range(8)]
    assert any(list(one.tokens[: one.answer]) == served.tokens for one in asked if one)


def test_text_before_the_gap_is_learned_but_not_the_text_behind_it() -> None:
    start = TEXT.index("* height")
    lesson = writer().gap("a.py", TEXT, start, start + 8, random.Random(0))
    assert lesson is not None
    tokens = list(lesson.tokens)
    header = tokens.index(CONFIG.special["filename"])
    assert set(lesson.weights[: header + 1]) == {0.0}
    assert set(lesson.weights[lesson.answer :]) == {1.0}
    assert set(lesson.weights[header + 1 : lesson.answer]) <= {NEAR, FAR}


def row(kind: str, text: str, wanted: str, cursor: str, history: list[str]) -> dict:
    at = text.index(cursor) + len(cursor)
    return {
        "mode": "next_edit",
        "path": "a.py",
        "text": text,
        "cursor": {
            "line": text.count("\n", 0, at),
            "character": at - text.rfind("\n", 0, at) - 1,
        },
        "history": history,
        "expected": [wanted],
        "meta": {"kind": kind, "linked": None if kind in ("done", "idle") else True},
    }


def test_a_jump_points_at_its_line_stops_at_the_cursor_and_rewrites_the_place() -> None:
    now = TEXT.replace("def area(radius)", "def area(r)")
    wanted = now.replace("square = radius * radius", "square = r * r")
    diff = "--- a/a.py\n+++ b/a.py\n@@ -4 +4 @@\n-def area(radius):\n+def area(r):\n"
    tokenizer = real_tokenizer()
    case = row("jump", now, wanted, "def area(r):", [diff])
    asked, written = writer().case(case, random.Random(0))
    assert asked.tokens[asked.answer :] == (*tokenizer.encode("):"), END) or (
        tokenizer.decode(asked.tokens[asked.answer : -1]) == "):"
    )
    (target,) = asked.targets
    upto = tokenizer.decode(asked.tokens[: asked.lines[target] + 1])
    assert upto.endswith("square = radius * radius")
    assert written.kind == "rewrite"
    weighty = [t for t, w in zip(written.tokens, written.weights, strict=True) if w == 1.0]
    assert tokenizer.decode(weighty) == "\n    square = r * r"


def test_where_nothing_is_left_to_do_the_answer_is_to_stop_and_point_nowhere() -> None:
    case = row("done", TEXT, TEXT, "return math.pi * square", [])
    (lesson,) = writer().case(case, random.Random(0))
    assert real_tokenizer().decode(lesson.tokens[lesson.answer : -1]) == " square"
    assert lesson.targets == (len(lesson.lines),)
