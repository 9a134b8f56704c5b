from __future__ import annotations

import difflib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.context import (
    PART_OVERHEAD,
    Context,
    ContextBuilder,
    RegionTooLargeError,
    build_context,
    line_offset,
    region_around,
)
from model.protocol import Request, Snippet
from model.window import QUANTUM


def count(text: str) -> int:
    """One token for each started run of four characters of a line; does not grow when lines are
    joined.
    """
    return sum((len(line) + 4) // 4 for line in text.split("\n")) if text else 0


def request(text: str, cursor: int, **parts: object) -> Request:
    return Request(mode="next_edit", path="src/app.py", text=text, cursor=cursor, **parts)  # type: ignore[arg-type]


def diff(old: str, new: str, path: str = "src/app.py", context: int = 3) -> str:
    return "".join(
        difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), path, path, n=context
        )
    )


def cost(context: Context) -> int:
    return (
        count(context.region)
        + count(context.prefix)
        + count(context.suffix)
        + sum(count(part) + PART_OVERHEAD for part in context.history)
        + sum(count(part.path) + count(part.text) + PART_OVERHEAD for part in context.related)
    )


LINES = "".join(f"value_{number} = compute({number})\n" for number in range(400))


def test_everything_fits_a_large_budget() -> None:
    text = "a = 1\nb = 2\nc = 3\nd = 4\n"
    edit = diff("a = 0\nb = 2\nc = 3\nd = 4\n", text)
    other = Snippet("src/util.py", "def helper():\n    pass\n")
    context = build_context(
        request(text, 7, history=(edit,), related=(other,)), 4000, count, range(1, 3)
    )
    assert context.prefix == "a = 1\n"
    assert context.region == "b = 2\nc = 3\n"
    assert context.suffix == "d = 4\n"
    assert context.history == (edit,)
    assert context.related == (other,)
    assert context.dropped == {}
    assert (context.region_start, context.region_end) == (6, 18)


def test_fim_has_an_empty_region_at_the_cursor() -> None:
    text = "total = price * \nprint(total)\n"
    context = build_context(request(text, 16), 1000, count)
    assert (context.prefix, context.region, context.suffix) == (
        "total = price * ",
        "",
        "\nprint(total)\n",
    )


def test_control_tokens_in_the_text_are_text() -> None:
    text = "x = '<|endoftext|>'\ny = '<file_sep>'\n"
    context = build_context(request(text, len(text)), 1000, count)
    assert context.prefix == text


def test_a_region_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(RegionTooLargeError, match="budget is 5"):
        build_context(request(LINES, 0), 5, count, range(0, 40))


def test_near_text_survives_a_small_budget() -> None:
    cursor = line_offset(LINES, 200)
    context = build_context(request(LINES, cursor), 600, count, range(200, 204))
    assert context.prefix.endswith("value_199 = compute(199)\n")
    assert context.suffix.startswith("value_204 = compute(204)\n")
    first = int(context.prefix.split("_")[1].split(" ")[0])
    assert first % QUANTUM == 0
    assert context.dropped["prefix_lines"] == first
    assert context.dropped["suffix_lines"] == 400 - 204 - context.suffix.count("\n")


def test_newest_diffs_stay_and_the_oldest_go() -> None:
    diffs = tuple(diff(f"a{n} = 1\n" * 8, f"b{n} = 1\n" * 8, f"f{n}.py") for n in range(12))
    context = build_context(request(LINES, 9000, history=diffs), 1500, count)
    assert 1 < len(context.history) < 12
    assert context.history == diffs[-len(context.history) :]
    assert context.dropped["diffs"] == 12 - len(context.history)


def test_a_large_diff_keeps_its_last_whole_hunks() -> None:
    old = [f"line {n}\n" for n in range(200)]
    new = list(old)
    for n in range(10, 200, 20):
        new[n] = f"changed {n}\n"
    edit = diff("".join(old), "".join(new))
    context = build_context(request(LINES, 0, history=(edit,)), 900, count)
    (kept,) = context.history
    assert kept.startswith("--- src/app.py\n+++ src/app.py\n@@ -")
    assert kept.endswith(edit[-60:])
    hunks = kept.count("\n@@ ")
    assert 0 < hunks < 10
    assert context.dropped["hunks"] == 10 - hunks


