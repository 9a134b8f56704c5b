"""Open models with weights of 8 and 4 bits, on a CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from published_checkpoints import save_published
from safetensors.torch import load_file, save_file

from lsp_server.cli import run
from lsp_server.engine import ModelChoice, load_predictor
from model.config import ModelError, Quantize
from model.evaluation.miniature import CONFIG
from model.footprint import needed_gib, quantized_gib
from model.library import CHOICE, Choice, choose, chosen, load
from model.protocol import Request, Stop
from model.published_predictor import PublishedPredictor
from model.quantize import QuantizedLinear

pytestmark = pytest.mark.usefixtures("one_thread")

CLOSE: dict[Quantize, float] = {"int8": 0.03, "int4": 0.35}
PLACES = [5, 17, 3, 88, 41, 41, 9, 60, 2, 33]


@pytest.fixture
def library() -> Any:
    return pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    names = ("stable-diffcoder", "dream", "llada")
    made = {name: save_published(tmp_path_factory.mktemp(name), name)[0] for name in names}
    for folder in made.values():
        calm(folder)
    return made


def calm(folder: Path) -> None:
    """Make attention soft: in these checkpoints it is so sharp that rounding decides who is looked at."""
    for path in folder.glob("*.safetensors"):
        tensors = load_file(path)
        for name in tensors:
            if "q_proj" in name or "k_proj" in name:
                tensors[name] = tensors[name] / 5
        save_file(tensors, path)


def loaded(folder: Path, quantize: Quantize | None) -> PublishedPredictor:
    return PublishedPredictor.load(folder, device="cpu", compute="float32", quantize=quantize)


@torch.inference_mode()
def logits(predictor: PublishedPredictor) -> torch.Tensor:
    trunk = predictor.trunk
    hidden = trunk.forward(torch.tensor(PLACES), trunk.new_cache(len(PLACES)))
    return trunk.head(hidden).float()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("how", CLOSE)
@pytest.mark.parametrize(("bias", "size"), [(True, 64), (False, 192), (True, 32), (False, 97)])
def test_products_stay_close(how: Quantize, bias: bool, size: int) -> None:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(96, size, generator=generator) / 8
    given = torch.randn(96, generator=generator) if bias else None
    x = torch.randn(7, size, generator=generator)
    exact = torch.nn.functional.linear(x, weight, given)
    made = QuantizedLinear(weight, given, how, torch.device("cpu"))(x)
    assert made.shape == exact.shape
    off = float((made.float() - exact).std() / exact.std())
    assert 0 < off < {"int8": 0.01, "int4": 0.12}[how], off


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", ["stable-diffcoder", "dream", "llada"])
@pytest.mark.parametrize("how", CLOSE)
def test_logits_stay_close(name: str, how: Quantize, folders: dict[str, Path]) -> None:
    exact, rounded = logits(loaded(folders[name], None)), logits(loaded(folders[name], how))
    off = float((rounded - exact).std() / exact.std())
    assert 0 < off < CLOSE[how], off


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("how", CLOSE)
def test_the_command_chooses_and_the_server_loads_it(
    how: Quantize, folders: dict[str, Path], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["models", "use", str(folders["dream"]), "--quantize", how]) == 0
    assert chosen().quantize == how
    predictor = load_predictor(ModelChoice(device="cpu", threads=1))
    assert isinstance(predictor, PublishedPredictor)
    assert isinstance(predictor.trunk.layers[0].qkv, QuantizedLinear)
    text = "def area(width):\n    return wi\n"
    made = predictor.predict(Request("fim", "a.py", text, len(text) - 1, max_tokens=8), Stop())
    assert made.forwards > 0
    capsys.readouterr()
    assert run(["models", "info", str(folders["dream"])]) == 0
    told = capsys.readouterr().out
    assert "GiB with int8" in told
    assert f"used with --quantize {how}" in told


@pytest.mark.usefixtures("library")
def test_no_code_is_fetched_from_the_hub(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text("raise SystemExit('kernels was imported')")
    code = "from model.quantize import bitsandbytes; print(bitsandbytes('int4').__name__)"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "bitsandbytes\n"
    assert "kernels was imported" not in done.stderr


def test_a_choice_keeps_how_it_is_quantised(folders: dict[str, Path], home: Path) -> None:
    folder = folders["dream"]
    choose(Choice(str(folder), instruct=True, quantize="int8"))
    assert chosen() == Choice(str(folder.resolve()), True, "int8")
    (home / CHOICE).write_text(json.dumps({"model": "embedded", "quantize": "int3"}))
    with pytest.raises(ModelError, match="int3"):
        chosen()


def test_what_cannot_be_quantised_is_told(
    folders: dict[str, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="chooses its precision itself"):
        load("embedded", quantize="int8")
    assert run(["models", "use", "embedded", "--quantize", "int8"]) == 1
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(ModelError, match=r"pip install 'redraft\[quantize\]'"):
        loaded(folders["dream"], "int4")
    assert run(["models", "use", str(folders["dream"]), "--quantize", "int4"]) == 1
    assert chosen() == Choice()


def test_the_memory_needed_takes_it_into_account() -> None:
    count = 8_000_000_000
    tables = CONFIG.vocab_size * CONFIG.hidden_size
    whole, eight, four = (
        needed_gib(count),
        quantized_gib(count, CONFIG, "int8"),
        quantized_gib(count, CONFIG, "int4"),
    )
    assert whole == pytest.approx(17.7, abs=0.1)
    assert eight == pytest.approx(9.2, abs=0.1)
    assert four == pytest.approx(5.4, abs=0.1)
    assert quantized_gib(tables, CONFIG, "int4", 2**20) == needed_gib(tables, 2**20)
