from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from fake_predictor import FakePredictor

from diffing.edits import Edit
from model.evaluation.cases import BadCase, Case, parse_line, parse_row, read_cases
from model.evaluation.output import Output, encode, prediction_row
from model.evaluation.predict import Settings, interleaved, predict_all
from model.protocol import Prediction

MINIMAL = {"text": "a = 1\nb\n", "path": "x.py", "cursor": {"line": 1, "character": 1}}


def case_of(**fields: object) -> Case:
    return parse_row({"id": "c", **MINIMAL, **fields})


def test_text_path_and_cursor_are_enough() -> None:
    case = parse_line(json.dumps(MINIMAL), 3)
    assert isinstance(case, Case)
    assert case.id == "3"
    assert case.expected is None
    request = case.request
    assert (request.mode, request.language, request.cursor) == ("next_edit", "python", 7)
    assert (request.history, request.related, request.diagnostics) == ((), (), ())


def test_every_field_is_read() -> None:
    case = case_of(
        mode="fim",
        language="cython",
        history=["--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n", ""],
        related=[{"path": "y.py", "text": "y"}],
        diagnostics=["bad", {"message": "worse", "severity": 1}],
        expected=["one", "two"],
        max_tokens=7,
        unknown=None,
    )
    request = case.request
    assert (request.mode, request.language) == ("fim", "cython")
    assert request.history == ("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n", "")
    assert [(one.path, one.text) for one in request.related] == [("y.py", "y")]
    assert request.diagnostics == ("bad", "worse")
    assert request.max_tokens == 7
    assert case.expected == ("one", "two")


@pytest.mark.parametrize(
    ("text", "cursor", "offset"),
    [
        ("😀b\nc", (0, 1), 1),
        ("a\r\nb", (1, 1), 4),
        ("a\rb", (1, 0), 2),
        ("a\u2028b\x0cc\nd", (1, 0), 6),
        ("ab\ncd", (0, 2), 2),
        ("ab\r\ncd", (0, 2), 2),
        ("ab\n", (1, 0), 3),
        ("", (0, 0), 0),
    ],
)
def test_cursor_counts_code_points(text: str, cursor: tuple[int, int], offset: int) -> None:
    case = case_of(text=text, cursor={"line": cursor[0], "character": cursor[1]})
    assert case.request.cursor == offset


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": None}, "`text` must be a string, not null"),
        ({"text": ...}, "`text` is missing"),
        ({"path": 3}, "`path` must be a string, not a number"),
        ({"cursor": ...}, "`cursor` is missing"),
        ({"cursor": 7}, "`cursor` must be an object with line and character, not a number"),
        ({"cursor": {"line": 1}}, "`cursor.character` is missing"),
        ({"cursor": {"line": -1, "character": 0}}, "`cursor.line` must be at least 0, not -1"),
        ({"cursor": {"line": 1.0, "character": 0}}, "`cursor.line` must be an integer"),
        ({"cursor": {"line": True, "character": 0}}, "`cursor.line` must be an integer"),
        (
            {"text": "ab\ncd", "cursor": {"line": 2, "character": 0}},
            "`cursor.line` is 2, and the text ends in line 1",
        ),
        (
            {"text": "ab\r\ncd", "cursor": {"line": 0, "character": 3}},
            "`cursor.character` is 3, and line 0 ends at character 2",
        ),
        ({"mode": "edit"}, "`mode` must be 'fim' or 'next_edit', not 'edit'"),
        ({"mode": ["fim"]}, "`mode` must be"),
        ({"history": "d"}, "`history` must be a list, not a string"),
        ({"history": ["a", 1]}, "`history[1]` must be a string"),
        ({"history": ["", "not a diff"]}, "`history[1]`: no file header"),
        (
            {"history": ["--- a/x\n+++ b/x\n@@ -1,9 +1 @@\n-a\n+b\n"]},
            "`history[0]`: malformed unified diff",
        ),
        ({"related": [{"path": "x"}]}, "`related[0]` must be an object"),
        ({"expected": "text"}, "`expected` must be a list"),
        ({"meta": "jump"}, "`meta` must be an object, not a string"),
        ({"id": [1]}, "`id` must be a string or an integer"),
        ({"max_tokens": 0}, "`max_tokens` must be at least 1"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], message: str) -> None:
    row = {key: value for key, value in {**MINIMAL, **change}.items() if value is not ...}
    bad = parse_line(json.dumps(row), 5)
    assert isinstance(bad, BadCase)
    assert bad.error.startswith("line 5: ")
    assert message in bad.error


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 1: not JSON"),
        (b"[]", "line 1: the line must be an object, not a list"),
        (b'{"text": "\xff"}', "line 1: not UTF-8"),
        (b"[" * 100_000, "line 1: "),
    ],
)
def test_lines_that_are_no_cases(line: bytes, message: str) -> None:
    bad = parse_line(line, 1)
    assert isinstance(bad, BadCase)
    assert message in bad.error


