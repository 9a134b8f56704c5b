from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from diffing.hunks import apply_unified
from model.evaluation import benchmarks
from model.evaluation.benchmarks import benchmark_cases, drawn, end_of_last_change, infilling_row
from model.evaluation.cases import parse_row
from model.evaluation.execute import infilling_program, run_program

INFILLING = {
    "task_id": "T/1",
    "entry_point": "double",
    "prompt": "def double(x):\n    return ",
    "suffix": "\n",
    "canonical_solution": "2 * x",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
NEP = {
    "commit": "0123456789abcdef",
    "old_file": "src/a.ts",
    "old_contents": "  a(1)\n  b(1)\n  c(1)\n",
    "current_contents": "  a(2)\n  b(1)\n  c(1)\n",
    "new_contents": "  a(2)\n  b(2)\n  c(1)\n",
}


def put(folder: Path, name: str, rows: list[dict]) -> None:
    path = folder / benchmarks.FILES[name]
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


def test_infilling_cursor_is_at_the_seam(tmp_path: Path) -> None:
    put(tmp_path, "single-line", [INFILLING])
    (case,) = benchmark_cases("single-line", tmp_path)
    request = case.request
    assert (case.id, request.mode, request.language) == ("T/1", "fim", "python")
    assert request.text == "def double(x):\n    return \n"
    assert request.text[: request.cursor] == INFILLING["prompt"]
    assert case.expected == ("def double(x):\n    return 2 * x\n",)
    check = case.row["check"]
    program = infilling_program(case.expected[0], check["test"], check["entry_point"])
    assert run_program(program) == "pass"


def test_next_edit_history_leads_to_the_text(tmp_path: Path) -> None:
    put(tmp_path, "nep", [NEP])
    (case,) = benchmark_cases("nep", tmp_path)
    request = case.request
    assert (request.mode, request.language, request.path) == ("next_edit", "typescript", "src/a.ts")
    assert apply_unified(NEP["old_contents"], request.history[0]) == request.text
    assert request.text[: request.cursor] == "  a(2"
    assert case.expected == (NEP["new_contents"],)


@pytest.mark.parametrize(
    ("old", "new", "before"),
    [
        ("a\nb\n", "a\nx\nb\n", "a\nx"),
        ("a\nb\nc\n", "a\nc\n", "a\n"),
        ("a = f(1)\n", "a = f(1, 2)\n", "a = f(1, 2"),
        ("a\n", "x\ny\n", "x\ny"),
        ("a\nb\nc\nd\n", "A\nb\nC\nd\n", "A\nb\nC"),
        ("a\r\nb\r\n", "a\r\nbc\r\n", "a\r\nbc"),
        ("a", "a", "a"),
        ("call(aa)\n", "call(a)\n", "call(a"),
    ],
)
def test_end_of_last_change(old: str, new: str, before: str) -> None:
    assert new[: end_of_last_change(old, new)] == before


def test_missing_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(benchmarks.MissingDataError, match=r"nep.test\.jsonl\.gz is not there"):
        list(benchmark_cases("nep", tmp_path))


def test_data_folder_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path))
    assert benchmarks.default_data() == tmp_path


@pytest.mark.parametrize(("name", "count"), [("random-span-light", 164), ("nep", 210)])
def test_public_benchmarks_convert(name: str, count: int) -> None:
    data = benchmarks.default_data()
    if not (data / benchmarks.FILES[name]).is_file():
        pytest.skip(f"public test data is not at {data}")
    cases = list(benchmark_cases(name, data))
    assert len(cases) == len({case.id for case in cases}) == count
    for case in cases:
        assert case.expected
        assert case.expected[0] != case.request.text
        if name == "nep":
            assert len(case.request.history) == 1
            assert case.request.cursor > 0
        else:
            before, after = (
                case.request.text[: case.request.cursor],
                case.request.text[case.request.cursor :],
            )
            assert case.expected[0].startswith(before)
            assert case.expected[0].endswith(after)


def test_a_long_benchmark_has_a_fixed_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(benchmarks.SAMPLES, "multi-line", 20)
    rows = [INFILLING | {"task_id": f"T/{number}"} for number in range(200)]
    put(tmp_path / "one", "multi-line", rows)
    put(tmp_path / "two", "multi-line", rows[::-1])
    one, two = (
        [case.id for case in benchmark_cases("multi-line", tmp_path / name)]
        for name in ("one", "two")
    )
    assert one == two, "the order of the file does not matter"
    assert len(set(one)) == 20
    assert one[:3] == ["T/137", "T/4", "T/147"], "on every machine"
    assert len(benchmark_cases("multi-line", tmp_path / "one", whole=True)) == 200
    fewer = benchmarks.drawn(benchmark_cases("multi-line", tmp_path / "one", whole=True)[50:], 20)
    kept = [name for name in one if int(name.removeprefix("T/")) >= 50]
    assert [case.id for case in fewer][: len(kept)] == kept, "each case is drawn by itself"


def test_short_benchmarks_are_used_whole() -> None:
    assert benchmarks.SAMPLES == {"multi-line": 500}


def test_every_case_is_as_likely_to_be_drawn() -> None:
    cases = [parse_row(infilling_row(INFILLING | {"task_id": f"T/{n}"})) for n in range(4000)]
    numbers = [int(str(case.id).removeprefix("T/")) for case in drawn(cases, 1000)]
    for quarter in range(4):
        found = sum(quarter * 1000 <= number < (quarter + 1) * 1000 for number in numbers)
        assert 200 < found < 300, "250 are expected, give or take 12"
