from __future__ import annotations

import pytest
import torch
from tiny import random_bundle

from diffing.edits import Edit
from diffing.hunks import unified_diff
from model.candidate import distribution
from model.context import Context
from model.draft import Draft
from model.locate import DraftJudge, Place, changed, lines_after, place_of
from model.prompt import PromptWriter, pieces
from model.protocol import Request, Stop

TEXT = "".join(f"line_{i} = old_{i % 3}\n" + ("\n" if i % 4 == 3 else "") for i in range(60))


def draft(text: str, old: str, new: str, after: int = 0) -> Draft:
    at = text.index(old, after)
    return Draft(Edit(at, at + len(old), new), "substitution", (old, new), 1, 0, 0)


def test_a_place_is_whole_lines_without_those_that_stay() -> None:
    text = "a\nb\nc\nd\n"
    assert place_of(text, draft(text, "b", "B")) == Place(1, 2, ("B",))
    assert place_of(text, draft(text, "b\n", "")) == Place(1, 2, ())
    assert place_of(text, draft(text, "c", "x\nc")) == Place(2, 2, ("x",))
    assert place_of(text, draft(text, "b\nc\n", "b\nq\n")) == Place(2, 3, ("q",))


def test_two_lines_with_text_follow() -> None:
    lines = ["a", "", "b", "", "c", "d"]
    assert lines_after(lines, 1) == 5
    assert lines_after(lines, 6) == 6


def test_pieces_begin_at_line_ends_and_lose_nothing() -> None:
    text = "\n\na\n\n  b\nc\n"
    assert "".join(pieces(text)) == text
    assert pieces("a\n\n  b\nc\n") == ["a", "\n\n  b", "\nc", "\n"]


@torch.inference_mode()
def test_gains_do_not_depend_on_what_else_is_judged() -> None:
    bundle = random_bundle()
    writer = PromptWriter(bundle.tokenizer, bundle.config)
    context = Context((), "", (), "", "", 0, 0, 0, {})
    request = Request("next_edit", "a.py", TEXT, 0)
    places = [TEXT.index(f"line_{i} ") for i in (10, 11, 40)]
    proposals = [draft(TEXT, "old", "new", at) for at in places]
    together = DraftJudge(bundle, writer).judge(request, context, proposals, 2000, Stop())
    assert [j.place.first for j in together] == [12, 13, 50]
    alone = DraftJudge(bundle, writer).judge(request, context, proposals[:1], 2000, Stop())
    assert alone[0].gain == pytest.approx(together[0].gain, abs=1e-3)
    assert together[0].gain == pytest.approx(together[0].drafted - together[0].present)
    assert together[0].worst < 0


@torch.inference_mode()
def test_drafts_that_do_not_fit_the_budget_are_left_out() -> None:
    bundle = random_bundle()
    writer = PromptWriter(bundle.tokenizer, bundle.config)
    context = Context((), "", (), "", "", 0, 0, 0, {})
    request = Request("next_edit", "a.py", TEXT, 0)
    proposals = [draft(TEXT, "old", "new", TEXT.index(f"line_{i} ")) for i in (50, 2, 30)]
    used: list[tuple[int, int, int]] = []
    judge = DraftJudge(bundle, writer)

    def note(prompt: int, cached: int, passes: int) -> None:
        used.append((prompt, cached, passes))

    judged = judge.judge(request, context, proposals, 120, Stop(), used=note)
    judge.judge(request, context, proposals, 120, Stop(), used=note)
    (size, fresh, passes), (again, cached, none) = used
    assert (fresh, again, passes, none) == (0, size, 1, 0)
    assert size - 1 <= cached <= size <= 120
    assert [j.draft for j in judged] == proposals[:2]


def typed(line: str) -> Context:
    return Context((), "", (unified_diff(TEXT, TEXT + line + "\n", "a.py"),), "", "", 0, 0, 0, {})


@torch.inference_mode()
def test_verdicts_stand_while_the_newest_edit_grows_by_a_few_tokens() -> None:
    bundle = random_bundle()
    judge = DraftJudge(bundle, PromptWriter(bundle.tokenizer, bundle.config))
    proposals = [draft(TEXT, "old", "new", TEXT.index(f"line_{i} ")) for i in (10, 40)]

    def ask(line: str, text: str = TEXT, slack: int = 4) -> tuple[list[float], int]:
        request = Request("next_edit", "a.py", text, 0)
        passes: list[int] = []
        found = judge.judge(
            request,
            typed(line),
            proposals,
            2000,
            Stop(),
            slack,
            lambda *used: passes.append(used[2]),
        )
        return [one.gain for one in found], passes[0]

    gains, passes = ask("x = old_1 + 1")
    assert passes == 1
    assert ask("x = old_1 + 12") == (gains, 0)
    assert ask("x = old_1 + 1", slack=0) == (gains, 0)
    assert ask("x = old_1 + 12", slack=0)[1] == 1
    again, passes = ask("x = old_1 + 12 * sum(old_2 for old_3 in old_0)")
    assert passes == 1
    assert again != gains
    edited = TEXT.replace("line_9 = old_0", "line_9 = old_1")  # a line before the first draft
    assert len(edited) == len(TEXT)
    moved, passes = ask("x = old_1 + 12 * sum(old_2 for old_3 in old_0)", edited)
    assert passes == 1
    assert moved[0] != again[0]


def test_tokens_changed_between_the_common_beginning_and_end() -> None:
    assert changed((1, 2, 3), (1, 2, 3)) == 0
    assert changed((1, 2, 3), (1, 9, 8, 3)) == 2
    assert changed((1, 1), (1, 1, 1)) == 1
    assert changed((), (4, 5)) == 2


def test_one_candidate_keeps_its_probability_and_places_share_one_distribution() -> None:
    assert distribution([(4, 0.8)]) == {None: pytest.approx(0.2), 4: pytest.approx(0.8)}
    where = distribution([(4, 0.5), (4, 0.5), (9, 0.5)])
    assert where == {None: pytest.approx(0.25), 4: pytest.approx(0.5), 9: pytest.approx(0.25)}
    assert distribution([]) == {None: 1.0}


def test_history_and_paths_are_part_of_the_prompt() -> None:
    bundle = random_bundle()
    writer = PromptWriter(bundle.tokenizer, bundle.config)
    diff = unified_diff("a\n", "b\n", "x.py")
    ids = writer.preamble(Context((), "", (diff,), "", "", 0, 0, 0, {}))
    assert ids[0] == bundle.config.special["filename"]
    assert bundle.tokenizer.decode(ids[1:]) == diff.rstrip("\n")
