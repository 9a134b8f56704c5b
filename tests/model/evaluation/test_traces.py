"""What the hands of a trace do."""

from __future__ import annotations

from diffing.edits import apply
from model.evaluation.traces import ABOVE_LINES, JUMPS, KINDS, every_kind

LINES = [f"    value_{number} = compute({number})\n" for number in range(60)]


def test_a_trace_has_every_kind_of_step_and_types_what_was_cut() -> None:
    trace = every_kind(LINES, "here", 4)
    kinds = [step.kind for step in trace.steps]
    assert tuple(dict.fromkeys(kinds)) == ("first", "type", "jump", "above", "delete")
    assert set(kinds) == set(KINDS)
    assert [kinds.count(kind) for kind in KINDS] == [1, 3, len(JUMPS), 4, len(JUMPS)]
    typed = "".join(step.edit.new_text for step in trace.steps[:4] if step.edit)
    assert typed == "(31)"
    text = trace.opened
    assert "# here\n" in text
    assert "value_31 = compute\n" in text
    for step in trace.steps[:4]:
        assert step.edit is not None
        text = apply(text, [step.edit])
    assert text == "".join(["# here\n", *LINES[1:]])


def test_the_cursor_stays_on_its_line_when_lines_come_in_above() -> None:
    trace = every_kind(LINES, "here", 4)
    text, before = trace.opened, ""
    between = []
    for step in trace.steps:
        if step.edit is not None:
            text = apply(text, [step.edit])
        line = text[: step.cursor].rpartition("\n")[2]
        if step.kind == "type":
            before = line
        if step.kind == "above":
            assert line == before == "    value_31 = compute(31)"
            assert step.edit is not None
            between.append(text[step.edit.start : step.cursor].count("\n"))
        if step.kind == "jump":
            assert step.edit is None
            assert text[step.cursor] == "\n"
    assert between == [ABOVE_LINES, ABOVE_LINES + 1, ABOVE_LINES + 2]


def test_what_is_deleted_was_there_from_the_beginning() -> None:
    trace = every_kind(LINES, "here", 4)
    text, seen = trace.opened, set()
    for step in trace.steps:
        if step.edit is not None:
            text = apply(text, [step.edit])
        if step.kind == "delete":
            assert text not in seen, "an undo would not be asked about"
        seen.add(text)
    assert "value_37 = compute\n" in text
