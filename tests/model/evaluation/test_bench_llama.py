from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tiny
from fake_predictor import FakePredictor

from lsp_server.cli import run
from model.bundle import EMBEDDED
from model.complete import Completion
from model.denoise import Generation
from model.evaluation import bench, bench_llama, bench_run
from model.evaluation.bench_llama import OFFERED, WRITTEN, Job, LlamaPredictor
from model.evaluation.loading import UsageError
from model.gate import load_for_user
from model.local import LocalPredictor
from model.protocol import Request, Stop

pytestmark = pytest.mark.usefixtures("one_thread")

VOCABULARY = 49152
ALPHA = 7000
real_tokenizer = cache(tiny.real_tokenizer)


class FakeLlama:
    """Writes ALPHA, ALPHA + 1, ... and holds what it was given, as the library's own object does."""

    vocabulary = VOCABULARY
    made: list[FakeLlama] = []  # noqa: RUF012

    def __init__(self, path: str, **options: Any) -> None:
        self.path, self.options = path, options
        self.input_ids: list[int] = []
        self.n_tokens = 0
        self.asked: list[list[int]] = []
        self.made.append(self)

    def n_vocab(self) -> int:
        return self.vocabulary

    def generate(self, tokens: Sequence[int], *, temp: float) -> Iterator[int]:
        assert temp == 0.0
        self.asked.append(list(tokens))
        self.input_ids = list(tokens)
        self.n_tokens = len(self.input_ids)
        for step in range(100):
            yield ALPHA + step
            self.input_ids.append(ALPHA + step)
            self.n_tokens += 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[FakeLlama]:
    module = ModuleType("llama_cpp")
    module.Llama = FakeLlama  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    monkeypatch.setattr(FakeLlama, "made", [])
    monkeypatch.setattr(FakeLlama, "vocabulary", VOCABULARY)
    return FakeLlama


def tiny_predictor() -> LocalPredictor:
    return LocalPredictor(tiny.random_bundle(), load_for_user(EMBEDDED, "tiny", None), 128)


class FixedCompleter:
    """Writes three tokens behind what is required and offers two of them."""

    def complete(self, context: Any, required: bytes, *_: Any) -> tuple[Any, Generation]:
        given = real_tokenizer().encode(required.decode())
        tokens = [*given, ALPHA, ALPHA + 1, 5]
        nothing, two = (
            Completion(text, 0.0, 0.5, -1.0, -1.0, count, 1, True)
            for text, count in (("", 0), ("xy", len(given) + 2))
        )
        return [nothing, two], Generation(tokens=tokens)


def fixed_predictor(*_: Any) -> LocalPredictor:
    predictor = tiny_predictor()
    predictor.completer = FixedCompleter()  # type: ignore[assignment]
    return predictor


def typed_line(keys: int = 3) -> list[Request]:
    lines = ["import os\n", "pass\n", "value = os.path.join(left, right)\n", "end\n"]
    return bench.typing_trace(lines, "fim", keys, "here")


def test_a_rehearsal_keeps_what_the_weights_were_asked() -> None:
    requests = typed_line()
    predictor = tiny_predictor()
    jobs = bench_llama.rehearse(predictor, requests)
    assert len(jobs) == 3
    tokenizer = predictor.bundle.tokenizer
    for request in requests:
        job = jobs[bench_llama.key_of(request)]
        before = request.text[: request.cursor]
        given = tokenizer.decode(job.prompt[1:]).removeprefix("src/here.py\n")
        assert before.startswith(given), "what stands before the cursor is prompt"
        assert (given + tokenizer.decode(job.written)).startswith(before)
        assert len(job.written) > 10
        assert job.offered == 0, "noise is not offered"


def test_tokens_within_the_required_bytes_are_prompt() -> None:
    tokenizer = real_tokenizer()
    ids = tokenizer.encode(" value_of")
    sizes = [len(tokenizer.token_bytes(token)) for token in ids]
    assert len(ids) > 1
    assert bench_llama.known(ids, b" value_of", tokenizer) == len(ids)
    assert bench_llama.known(ids, b" value_of"[: sizes[0]], tokenizer) == 1
    assert bench_llama.known(ids, b" value_of"[: sizes[0] - 1], tokenizer) == 0


def test_llama_writes_what_we_write_and_no_more(library: type[FakeLlama]) -> None:
    (request, *_) = typed_line()
    tokenizer = real_tokenizer()
    job = Job((1, 2, 3), (ALPHA, ALPHA + 1, 5), 2)
    jobs = {bench_llama.key_of(request): job}
    llama = library("x.gguf")
    whole = LlamaPredictor(llama, jobs, tokenizer, WRITTEN)
    first = whole.predict(request, Stop())
    assert (first.tokens, first.forwards) == (3, 3)
    assert first.features == {"prompt_tokens": 3.0, "cached_tokens": 0.0}
    assert llama.asked == [[1, 2, 3]]
    assert llama.input_ids == [1, 2, 3, ALPHA, ALPHA + 1], "the last token is not run"
    assert (whole.same, whole.asked) == (0, 1)
    part = LlamaPredictor(llama, jobs, tokenizer, OFFERED)
    second = part.predict(request, Stop())
    assert (second.tokens, second.features["cached_tokens"]) == (2, 3.0)
    assert (part.same, part.asked) == (1, 1)
    assert part.predict(request, Stop(0.0)).tokens == 0, "a deadline ends it"


