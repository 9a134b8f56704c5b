from __future__ import annotations

from fake_predictor import FakePredictor

from diffing.edits import Edit
from diffing.hunks import reverse_unified
from model.evaluation import bench


def test_excerpts_have_the_size_asked_for() -> None:
    lines = [f"    def f{n}():\n" if n % 10 == 0 else f"        x{n}\n" for n in range(300)]
    for count in (5, 50, 300, 1000):
        assert len(bench.excerpt(lines, count)) == count
    assert bench.excerpt(lines, 50)[0] == "    def f100():\n"


def test_the_source_is_long_enough() -> None:
    assert len(bench.source_lines()) > 5000


def test_a_trace_types_one_line_key_by_key() -> None:
    lines = ["import os\n", "short\n", "a_longer_line = 1\n", "end\n"]
    requests = bench.typing_trace(lines, "next_edit", 4, "here")
    assert len(requests) == 4
    first, last = requests[0], requests[-1]
    assert first.path == "src/here.py"
    assert first.text == "# here\nshort\na_longer_line\nend\n"
    assert first.history == ()
    assert [one.text[: one.cursor].rsplit("\n", 1)[1] for one in requests] == [
        "a_longer_line",
        "a_longer_line ",
        "a_longer_line =",
        "a_longer_line = ",
    ]
    assert reverse_unified(last.text, last.history[0]) == first.text


def test_replay_asks_everybody_the_same() -> None:
    one = FakePredictor(lambda request: (), features={"prompt_tokens": 10, "cached_tokens": 8})
    two = FakePredictor(lambda request: (Edit(0, 0, "# x\n"),))
    traces = bench.typed([50], ["fim"], keys=3, repeats=2)
    samples = list(bench.replay({"one": one, "two": two}, traces))
    assert one.asked == two.asked
    assert len(one.asked) == 6
    assert [sample.run for sample in samples[:4]] == ["one", "two", "two", "one"]
    assert [sample.warm for sample in samples[:6:2]] == [False, True, True]
    assert one.asked[0].text.split("\n")[0] != one.asked[3].text.split("\n")[0]


def test_groups_and_table() -> None:
    def sample(run: str, warm: bool, latency: float, cached: float | None) -> bench.Sample:
        prompt = None if cached is None else 100.0
        return bench.Sample(run, 50, "fim", warm, latency, 2, 6, True, prompt, cached)

    samples = [
        sample("redraft", False, 40, 0),
        sample("causal", False, 60, None),
        sample("redraft", True, 10, 100),
        sample("redraft", True, 20, 50),
        sample("causal", True, 45, None),
    ]
    summaries = bench.groups(samples)
    assert [(s["run"], s["warm"], s["times_slower"]) for s in summaries] == [
        ("redraft", False, 1.0),
        ("causal", False, 1.5),
        ("redraft", True, 1.0),
        ("causal", True, 3.0),
    ]
    warm = summaries[2]
    assert warm["latency_ms"]["p50"] == 15
    assert (warm["cache_hit"], warm["tokens_per_forward"]) == (0.75, 3.0)
    assert summaries[3]["cache_hit"] is None
    lines = bench.bench_table(summaries).splitlines()
    expected = "fim warm redraft 50 2 15.0 19.0 19.9 1.00 2.0 6.0 3.00 100 75%"
    assert lines[4].split() == expected.split()


def test_memory_is_told_in_bytes() -> None:
    peak = bench.peak_memory()
    assert peak is None or peak > 5_000_000
