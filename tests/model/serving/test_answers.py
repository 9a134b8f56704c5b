"""From edits of a file to the region written anew."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from diffing.edits import Edit, apply
from model.answer import answer
from model.protocol import Request, Stop
from model.scripted import ScriptedPredictor
from model.serving.answers import inserted, inside, rewritten
from model.serving.author import before_stop
from model.serving.prompts import EditPrompt
from model.serving.tokens import Meter

LINES = st.lists(st.sampled_from(("a", "bb", "", "    c")), min_size=1, max_size=6)


@given(LINES, st.sampled_from(("\n", "\r\n")), st.data())
@settings(max_examples=100, deadline=None)
def test_the_region_written_anew_is_the_file_with_the_edits(
    lines: list[str], end: str, data: st.DataObject
) -> None:
    text = end.join(lines) + end
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    start = len("".join(line + end for line in lines[:first]))
    stop = start + len(end.join(lines[first : last + 1]))
    prompt = EditPrompt("a.py", text, start, (start, stop))
    place = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(place, len(text)))
    edit = Edit(place, until, data.draw(st.sampled_from(("", "new", "new" + end))))
    kept = inside(prompt.request(64), (edit,))
    written = text[:start] + rewritten(prompt, kept) + text[stop:]
    assert written in (text, apply(text, (edit,)))
    if start <= place <= until <= stop:
        assert written == apply(text, (edit,))


def test_lines_put_behind_the_region_are_put_at_its_end() -> None:
    for end in ("\n", "\r\n"):
        text = f"a{end}b{end}c{end}"
        prompt = EditPrompt("a.py", text, 0, (0, len(f"a{end}b")))
        after = len(f"a{end}b{end}")
        assert prompt.request(9).wants(Edit(after, after, "x\n")) is (end == "\n")
        kept = inside(prompt.request(9), (Edit(after, after, f"x{end}"),))
        assert rewritten(prompt, kept) == f"a{end}b{end}x"


def test_the_region_survives_that_the_model_sees_other_line_ends() -> None:
    text = "count = 1\r\nprint(count)\r\nend\r\n"
    region = (11, 11 + len("print(count)"))
    seen: list[Request] = []

    class Watching(ScriptedPredictor):
        def predict(self, request: Request, stop: Stop):  # type: ignore[no-untyped-def]
            seen.append(request)
            return super().predict(request, stop)

    rules = [{"mode": "any", "replace": {"old": "print", "new": "show"}}]
    request = Request("next_edit", "a.py", text, 0, region=region)
    made = answer(Watching(rules), request, Stop(), threshold=0.5)
    assert seen[0].region == (10, 22)
    assert seen[0].text[10:22] == "print(count)"
    assert inside(request, made.edits) == made.edits == (Edit(11, 16, "show"),)


def test_only_what_is_put_at_the_cursor_is_an_insertion() -> None:
    request = Request("fim", "", "ab", 1)
    assert inserted(request, (Edit(1, 1, "x"),)) == "x"
    assert inserted(request, (Edit(0, 2, "axb"),)) == "x"
    assert inserted(request, (Edit(0, 0, "x"), Edit(2, 2, "y"))) == ""


@given(st.text(max_size=40), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_a_text_is_cut_but_never_to_nothing(text: str, tokens: int) -> None:
    meter = Meter(object())
    short = meter.first(text, tokens)
    assert text.startswith(short)
    assert bool(short) == bool(text)
    assert meter.count(short) <= max(tokens, 1) or short == text


def test_the_first_stop_string_counts() -> None:
    assert before_stop("a\n\nb#", ("#", "\n\n")) == "a"
    assert before_stop("ab", ()) == "ab"