def test_a_large_related_file_is_cut_to_the_definitions_in_use() -> None:
    body = "".join(
        f"def helper_{n}(a, b):\n    total = a + b\n    return total * {n}\n\n\n" for n in range(80)
    )
    text = "from util import helper_41\n\n\ndef main():\n    return helper_41(1, 2)\n"
    context = build_context(
        request(text, len(text), related=(Snippet("util.py", body),)), 900, count
    )
    (snippet,) = context.related
    assert snippet.text == ("def helper_41(a, b):\n    total = a + b\n    return total * 41\n")
    assert context.dropped["related_lines"] == body.count("\n") - 3


def test_the_request_s_own_file_is_no_related_file() -> None:
    text = "a = 1\n"
    own = Snippet("src/app.py", "a = 0\n")
    assert build_context(request(text, 0, related=(own,)), 500, count).related == ()


def test_one_endless_line_is_cut_inside() -> None:
    text = "x" * 200_000
    context = build_context(request(text, 100_000), 300, count)
    assert 0 < len(context.prefix) < 1200
    assert 0 < len(context.suffix) < 1200
    assert text[: context.region_start].endswith(context.prefix)


def test_typing_moves_the_window_rarely() -> None:
    """Typing 40 lines key by key: what comes before the typed text changes a few times only."""
    typed = "".join(f"    result_{n} = {n}\n" for n in range(40))
    builder = ContextBuilder(count, 900)
    starts, tails = [], []
    for length in range(len(typed)):
        text = LINES + typed[:length] + LINES
        context = builder.build(request(text, len(LINES) + length))
        starts.append(context.region_start - len(context.prefix))
        tails.append(context.suffix)
    assert sum(a != b for a, b in pairwise(starts)) <= 3
    assert sum(a != b for a, b in pairwise(tails)) <= 3


def test_related_excerpts_stay_while_a_word_is_typed() -> None:
    body = "".join(f"def make_{n}():\n    return {n}\n\n\n" for n in range(200))
    builder = ContextBuilder(count, 900)
    seen = set()
    for length in range(len("make_17()")):
        text = "from util import make_3\n\nprint(make_3())\n" + "make_17()"[:length]
        related = (Snippet("util.py", body),)
        seen.add(builder.build(request(text, len(text), related=related)).related)
    assert len(seen) <= 2


def test_the_region_holds_the_cursor_and_starts_at_a_multiple() -> None:
    for line in (0, 1, 5, 6, 7, 198, 399):
        region = region_around(LINES, line_offset(LINES, line) + 3)
        assert line in region
        assert region.start % 4 == 0
        assert len(region) <= 12


def test_the_region_stays_while_the_cursor_moves_a_little() -> None:
    regions = [region_around(LINES, line_offset(LINES, line)) for line in range(100, 104)]
    assert len(set(regions)) == 1


def test_long_lines_shrink_the_region() -> None:
    text = ("x" * 900 + "\n") * 20
    region = region_around(text, line_offset(text, 10), max_chars=2000)
    assert 10 in region
    assert len(region) == 2


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(st.text("ab (_\t.", max_size=60), max_size=120),
    where=st.floats(0, 1),
    budget=st.integers(1, 900),
    diffs=st.lists(st.text("ab\n+-", max_size=120), max_size=5),
    related=st.lists(st.text("def ab()\n:", max_size=300), max_size=3),
    fim=st.booleans(),
)
def test_the_budget_is_never_exceeded_and_parts_are_pieces_of_the_text(
    lines: list[str],
    where: float,
    budget: int,
    diffs: list[str],
    related: list[str],
    fim: bool,
) -> None:
    text = "\n".join(lines)
    cursor = int(where * len(text))
    history = tuple(diff("", body) for body in diffs)
    snippets = tuple(Snippet(f"m{n}.py", body) for n, body in enumerate(related))
    asked = request(text, cursor, history=history, related=snippets)
    region = None if fim else region_around(text, cursor)
    try:
        context = build_context(asked, budget, count, region)
    except RegionTooLargeError:
        assert region is not None
        return
    assert cost(context) <= context.tokens <= budget
    start = context.region_start - len(context.prefix)
    whole = context.prefix + context.region + context.suffix
    assert text[start : start + len(whole)] == whole
    if region is not None:
        before = text[: context.region_start]
        assert before.count("\n") == region.start
        assert context.region.count("\n") <= len(region)
        assert context.region_start <= cursor <= context.region_end
