"""Labelled lessons ask as the model is asked, and answer with what the user judged."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiny import real_tokenizer

from diffing.edits import Edit
from lsp_server.cli import run
from model.bundle import EMBEDDED
from model.candidate import Candidate
from model.config import ModelConfig
from model.context import ContextBuilder
from model.evaluation.cases import parse_row
from model.evaluation.recorded import Recorded
from model.evaluation.replay import trace_of
from model.feedback import Event, Life, Suggested, to_json
from model.prompt import PromptWriter
from model.protocol import Request
from model.training.lessons import LessonWriter
from model.training.preference_lessons import kept, silence, simulated, suggestion
from model.training.shards import Shards

CONFIG = ModelConfig.load(EMBEDDED)
END = CONFIG.special["endoftext"]
TEXT = "def total(items):\n    pass\n\n\ndef main():\n    print(total([1]))\n    return tot\n"
LINE = "    result = sum(items)\n"


def writer(*, infill: bool = False, room: int = 256) -> LessonWriter:
    return LessonWriter(real_tokenizer(), CONFIG, room, infill=infill)


def after(words: str) -> int:
    return TEXT.index(words) + len(words)


def test_a_completion_is_asked_with_the_prompt_that_serves_and_ends_only_if_the_model_says_so() -> (
    None
):
    at = after("return tot")
    request = Request("fim", "a.py", TEXT, at)
    (lesson,) = suggestion(writer(), request, [Edit(at, at, "al(items)")], random.Random(0))
    tokenizer = real_tokenizer()
    prompts = PromptWriter(tokenizer, CONFIG)
    served = prompts.fim("a.py", ContextBuilder(prompts.count, 240).build(request))
    assert list(lesson.tokens[: lesson.answer]) == served.tokens
    assert tokenizer.decode(lesson.tokens[lesson.answer :]) == " total(items)"
    assert END not in lesson.tokens
    assert lesson.targets == (len(lesson.lines) - 1,)  # the cursor's own line
    (ended,) = suggestion(writer(infill=True), request, [Edit(at, at, "al")], random.Random(0))
    assert ended.tokens[-1] == END


def test_a_draft_is_a_place_and_a_rewriting() -> None:
    at, start = after("return tot"), TEXT.index("    pass\n")
    request = Request("next_edit", "a.py", TEXT, at)
    edit = Edit(start, start + 9, LINE)
    where, what = suggestion(writer(), request, [edit], random.Random(1))
    assert (where.kind, what.kind) == ("where", "rewrite")
    assert set(where.weights) == {0.0}
    upto = real_tokenizer().decode(where.tokens[: where.lines[where.targets[0]] + 1])
    assert upto.endswith("    pass")
    asked = [t for t, w in zip(what.tokens, what.weights, strict=True) if w == 1.0]
    assert real_tokenizer().decode(asked) == "\n" + LINE.rstrip("\n")
    below = replace(request, cursor=after("def total"))
    (alone,) = suggestion(writer(), below, [Edit(at, at, "al")], random.Random(1))
    assert (
        alone.kind == "rewrite"
    )  # a prompt without the text after the cursor does not show the line


@pytest.mark.parametrize("infill", [False, True])
def test_silence_is_to_point_nowhere_and_to_end(infill: bool) -> None:
    request = Request("next_edit", "a.py", TEXT, after("return tot"))
    (lesson,) = silence(writer(infill=infill), request, random.Random(0))
    assert lesson.targets == (len(lesson.lines),)
    asked = [t for t, w in zip(lesson.tokens, lesson.weights, strict=True) if w == 1.0]
    assert asked[-1:] == ([END] if infill else [])


def case(number: int, *, done: bool):
    target = TEXT.replace("    pass\n", LINE)
    return parse_row(
        {
            "id": str(number),
            "path": "a.py",
            "text": target if done else TEXT,
            "cursor": {"line": 6, "character": 14},
            "expected": [target],
            "meta": {"kind": "done" if done else "jump", "package": "p"},
        }
    )


def propose(request: Request):
    """A wrong completion and, while it is not there, the right draft."""
    at, start = request.cursor, request.text.find("    pass\n")
    found = [Candidate("completion", (Edit(at, at, "x()"),), 0.0, {}, 1, line=6)]
    if start >= 0:
        found.append(Candidate("draft", (Edit(start, start + 9, LINE),), 0.0, {}, 1, line=1))
    return found, 5.0


def test_the_simulated_user_labels_suggestions_and_silences(tmp_path: Path) -> None:
    record = Recorded(tmp_path / "record.jsonl", propose)
    traces = [trace_of(case(0, done=False), 1), trace_of(case(1, done=True), 1)]
    found = [(one.kind, one.desirable) for one in simulated(traces, record, writer())]
    record.close()
    assert found == [
        ("completion", False),
        ("where", True),
        ("rewrite", True),
        ("completion", False),
        ("silence", True),
    ]


def life(name: str, state: str, **text: object) -> Life:
    at = after("return tot")
    whole = {"path": "a.py", "around": TEXT, "edits": [{"start": at, "old": "", "new": "al"}]}
    return Life(
        Suggested(name, 0.0, "fim", "completion", 0.5, {}, text={**whole, **text}),
        (Event(name, state, 1.0),),
    )


def test_kept_text_becomes_lessons_and_what_is_not_whole_is_passed_over() -> None:
    lives = [
        life("a", "accepted"),
        life("b", "rejected"),
        life("c", "shown"),
        life("d", "accepted", edits=[{"old": "", "new": "al"}]),  # kept before places were
        life("e", "accepted", around="def total"),
    ]
    found = list(kept(lives, writer()))
    assert [one.desirable for one in found] == [True, False]
    assert {one.kind for one in found} == {"completion"}
    assert real_tokenizer().decode(found[0].tokens[found[0].answer :]) == " total"


def test_pack_writes_them_and_says_what_is_missing(tmp_path: Path, capsys) -> None:
    exported = tmp_path / "feedback.jsonl"
    rows = [to_json(life("a", "accepted")), to_json(life("b", "rejected"))]
    exported.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = str(tmp_path / "out")
    assert run(["pack", "--feedback", str(exported), "--out", out]) == 0
    shards = Shards(tmp_path / "out")
    assert shards.labels() == (1, 1)
    assert [shards[i].desirable for i in range(2)] == [True, False]
    assert run(["pack", "--out", out]) == 2
    assert "name --data, or" in capsys.readouterr().err
    assert run(["pack", "--simulated", "none.jsonl", "none.jsonl", "--out", out]) == 2
    assert "there is no record" in capsys.readouterr().err
    exported.write_text('{"id": 1}\n')
    assert run(["pack", "--feedback", str(exported), "--out", out]) == 2
    assert "not a line of feedback" in capsys.readouterr().err
