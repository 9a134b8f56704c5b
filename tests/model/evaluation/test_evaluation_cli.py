from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path

import pytest

from model.evaluation import cli
from model.evaluation.output import encode

CASES = [
    {
        "id": "rename",
        "path": "x.py",
        "text": "new = 1\nprint(old)\n",
        "cursor": {"line": 0, "character": 3},
        "expected": ["new = 1\nprint(new)\n"],
    },
    {
        "id": "quiet",
        "path": "y.py",
        "text": "nothing\n",
        "cursor": {"line": 0, "character": 7},
        "expected": ["nothing\n"],
    },
    {
        "id": "fill",
        "mode": "fim",
        "path": "z.py",
        "text": "def f():\n    \n",
        "cursor": {"line": 1, "character": 4},
        "expected": ["def f():\n    return 1\n"],
        "check": {"test": "def check(g):\n    assert g() == 1", "entry_point": "f"},
    },
]
SCRIPT = {
    "name": "script",
    "rules": [
        {"mode": "fim", "when": {"contains": "def f"}, "insert": "return 1"},
        {"mode": "next_edit", "when": {"text": "old"}, "replace": {"old": "old", "new": "new"}},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cases.jsonl").write_bytes(b"".join(map(encode, CASES)))
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    return tmp_path


def call(command: str, folder: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    cli.add_arguments(command, parser)
    model = f"scripted:{folder / 'script.json'}"
    return cli.run(command, parser.parse_args(["--model", model, *arguments]))


def test_predict_writes_one_line_per_case(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert call("predict", folder, str(folder / "cases.jsonl")) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == ["rename", "quiet", "fill"]
    assert [row["text"] for row in rows] == [case["expected"][0] for case in CASES]  # type: ignore[index]
    assert [row["suppressed"] for row in rows] == [None, "no-prediction", None]
    assert list(rows[0]) == [
        *("id", "shown", "suppressed", "confidence", "edits", "text", "candidate"),
        *("latency_ms", "forwards", "tokens", "denoising_steps", "where", "model"),
    ]


def test_predict_reads_standard_input(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    data = b'{"oops"\n' + encode(CASES[1])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert call("predict", folder) == 1
    first, second = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert first["id"] == "1"
    assert "not JSON" in first["error"]
    assert second["id"] == "quiet"


def test_predict_limit_out_and_resume(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases, out = str(folder / "cases.jsonl"), folder / "out.jsonl"
    assert call("predict", folder, cases, "--out", str(out), "--limit", "2") == 0
    assert len(out.read_text().splitlines()) == 2
    assert call("predict", folder, cases, "--out", str(out), "--resume") == 0
    assert len(out.read_text().splitlines()) == 3
    assert capsys.readouterr().err.splitlines()[-1].startswith("1 cases, 0 errors")


def test_predict_threshold_hides(folder: Path) -> None:
    out = folder / "out.jsonl"
    arguments = [str(folder / "cases.jsonl"), "--out", str(out), "--threshold", "0.95"]
    assert call("predict", folder, *arguments) == 0
    first = json.loads(out.read_text().splitlines()[0])
    assert (first["shown"], first["suppressed"]) == (False, "low-confidence")
    assert (first["text"], first["candidate"]) == (CASES[0]["text"], "new = 1\nprint(new)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl"], "no such file: missing.jsonl"),
        (["--model", "scripted:missing.json", "cases.jsonl"], "cannot load model scripted:missing"),
        (["empty.jsonl"], "no case in empty.jsonl"),
        (["cases.jsonl", "--out", "nowhere/out.jsonl"], "there is no folder nowhere"),
        (["cases.jsonl", "--out", "."], ". is a folder"),
        (["cases.jsonl", "--out", "letter.txt", "--resume"], "letter.txt, line 1: not an object"),
    ],
)
def test_what_cannot_begin_ends_with_2(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(folder)
    (folder / "empty.jsonl").write_text("\n")
    (folder / "letter.txt").write_text("Dear reader,\n")
    assert call("predict", folder, *arguments) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert (folder / "letter.txt").read_text() == "Dear reader,\n"


@pytest.mark.parametrize("option", ["--out", "--json", "--picture"])
def test_eval_finds_out_before_the_work_where_it_cannot_write(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(cli, "load_predictor", lambda *_: pytest.fail("the model was loaded"))
    target = folder / "nowhere" / "report.svg"
    assert call("eval", folder, str(folder / "cases.jsonl"), option, str(target)) == 2
    assert f"{target} cannot be written: there is no folder" in capsys.readouterr().err


def test_eval_of_no_case_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "empty.jsonl"
    path.write_text("")
    assert call("eval", folder, str(path)) == 2
    output = capsys.readouterr()
    assert output.err == f"redraft eval: no case with `expected` in {path}\n"
    assert output.out == ""


def test_eval_prints_tables_and_writes_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, out = folder / "report.json", folder / "pred.jsonl"
    arguments = [str(folder / "cases.jsonl"), "--execute"]
    arguments += ["--json", str(report), "--out", str(out), "--by", "language"]
    assert call("eval", folder, *arguments) == 0
    text = capsys.readouterr().out
    assert "Fill in the middle" in text
    assert "pass@1" in text
    assert "Next edit" in text
    data = json.loads(report.read_text())
    assert list(data["runs"]) == ["redraft"]
    assert data["runs"]["redraft"]["fim"]["pass_at_1"] == 1.0
    edits = data["runs"]["redraft"]["next_edit"]
    assert (edits["content"]["em"], edits["gate"]["quiet"], edits["gate"]["accept"]) == (1, 1, 1)
    assert data["runs"]["redraft"]["fim/python"]["cases"] == 1
    assert [one["id"] for one in data["scores"]["redraft"]] == ["rename", "quiet", "fill"]
    assert len(out.read_text().splitlines()) == 3


def test_eval_of_predictions_equals_eval_of_the_model(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases, out = str(folder / "cases.jsonl"), folder / "pred.jsonl"
    assert call("predict", folder, cases, "--out", str(out)) == 0
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(reversed(lines[:2])))
    report = folder / "report.json"
    code = call("eval", folder, cases, "--predictions", str(out), "--json", str(report))
    assert code == 1, "one case has no prediction"
    runs = json.loads(report.read_text())["runs"]["pred.jsonl"]
    assert runs["next_edit"]["content"]["em"] == 1
    assert runs["fim"] == {"cases": 1, "errors": 1}
    assert "1 errors" in capsys.readouterr().out


def test_eval_needs_right_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "more.jsonl"
    row = {key: value for key, value in CASES[0].items() if key != "expected"}
    path.write_bytes(encode(row) + b"{\n" + encode(CASES[1]))
    assert call("eval", folder, str(path)) == 1
    output = capsys.readouterr()
    assert "case rename: no `expected`" in output.err
    assert "2 errors, 2 of them lines" in output.out


def test_eval_without_cases_is_a_usage_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("eval", folder) == 2
    assert call("eval", folder, "--benchmark", "nep", "--data", str(folder)) == 2
    assert "is not there" in capsys.readouterr().err


def test_bench_prints_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = folder / "bench.json"
    arguments = ["--lines", "50", "--keys", "2", "--limit", "1", "--json", str(report)]
    assert call("bench", folder, *arguments) == 0
    text = capsys.readouterr().out
    assert "next_edit warm causal" in text
    assert "peak memory" in text
    data = json.loads(report.read_text())
    assert len(data["samples"]) == 8
    assert len(data["groups"]) == 8


def test_spread_takes_evenly() -> None:
    assert cli.spread(list(range(10)), 4) == [0, 2, 5, 7]
    assert cli.spread([1, 2], 5) == [1, 2]
    assert cli.spread([1, 2], None) == [1, 2]
    assert cli.spread([1, 2], 0) == []
