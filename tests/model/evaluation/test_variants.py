from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from tiny import random_bundle

from model.evaluation import cli, loading, picture
from model.evaluation.cases import parse_row
from model.evaluation.output import encode
from model.evaluation.predict import Settings, interleaved
from model.evaluation.score import Score
from model.evaluation.variants import (
    LADDER,
    WITHOUT_DRAFTS,
    VariantError,
    build,
    ladder,
    parse_variant,
)
from model.gate import Gate
from model.local import LocalPredictor
from model.protocol import Prediction, Request, Stop

TEXT = "total = 1\nprint(count)\nprint(count)\n"
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-count = 1\n+total = 1\n print(count)\n"


def tiny() -> LocalPredictor:
    return LocalPredictor(random_bundle(), Gate.untrained(), 256)


def test_names_are_read() -> None:
    found = parse_variant("block:bound=0.5:steps=4:rows=6:accept=0.8:drafts=off")
    assert (found.decoding, found.bound, found.steps, found.rows) == ("block", 0.5, 4, 6)
    assert (found.accept, found.drafts) == (0.8, False)
    assert parse_variant("auto").decoding is None
    for name in [*LADDER, WITHOUT_DRAFTS]:
        assert parse_variant(name).name == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cases.jsonl", "'cases.jsonl' is none of auto, causal, refine, block"),
        ("block:size=3", "'size' is none of accept, bound"),
        ("block:bound=high", "'high' is no value for bound"),
        ("auto:drafts=maybe", "'maybe' is no value for drafts"),
    ],
)
def test_wrong_names_are_explained(name: str, message: str) -> None:
    with pytest.raises(VariantError, match=message):
        parse_variant(name)


def test_drafts_are_only_left_out_where_there_are_some() -> None:
    assert WITHOUT_DRAFTS in ladder(["fim", "next_edit"])
    assert WITHOUT_DRAFTS not in ladder(["fim"])


def test_variants_share_weights_and_contexts_but_no_answers() -> None:
    base = tiny()
    one, other = (build(parse_variant(name), base) for name in ("causal", "block:bound=0.5"))
    assert one.bundle.trunk is other.bundle.trunk is base.bundle.trunk
    assert one.bundle.decoder._recent is not other.bundle.decoder._recent
    row = {"id": 1, "mode": "fim", "path": "a.py", "text": TEXT}
    case = parse_row(row | {"cursor": {"line": 0, "character": 9}})
    cached = []
    for predictor in (one, other):
        predict = predictor.predict

        def spy(request: Request, stop: Stop, predict: Any = predict) -> Prediction:
            made: Prediction = predict(request, stop)
            cached.append((made.features["cached_tokens"], made.features["prompt_tokens"]))
            return made

        predictor.predict = spy  # type: ignore[method-assign]
    list(interleaved([one, other], [case], Settings(0.0), base))
    assert len(cached) == 2
    assert all(found == total > 0 for found, total in cached), "whoever comes first has it warm"


def test_options_reach_the_decoder() -> None:
    base = tiny()
    base.bundle.decoder.block = 3
    plain, bounded, loose = (
        build(parse_variant(name), base).bundle.decoder
        for name in ("block", "block:bound=0.5", "refine:accept=0.8")
    )
    assert (plain.decoding, plain.steps, plain.block) == ("block", 1, 3)
    assert (bounded.bound, bounded.steps, bounded.block) == (0.5, 6, None), "a whole trained block"
    assert (loose.decoding, loose.accept, loose.block) == ("refine", 0.8, 3)


def test_a_model_without_a_denoiser_has_no_block_variants() -> None:
    base = tiny()
    base.bundle.denoiser = None
    with pytest.raises(VariantError, match="no block denoiser"):
        build(parse_variant("block"), base)


def test_lossless_variants_agree_and_drafts_can_be_left_out() -> None:
    base = tiny()
    fim = Request("fim", "a.py", TEXT, 9, max_tokens=24)
    answers = {
        name: build(parse_variant(name), base).predict(fim, Stop())
        for name in ("causal", "refine", "block", "block:bound=0.1")
    }
    assert len({answer.edits for answer in answers.values()}) == 1
    edit = Request("next_edit", "a.py", TEXT, 0, history=(DIFF,))
    drafted = build(parse_variant("auto"), base).predict(edit, Stop())
    without = build(parse_variant("auto:drafts=off"), base).predict(edit, Stop())
    assert {line for line, _ in drafted.where} == {1, 2}
    assert 0 < sum(chance for _, chance in drafted.where) < 1, "the rest is nowhere"
    assert without.edits == without.where == ()


