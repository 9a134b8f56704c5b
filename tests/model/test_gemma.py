"""DiffusionGemma through transformers' own class, with a tiny random checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers

from diffing.edits import apply
from lsp_server.cli import run
from model import gemma
from model.chat import Turn
from model.config import ModelError
from model.families import open_published
from model.gemma import GemmaPredictor
from model.grammar import ANY_OBJECT, SchemaError
from model.library import load
from model.protocol import Cancelled, Predictor, Request, Stop
from model.published_predictor import NOT_SERVED
from model.serving.author import Conversation, TooLong
from model.serving.authors import author_for
from model.serving.service import fault

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
if not hasattr(transformers, gemma.CLASS):
    pytest.skip("transformers has no DiffusionGemma", allow_module_level=True)
pytestmark = pytest.mark.usefixtures("one_thread")

CONTROL = ("<pad>", "<eos>", "<bos>", "<unk>", "<turn>", "</turn>")
CANVAS = 16
TEXT_CONFIG = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "global_head_dim": 16,
    "max_position_embeddings": 4096,
    "sliding_window": 64,
    "num_experts": 4,
    "top_k_experts": 2,
    "moe_intermediate_size": 16,
    "layer_types": ["sliding_attention", "full_attention"],
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
CHAT = (
    "{% for m in messages %}<turn>{{ m.role }}\n{{ m.content }}</turn>\n{% endfor %}<turn>model\n"
)
TEXT = "width = 3\ntotal = 4\nprint(total)\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gemma") / "diffusiongemma-tiny"
    ids = {"image_token_id": 292, "boi_token_id": 290, "eoi_token_id": 291}
    config = transformers.DiffusionGemmaConfig(
        text_config=TEXT_CONFIG, vision_config=VISION, canvas_length=CANVAS, **ids
    )
    torch.manual_seed(0)
    model = transformers.DiffusionGemmaForBlockDiffusion(config)
    model.generation_config.eos_token_id = [1, 5]
    model.generation_config.max_denoising_steps = 6
    model.save_pretrained(folder)
    pieces = [*CONTROL, *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(list(CONTROL))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHAT}))
    return folder


@pytest.fixture(scope="module")
def predictor(folder: Path) -> GemmaPredictor:
    found = load(str(folder), threads=1, instruct=True)
    assert isinstance(found, GemmaPredictor)
    return found


def request(mode: Any = "next_edit", **more: Any) -> Request:
    return Request(mode, "a.py", TEXT, TEXT.index("total"), **{"max_tokens": 8, **more})


def test_it_answers_behind_the_one_protocol(predictor: GemmaPredictor, folder: Path) -> None:
    assert isinstance(predictor, Predictor)
    assert predictor.name == "diffusiongemma-tiny"
    made = predictor.predict(request(), Stop())
    assert made.edits == ()  # noise has no fenced block
    assert made.forwards % 6 == 0
    assert 0 < made.forwards <= 6 * 10
    plain = load(str(folder), threads=1)
    assert plain.predict(request(), Stop()).suppressed == NOT_SERVED


def test_answers_are_those_of_transformers(predictor: GemmaPredictor) -> None:
    prompt = predictor.tokenizer.encode("What comes next?")
    torch.manual_seed(gemma.SEED)
    whole = predictor.model.generate(torch.tensor([prompt]), max_new_tokens=2 * CANVAS).sequences
    expected = whole[0, len(prompt) :].tolist()
    ends = [at for at, token in enumerate(expected) if token in (1, 5)]
    expected = expected[: min([2 * CANVAS, *ends])]
    state = torch.random.get_rng_state()
    for _ in range(2):
        tokens, watched = predictor.generate(prompt, 2 * CANVAS, Stop())
        assert tokens == expected
        assert len(watched.log_probs) >= len(tokens)
        assert all(one < 0 for one in watched.log_probs)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert predictor.generate(prompt, 5, Stop())[0] == expected[:5]


def test_a_fenced_block_becomes_an_edit(
    predictor: GemmaPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = "```\nwidth = 3\nsum = 4\nprint(sum)\n```"
    seen: list[str] = []

    def generate(prompt: Any, **_: Any) -> Any:
        seen.append(predictor.tokenizer.decode(prompt[0].tolist()))
        said = torch.tensor([[*predictor.tokenizer.encode(answer), 5, 40]])
        return SimpleNamespace(sequences=torch.cat([prompt, said], dim=1))

    monkeypatch.setattr(predictor.model, "generate", generate)
    for mode in ("fim", "next_edit"):
        made = predictor.predict(request(mode, max_tokens=64), Stop())
        assert apply(TEXT, made.edits) == "width = 3\nsum = 4\nprint(sum)\n"
        assert not made.truncated
    assert "<cursor>total = 4" in seen[0]


def test_a_withdrawn_request_stops_and_a_late_one_has_no_answer(predictor: GemmaPredictor) -> None:
    class After(Stop):
        """Withdrawn, or late, at the third look."""

        looks = 0

        def check(self) -> None:
            self.looks += 1
            if self.looks == 3:
                self.cancel()
            super().check()

    with pytest.raises(Cancelled):
        predictor.predict(request(), After())
    late = predictor.predict(request(), Stop(0))
    assert (late.edits, late.forwards) == ((), 0)


def test_text_cannot_pass_for_a_control_token(predictor: GemmaPredictor) -> None:
    tokenizer = predictor.tokenizer
    assert tokenizer.encode_template("a</turn>b").count(5) == 1
    assert 5 not in tokenizer.encode("a</turn>b")
    assert tokenizer.decode(tokenizer.encode("é a</turn>\n b")) == "é a</turn>\n b"


def test_a_version_without_the_class_is_told_which_is_needed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gemma, "CLASS", "NoSuchClass")
    with pytest.raises(ModelError, match=r"needs transformers 5\.11 or newer, and this is 5"):
        load(str(folder))
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ModelError, match="which is not installed: pip install"):
        load(str(folder))


def test_weights_that_are_not_whole_are_refused(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(ModelError, match="no chat template"):
        load(str(tmp_path))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHAT}))
    with pytest.raises(ModelError, match="cannot be loaded as DiffusionGemma"):
        load(str(tmp_path))
    tensors = load_file(folder / "model.safetensors")
    gone = next(name for name in tensors if name.endswith("q_proj.weight"))
    del tensors[gone]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"missing keys such as .*q_proj"):
        load(str(tmp_path))


def test_the_command_knows_it(folder: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "info", str(folder)]) == 0
    assert "DiffusionGemma" in capsys.readouterr().out
    assert run(["models", "use", str(folder)]) == 1
    assert "--instruct" in capsys.readouterr().err
    assert run(["models", "use", str(folder), "--instruct"]) == 0
    with pytest.raises(ModelError, match="DiffusionGemma"):
        open_published(folder)


def test_it_chats(predictor: GemmaPredictor) -> None:
    author = author_for(predictor)
    assert author.chats
    assert not author.takes_tools
    turns, seen = [Turn("user", "What comes next?")], []
    made = author.chat(Conversation(turns), 20, [], Stop(), seen.append)
    prompt = predictor.template.ask(predictor.tokenizer, "What comes next?")
    tokens, _ = predictor.generate(prompt, 20, Stop())
    assert made.text == predictor.tokenizer.decode(tokens)
    assert (made.prompt_tokens, made.tokens) == (len(prompt), len(tokens))
    assert made.finish == ("length" if len(tokens) == 20 else "stop")
    assert [(step.text, step.progress) for step in seen] == [(made.text, 1.0)]
    first = made.text[:1]
    assert author.chat(Conversation(turns), 20, [first], Stop()).text == ""
    with pytest.raises(TooLong, match="reads 4096 with its answer"):
        author.chat(Conversation([Turn("user", "x" * 5000)]), 20, [], Stop())


def test_a_schema_is_refused_in_words(predictor: GemmaPredictor) -> None:
    with pytest.raises(SchemaError) as error:
        author_for(predictor).chat(Conversation([Turn("user", "Hi")], ANY_OBJECT), 20, [], Stop())
    refusal = fault(error.value)
    assert (refusal.status, refusal.code) == (400, "invalid_schema")
    assert "cannot be enforced" in str(refusal)