def test_a_bad_case_keeps_its_id() -> None:
    bad = parse_line('{"id": "mine", "text": 1}', 1)
    assert bad.id == "mine"


def test_only_line_feeds_separate_cases(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    first = json.dumps({**MINIMAL, "text": "a\u2028b", "id": 1}, ensure_ascii=False)
    second = json.dumps({**MINIMAL, "id": 2})
    path.write_bytes(b"\xef\xbb\xbf" + f"{first}\r\n\n{second}".encode())
    assert [case.id for case in read_cases(path)] == [1, 2]
    packed = tmp_path / "cases.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [case.id for case in read_cases(packed)] == [1, 2]


def test_a_shown_prediction_as_the_contract_has_it() -> None:
    case = case_of(text="😀x = old\n", cursor={"line": 0, "character": 0})
    prediction = Prediction(
        edits=(Edit(5, 8, "new"), Edit(9, 9, "y\n")),
        confidence=0.83,
        shown=True,
        latency_ms=212.41234,
        forwards=4,
        tokens=23,
        model="m",
        features={"denoising_steps": 2.0, "gain": 1.5},
        where=((9, 0.8300004), (2, 0.1)),
    )
    assert prediction_row(case, prediction) == {
        "id": "c",
        "shown": True,
        "suppressed": None,
        "confidence": 0.83,
        "edits": [
            {
                "range": {
                    "start": {"line": 0, "character": 5},
                    "end": {"line": 0, "character": 8},
                },
                "new_text": "new",
            },
            {
                "range": {
                    "start": {"line": 1, "character": 0},
                    "end": {"line": 1, "character": 0},
                },
                "new_text": "y\n",
            },
        ],
        "text": "😀x = new\ny\n",
        "candidate": "😀x = new\ny\n",
        "latency_ms": 212.412,
        "forwards": 4,
        "tokens": 23,
        "denoising_steps": 2,
        "where": [[9, 0.83], [2, 0.1]],
        "model": "m",
    }


def test_a_suppressed_prediction_shows_nothing_but_has_a_candidate() -> None:
    prediction = Prediction(
        edits=(Edit(0, 1, "z"),), suppressed="low-confidence", confidence=float("nan")
    )
    row = prediction_row(case_of(), prediction)
    assert (row["shown"], row["suppressed"], row["edits"]) == (False, "low-confidence", [])
    assert (row["text"], row["candidate"]) == (MINIMAL["text"], "z = 1\nb\n")
    assert row["confidence"] == 0.0


def test_a_file_with_secrets_is_not_shown_to_the_model(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(encode({**MINIMAL, "path": "deploy/.env.production"}))
    predictor = FakePredictor(lambda request: (Edit(0, 0, "!"),))
    with Output(out) as output:
        assert predict_all(predictor, read_cases(path), output, Settings(0.0)) == (1, 0)
    row = json.loads(out.read_bytes())
    assert (row["shown"], row["suppressed"], row["candidate"]) == (
        False,
        "secret-file",
        row["text"],
    )
    assert predictor.asked == []


def test_odd_characters_survive_the_round_trip(tmp_path: Path) -> None:
    text = "a\r\nb\ud800\u2028\x01😀\r"
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(encode({**MINIMAL, "text": text, "cursor": {"line": 0, "character": 1}}))
    predictor = FakePredictor(lambda request: (Edit(request.cursor, request.cursor, "!"),))
    with Output(out) as output:
        assert predict_all(predictor, read_cases(path), output, Settings(0.5)) == (1, 0)
    row = json.loads(out.read_bytes())
    assert row["text"] == "a!" + text[1:]
    assert out.read_bytes().isascii()


def test_a_bad_line_does_not_end_the_run(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines: list[dict] = [{**MINIMAL, "id": "a"}, {"id": "b"}, {**MINIMAL, "id": "c"}]
    path.write_bytes(b"".join(map(encode, lines)))

    def choose(request: object) -> tuple[Edit, ...]:
        return (Edit(0, 1, "z"),)

    with Output(out) as output:
        counted = predict_all(FakePredictor(choose), read_cases(path), output, Settings())
    assert counted == (3, 1)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert rows[1] == {"id": "b", "error": "line 2: `text` is missing"}
    assert rows[2]["shown"] is True


def test_a_predictor_that_fails_is_an_error_of_its_case(tmp_path: Path) -> None:
    def choose(request: object) -> tuple[Edit, ...]:
        raise RuntimeError("no memory")

    with Output(tmp_path / "out.jsonl") as output:
        assert predict_all(FakePredictor(choose), [case_of()], output, Settings()) == (1, 1)
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert row == {"id": "c", "error": "RuntimeError: no memory"}


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_resume_answers_only_what_is_missing(tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    predictor = FakePredictor(lambda request: ())
    cases = [case_of(id=number) for number in ("a", "b", "c", "d")]
    with Output(out) as output:
        predict_all(predictor, cases[:2], output, Settings())
    if name.endswith("l"):
        with out.open("ab") as file:
            file.write(b'{"id": "c", "sho')
    predictor.asked.clear()
    with Output(out, resume=True) as output:
        assert predict_all(predictor, cases, output, Settings()) == (2, 0)
    assert len(predictor.asked) == 2
    data = gzip.decompress(out.read_bytes()) if name.endswith("gz") else out.read_bytes()
    assert [json.loads(line)["id"] for line in data.splitlines()] == ["a", "b", "c", "d"]


def test_resume_asks_again_where_there_was_an_error(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with Output(out) as output:
        for row in ({"id": "a", "text": "1"}, {"id": "b", "error": "no memory"}, {"id": "c"}):
            output.write(row)
    predictor = FakePredictor(lambda request: ())
    cases = [case_of(id=number) for number in ("a", "b", "c", "d")]
    with Output(out, resume=True) as output:
        assert predict_all(predictor, cases, output, Settings()) == (2, 0)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"]
    assert rows[0]["text"] == "1"
    assert [row.get("model") for row in rows] == [None, "fake", None, "fake"]


def test_each_line_is_on_disk_at_once(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with Output(out) as output:
        output.write({"id": 1})
        assert out.read_bytes() == b'{"id": 1}\n'


def test_equal_ids_are_resumed_one_by_one(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with Output(out) as output:
        output.write({"id": "same"})
    with Output(out, resume=True) as output:
        assert [output.done("same"), output.done("same"), output.done(1)] == [True, False, False]


def test_interleaving_alternates_who_is_first() -> None:
    order: list[str] = []

    def noting(name: str) -> FakePredictor:
        def choose(request: object) -> tuple[Edit, ...]:
            order.append(name)
            return ()

        return FakePredictor(choose, name=name)

    cases = [case_of(id=number) for number in range(3)]
    results = list(interleaved([noting("a"), noting("b")], cases, Settings()))
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [[row["model"] for row in rows] for _, rows in results] == [["a", "b"]] * 3


def test_the_predictors_own_threshold_is_used() -> None:
    predictor = FakePredictor(lambda request: (Edit(0, 1, "z"),), confidence=0.6)
    predictor.threshold = lambda mode, gate: 0.7  # type: ignore[attr-defined]
    rows = [
        next(interleaved([predictor], [case_of()], settings))[1][0]
        for settings in (Settings(), Settings(threshold=0.6))
    ]
    assert [row["suppressed"] for row in rows] == ["low-confidence", None]