CASES = [
    {
        "id": "rename",
        "path": "a.py",
        "text": TEXT,
        "cursor": {"line": 0, "character": 5},
        "history": [DIFF],
        "expected": [TEXT.replace("print(count)", "print(total)", 1)],
    },
    {
        "id": "fill",
        "mode": "fim",
        "path": "a.py",
        "text": TEXT,
        "cursor": {"line": 0, "character": 9},
        "expected": [TEXT.replace("1", "10")],
        "max_tokens": 6,
    },
]


def call(folder: Path, *arguments: str) -> int:
    cases = folder / "cases.jsonl"
    cases.write_bytes(b"".join(map(encode, CASES)))
    (folder / "script.json").write_text("[]")
    parser = argparse.ArgumentParser()
    cli.add_arguments("eval", parser)
    return cli.run("eval", parser.parse_args([str(cases), *arguments]))


def compare(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str,
) -> int:
    base = tiny()
    monkeypatch.setattr(loading, "load_predictor", lambda *_: base)
    return call(tmp_path, "--threshold", "0.1", *arguments)


def test_compare_puts_variants_in_one_table_and_one_report(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report, out, drawn = (tmp_path / name for name in ("r.json", "p.jsonl", "p.svg"))
    names = ["causal", "block:bound=0.5", "auto:drafts=off", "propagate"]
    arguments = ["--compare", *names, "--json", str(report), "--out", str(out)]
    assert compare(tmp_path, monkeypatch, *arguments, "--picture", str(drawn)) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    runs = json.loads(report.read_text())["runs"]
    assert list(runs) == names
    where = {name: runs[name]["next_edit"]["where"]["top1"] for name in names}
    assert where["propagate"] == 1
    assert where["auto:drafts=off"] == 0
    assert runs["propagate"]["next_edit"]["candidate"]["em"] == 1
    assert runs["propagate"]["fim"]["candidate"]["em"] == 0
    assert (tmp_path / "p.block-bound-0.5.jsonl").is_file()
    svg = drawn.read_text()
    missing = [name for name in names if f"<!-- {name} " not in svg.replace("\n", " ")]
    assert missing == ["auto:drafts=off"], "it says nothing at all"


def test_equal_runs_share_a_label() -> None:
    assert picture.together({"a": 1, "b": 2, "c": 1}) == {1: ["a", "c"], 2: ["b"]}


def test_points_are_forwards_a_token_and_the_best_known_quality() -> None:
    executed = {"fim": {"pass_at_1": 0.5, "candidate": {"em": 0.4}, "tokens_per_forward": 2.0}}
    plain = {"fim": {"candidate": {"em": 0.4}, "tokens_per_forward": 0.5}}
    runs = {"executed": executed, "plain": plain, "free": {"fim": {"tokens_per_forward": None}}}
    assert picture.points(runs, "fim") == {"executed": (0.5, 50.0), "plain": (2.0, 40.0)}


def test_the_curve_is_of_what_a_threshold_may_show() -> None:
    def one(
        confidence: float, accepted: bool, suppressed: str | None, proposed: bool = True
    ) -> Score:
        return Score(
            "x",
            "next_edit",
            {},
            True,
            shown=suppressed is None,
            proposed=proposed,
            accepted=accepted,
            suppressed=suppressed,
            confidence=confidence,
        )

    scores = [
        one(0.9, True, None),
        one(0.8, False, None),
        one(0.7, True, "low-confidence"),
        one(0.95, True, "duplicate-line"),
        one(0.99, False, "no-prediction", proposed=False),
    ]
    assert picture.curve(scores, "next_edit") == [
        (20, 100),
        (40, 50),
        (pytest.approx(60), pytest.approx(200 / 3)),
    ]
    assert picture.curve(scores, "fim") == []


def test_a_model_without_weights_has_no_variants(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        call(tmp_path, "--model", f"scripted:{tmp_path / 'script.json'}", "--compare", "causal")
        == 2
    )
    assert "has no weights to decode with" in capsys.readouterr().err


def test_a_picture_that_cannot_be_drawn_is_told_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(tmp_path, "--picture", "p.txt") == 2
    assert "must end in .svg" in capsys.readouterr().err
    monkeypatch.setattr(picture, "find_spec", lambda _: None)
    assert call(tmp_path, "--picture", "p.svg") == 2
    assert "pip install 'redraft[training]'" in capsys.readouterr().err
