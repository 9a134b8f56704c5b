"""Figures of what an editor saw."""

from __future__ import annotations

import pytest

from lsp_server.bench_client import Sample, sample
from lsp_server.bench_figures import client_table, groups, growth, memory_note, others


def asked(kind: str, latency_ms: float, cached: float = 0.0) -> Sample:
    return Sample("fim", 50, kind, latency_ms, "model", True, 2, 6, 100.0, cached, latency_ms - 2)


def test_groups_keep_what_the_model_answered_apart_from_what_was_live() -> None:
    samples = [
        asked("first", 900),
        asked("type", 100, 90.0),
        asked("type", 300, 70.0),
        asked("jump", 500, 20.0),
        Sample("fim", 50, "type", 0.5, "live", True),
        Sample("fim", 50, "through", 1.5, "live", True),
        Sample("fim", 50, "delete", 0.1, "after-undo", False),
    ]
    found = {one["kind"]: one for one in groups(samples)}
    assert list(found) == ["first", "type", "jump", "all warm", "live"]
    assert found["type"]["latency_ms"]["p50"] == 200
    assert found["type"]["cache_hit"] == 0.8
    assert found["all warm"]["requests"] == 3
    assert found["all warm"]["latency_ms"]["p50"] == 300
    assert found["all warm"]["overhead_ms"] == 2
    assert found["live"]["latency_ms"]["p50"] == 1.0
    assert (found["live"]["forwards"], found["live"]["tokens_per_forward"]) == (0, None)
    assert others(samples) == {"after-undo": 1}
    rows = client_table(groups(samples)).splitlines()
    assert rows[3].split()[:6] == ["fim", "type", "50", "2", "200", "280"]
    assert rows[6].split()[:6] == ["fim", "live", "50", "2", "1.00", "1.40"]


def test_a_sample_tells_who_answered() -> None:
    before = {"predictions": 3, "lastReason": None, "lastPrediction": None}
    assert sample("fim", 50, "type", 1.0, True, before, before).source == "live"
    undone = {**before, "lastReason": "after-undo"}
    assert sample("fim", 50, "type", 1.0, False, before, undone).source == "after-undo"
    last = {"forwards": 4, "tokens": 9, "promptTokens": 80.0, "cachedTokens": 60.0, "latencyMs": 7}
    after = {"predictions": 4, "lastReason": "low-confidence", "lastPrediction": last}
    one = sample("fim", 50, "type", 9.0, False, before, after)
    assert (one.source, one.forwards, one.tokens, one.model_ms) == ("model", 4, 9, 7)
    assert (one.prompt_tokens, one.cached_tokens) == (80.0, 60.0)


def test_growth_of_memory_is_told_for_all_and_for_the_second_half() -> None:
    sizes = [100, 140, 150, 150, 151, 152]
    rows = [{"requests": 200 * (n + 1), "resident": size * 2**20} for n, size in enumerate(sizes)]
    assert growth(rows[:1]) is None
    assert growth(rows[3:]) == pytest.approx(2**20 / 200)
    assert memory_note(rows) == (
        "first 100 MiB after 200 requests, last 152 MiB after 1200; "
        "growth in 1,000 requests: +41.9 MiB, in the second half +5.0 MiB"
    )
    assert memory_note([]).startswith("too few requests")
