"""The bench for a GPU in miniature, on a CPU: the same code without graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from model.cache import KeyValueCache, Slot
from model.denoise import prefill
from model.evaluation import bench_gpu
from model.evaluation.bench_gpu import SMALL, TAIL, Setup
from model.evaluation.budget import Budget, Row, rows_table
from model.evaluation.miniature import miniature
from model.protocol import Stop

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def setup() -> Setup:
    return Setup(*miniature(), SMALL)


def greedy(setup: Setup, prompt: list[int], count: int) -> list[int]:
    """Plain decoding by the ordinary trunk and cache."""
    slot = Slot(KeyValueCache(setup.trunk.config, 8))
    hidden, _ = prefill(setup.trunk, slot, prompt, Stop())
    found: list[int] = []
    while len(found) < count:
        found.append(int(setup.trunk.head(hidden).argmax()))
        hidden = setup.trunk.forward(torch.tensor(found[-1:]), slot.cache)
        slot.append(found[-1:])
    return found


def test_all_of_it_runs_in_miniature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "gpu.json"
    assert bench_gpu.main(["--miniature", "--json", str(report)]) == 0
    data: dict[str, Any] = json.loads(report.read_text())
    rows = {row["what"]: row for row in data["rows"]}
    assert data["left_out"] == []
    for context in (SMALL.short, SMALL.long):
        for name in ("greedy", "blocks of 4", "blocks of 8"):
            row = rows[f"{SMALL.written} tokens, context {context}, {name}"]
            assert row["n"] == SMALL.places * SMALL.keys
            assert row["note"].endswith(f"the same text in {row['n']} of {row['n']}")
            assert row["p95_ms"] >= row["p50_ms"] > 0
    assert rows[f"5 tokens, context {SMALL.short}, greedy"]["tokens_per_forward"] == 1.0
    for slots in (1, 5, 15):
        what = f"{slots} at once, 5 tokens each, context {SMALL.short}"
        row = next(row for name, row in rows.items() if name.startswith(what))
        assert row["n"] == slots * SMALL.rounds
    assert row["note"].endswith("times that of 5")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("cpu, miniature")
    assert printed[-1].startswith("the server's own predictor"), "the table comes last"


def test_a_key_in_a_cached_context_is_the_whole_prompt(setup: Setup) -> None:
    places = [setup.place(index, SMALL.short) for index in range(5)]
    together = setup.decoder(SMALL.short, 5, 4)
    for slot, place in enumerate(places):
        together.prefill(slot, place[: SMALL.short], 7)
    for key in range(SMALL.keys):
        at = bench_gpu.at_key(together, places, SMALL.short, key)
        times, texts, steps = bench_gpu.suggest(together, at.tails, 6, at.repeats)
        prompts = [list(place[: SMALL.short + key + TAIL]) for place in places]
        assert texts == [greedy(setup, prompt, 6) for prompt in prompts]
        assert 2 <= steps <= 6
        assert all(0 < one <= max(times) for one in times)
        for place, text in zip(places, texts, strict=True):
            alone = setup.decoder(SMALL.short, 1, 4)
            alone.prefill(0, place[: SMALL.short])
            if key == 0:
                at = bench_gpu.at_key(alone, [place], SMALL.short, key)
                assert bench_gpu.suggest(alone, at.tails, 6)[1] == [text], "without drafts, too"


def test_places_lie_within_the_text(setup: Setup) -> None:
    length = SMALL.long + TAIL + SMALL.keys
    assert {len(setup.place(index, SMALL.long)) for index in range(40)} == {length}
    assert setup.place(0, SMALL.short) != setup.place(1, SMALL.short)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_share_of_the_time_is_kept() -> None:
    clock = Clock()
    budget = Budget(100.0, clock)
    seen = []
    for index in budget.rounds(50, 0.1):
        seen.append(index)
        clock.now += 3.0
    assert seen == [0, 1, 2, 3], "10 seconds, 3 each, and the one that was begun"
    clock.now = 200.0
    assert list(budget.rounds(5, 0.5)) == [0], "at least one"
    assert list(Budget(100.0, Clock()).rounds(2, 0.1)) == [0, 1]


def test_what_does_not_fit_is_left_out_and_said(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()

    def quick(*_: Any) -> Iterator[Row]:
        clock.now += 40.0
        yield Row("quick", (0.5, 1.5), 8, 2)

    def broken(*_: Any) -> Iterator[Row]:
        yield Row("half", (1.0,))
        raise RuntimeError("CUDA error: out of something\nlong trace")

    sections = {"one": (quick, 30.0), "two": (quick, 90.0), "three": (broken, 10.0)}
    monkeypatch.setattr(bench_gpu, "SECTIONS", sections)
    rows, left_out = bench_gpu.measure(setup, Budget(100.0, clock))
    assert left_out == ["two: 60 s left, 90 needed", "three: CUDA error: out of something"]
    assert [row.what for row in rows] == ["quick", "half"]
    cells = rows_table(rows).splitlines()[2].split()
    assert cells == ["quick", "2", "1000.00", "1450.00", "4.00"]


def test_without_a_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert bench_gpu.main([]) == 2
    assert "torch sees no CUDA device; --miniature runs without" in capsys.readouterr().err
