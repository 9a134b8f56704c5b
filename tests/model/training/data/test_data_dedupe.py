from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from model.training.data.dedupe import (
    RUN,
    Deduplicator,
    Seen,
    changed_part,
    forbidden_runs,
    is_telling,
    run_hashes,
    runs,
    tokens_of,
)

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron sigma".split()  # noqa: SIM905


def text_of(*numbers: int) -> str:
    return "\n".join(f"name_{n} = call_{n}(first_{n}, second_{n}, third={n})" for n in numbers)


def test_runs_ignore_white_space() -> None:
    assert len(run_hashes(WORDS)) == 1
    assert len(run_hashes(WORDS[1:])) == 0
    assert (runs("a(b, c)  " * RUN) == runs("a( b,\n\tc ) " * RUN)).all()
    assert len(set(run_hashes([*WORDS, *reversed(WORDS)]).tolist())) == RUN + 1


def test_a_licence_at_the_head_says_nothing() -> None:
    licence = "# Copyright A. Author\n#\n# Licensed under the terms of some licence or other.\n\n"
    other = "/**\n * Copyright of somebody\n * All rights reserved.\n */\n"
    assert tokens_of(licence + "x = 1\n# licence") == ["x", "=", "1", "#", "licence"]
    assert tokens_of(other + "x = 1") == ["x", "=", "1"]
    assert tokens_of("# a remark\nx = 1") == ["#", "a", "remark", "x", "=", "1"]
    assert tokens_of("#" * 50_000 + "\n") == ["#"] * 50_000


def test_near_duplicates_of_texts() -> None:
    dedupe = Deduplicator(Seen())
    assert dedupe.new_text(text_of(*range(40)))
    assert not dedupe.new_text(text_of(*range(5, 45))), "most of it was seen"
    assert dedupe.new_text(text_of(*range(35, 80))), "little of it was seen"
    assert dedupe.new_text("x = 1"), "too short to tell"
    assert dedupe.dropped == {"texts: near duplicate": 1}


def test_near_duplicates_of_changes() -> None:
    dedupe = Deduplicator(Seen())
    before = text_of(*range(40))
    after = before.replace("third=7)", "third=7, fourth=8)")
    assert dedupe.new_episode(before, after)
    assert dedupe.new_episode(before, before.replace("third=9)", "third=9, fourth=8)"))
    assert not dedupe.new_episode("# moved\n" + before, "# moved\n" + after)
    assert dedupe.dropped == {"episodes: near duplicate": 1}


def test_forbidden_runs_must_be_telling(tmp_path: Path) -> None:
    assert is_telling(WORDS)
    assert not is_telling("self . x = x ; self . y = y ;".split())  # noqa: SIM905
    common = "for i in range(n):\n    x[i] = y[i]\n"
    rows = [{"prompt": common + " ".join(WORDS), "number": 3}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "deep").mkdir()
    with gzip.open(tmp_path / "deep" / "b.jsonl.gz", "wt") as file:
        file.write(json.dumps({"test": text_of(3, 4)}))
    dedupe = Deduplicator(forbidden_runs(tmp_path))
    assert dedupe.new_text(common * 3)
    assert not dedupe.new_text("some + other / text\n" + "\n".join(WORDS))
    assert not dedupe.new_text(text_of(2, 3, 4))
    assert not dedupe.new_episode(text_of(9), text_of(3, 4))
    assert dedupe.dropped == {
        "texts: overlap with test data": 2,
        "episodes: overlap with test data": 1,
    }


def test_equal_questions_and_answers_are_not_repeated_for_ever() -> None:
    def row(number: int) -> dict[str, Any]:
        return {
            "text": f"# {number}\nyear = 2024\n",
            "cursor": {"line": 0, "character": 0},
            "mode": "next_edit",
            "expected": [f"# {number}\nyear = 2025\n"],
            "meta": {"kind": "jump"},
        }

    dedupe = Deduplicator(Seen())
    kept = [r for r in [row(0), row(0), *map(row, range(1, 9))] if dedupe.new_case(r)]
    assert [r["text"][2] for r in kept] == ["0", "1", "2"]
    assert dedupe.dropped == {"cases: same question": 1, "cases: same change": 6}


def test_changed_part() -> None:
    assert changed_part("a\nb\nc", "a\nx\ny\nc") == ("b", "x\ny")
    assert changed_part("a\na", "a\na\na") == ("", "a")
    assert changed_part("a\nb", "a\nb") == ("", "")