def sample(run: str, warm: bool, latency: float, tokens: int = 4, lines: int = 50) -> bench.Sample:
    return bench.Sample(run, lines, "fim", warm, latency, 2, tokens, True, None, None)


def test_pairs_are_of_the_same_request_and_warm() -> None:
    samples = [
        sample("redraft", False, 900),
        sample("llama", False, 1),
        sample("redraft", True, 10),
        sample("llama", True, 20),
        sample("llama", True, 33),
        sample("redraft", True, 11),
        sample("llama", False, 1),
        sample("redraft", False, 900),
        sample("redraft", True, 10),
        sample("llama", True, 0.1, tokens=0),
        sample("redraft", True, 40),
        sample("llama", True, 40),
    ]
    found = bench_llama.pairs(samples, "redraft", "llama")
    assert [(p.trace, p.ours, p.theirs) for p in found] == [(0, 10, 20), (0, 11, 33), (1, 40, 40)]
    (summary,) = bench_llama.compared(found, "llama")
    assert (summary["requests"], summary["traces"]) == (3, 2)
    assert summary["ratios"] == {"p50": 3.0, "p90": pytest.approx(38.6 / 34.2), "pairs": 2.0}
    low, high = summary["intervals"]["pairs"]
    assert (low, high) == (1.0, 2.5), "one trace or the other, or both"
    cells = bench_llama.pairs_table([summary], "redraft").splitlines()[2].split()
    assert cells == ["llama", "50", "3", "p50", "11.0", "33.0", "3.00", "1.00-3.00"]


def test_the_bench_asks_both_in_turn(
    library: type[FakeLlama],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bench_run, "load_predictor", fixed_predictor)
    monkeypatch.setattr(bench_run, "load_runs", lambda *_: {"redraft": fixed_predictor()})
    gguf, report = tmp_path / "x.gguf", tmp_path / "bench.json"
    gguf.write_bytes(b"GGUF")
    arguments = ["--lines", "50", "--keys", "3", "--limit", "1", "--json", str(report)]
    assert run(["bench", "--llama", str(gguf), *arguments]) == 0
    data = json.loads(report.read_text())
    asked = [one["run"] for one in data["samples"]]
    assert asked == ["redraft", WRITTEN, OFFERED, OFFERED, WRITTEN, "redraft", *asked[:3]]
    assert {one["mode"] for one in data["samples"]} == {"fim"}
    assert [(row["against"], row["requests"]) for row in data["pairs"]] == [
        (WRITTEN, 2),
        (OFFERED, 2),
    ]
    one, other = library.made
    assert one.asked == other.asked, "the same prompts in both runs"
    tokens = [one["tokens"] for one in data["samples"] if one["run"] != "redraft"]
    assert tokens == [3, 2, 2, 3, 3, 2]
    options = one.options
    assert options["n_threads"] == options["n_threads_batch"] == 1
    assert options["n_ctx"] >= max(map(len, one.asked)) + 1
    assert f"{WRITTEN} wrote the same tokens as we in 0 of 3 requests" in capsys.readouterr().out


def test_other_weights_are_refused(library: type[FakeLlama], tmp_path: Path) -> None:
    library.vocabulary = 32000
    with pytest.raises(UsageError, match=r"32000 tokens, but .* these are not the same weights"):
        bench_llama.open_llama(tmp_path / "x.gguf", tiny_predictor(), {}, 1)


def test_a_file_that_is_no_model_is_named(library: type[FakeLlama], tmp_path: Path) -> None:
    def broken(path: str, **_: Any) -> None:
        raise ValueError(f"Failed to load model from file: {path}")

    sys.modules["llama_cpp"].Llama = broken  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"^--llama .*x\.gguf: Failed to load model"):
        bench_llama.open_llama(tmp_path / "x.gguf", tiny_predictor(), {}, 1)


def test_a_predictor_without_weights_is_refused() -> None:
    with pytest.raises(UsageError, match="fake has no weights"):
        bench_llama.rehearse(FakePredictor(lambda request: ()), [])


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["bench", "--lines", "50", "--keys", "3", "--limit", "1", *arguments]) == 2
    return capsys.readouterr().err


def test_what_is_missing_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gguf = tmp_path / "x.gguf"
    assert f"--llama {gguf}: no such file" in refused(capsys, "--llama", str(gguf))
    gguf.write_bytes(b"GGUF")
    llama = ["--llama", str(gguf)]
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    assert "completions only" in refused(capsys, *llama, "--mode", "next_edit")
    assert "without a server" in refused(capsys, *llama, "--client")
    assert "pip install 'redraft[llama]'" in refused(capsys, *llama)


def test_jobs_do_not_depend_on_other_fields() -> None:
    (request, *_) = typed_line()
    assert bench_llama.key_of(replace(request, max_tokens=3)) == bench_llama.key_of(request)
