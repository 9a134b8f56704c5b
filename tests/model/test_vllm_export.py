"""Our checkpoint as vLLM takes it: the published names and shapes, the same logits, and no promise it cannot keep."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from published_checkpoints import save_published
from safetensors.torch import load_file
from tiny import save_checkpoint
from torch import Tensor

from lsp_server.cli import run
from model.adapter import AdaptedCheckpoint, save_adapter
from model.chat import load_asking
from model.config import ModelConfig, ModelError
from model.families import open_published
from model.layouts import nemotron_stored
from model.training.export import packed
from model.transformer import Transformer
from model.vllm_export import compare, export, shapes
from model.weights import Checkpoint, pack_q4, save_shards

pytestmark = pytest.mark.usefixtures("one_thread")

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}\n<|im_start|>me\n"
)
TOKENS = torch.tensor([40, 900, 41, 7, 300, 22000])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny, random, packed in 4 and 8 bits, with an adapter, a chat template and a denoiser's file."""
    folder = tmp_path_factory.mktemp("ours")
    config = save_checkpoint(folder)
    whole = Checkpoint(folder)
    tensors: dict[str, Tensor] = {}
    for name in sorted(whole.names()):
        if name.endswith("o_proj.weight"):
            parts = pack_q4(whole.get(name))
            tensors |= {f"{name}.{part}": value for part, value in parts.items()}
        else:
            tensors |= packed({name: whole.get(name)})
    for shard in folder.glob("model*"):
        shard.unlink()
    save_shards(tensors.items(), folder, 10**9)
    generator = torch.Generator().manual_seed(3)
    down = torch.randn(4, config.hidden_size, generator=generator) / 8
    up = torch.randn(config.intermediate_size, 4, generator=generator) / 2
    save_adapter({"model.layers.1.mlp.up_proj.weight": (down, up)}, folder, "tiny")
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "denoiser.safetensors").write_bytes(b"stays behind")
    (folder / "LICENSE").write_text("a licence")
    return folder


@pytest.fixture(scope="module")
def written(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "deeper" / "for-vllm"
    export(source, out)
    return out


@pytest.fixture
def copy(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "copy"))


def logits(trunk: Transformer) -> Tensor:
    with torch.inference_mode():
        return trunk.head(trunk.forward(TOKENS, trunk.new_cache(len(TOKENS))))


def stored(folder: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for path in folder.glob("model-*.safetensors"):
        found |= load_file(path)
    return found


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def rewrite(folder: Path, **keys: object) -> None:
    (folder / "config.json").write_text(json.dumps({**read(folder / "config.json"), **keys}))


def test_names_are_those_of_the_published_layout(written: Path, tmp_path: Path) -> None:
    published = stored(save_published(tmp_path, "nemotron")[0])

    def one_layer(names: set[str]) -> set[str]:
        return {name for name in names if ".layers." not in name or ".layers.0." in name}

    assert one_layer(set(stored(written))) == one_layer(set(published))
    assert {name.split(".")[0] for name in stored(written)} == {"encoder", "diffusion_head"}


def test_the_configuration_has_the_published_keys(written: Path, tmp_path: Path) -> None:
    published = read(save_published(tmp_path, "nemotron")[0] / "config.json")
    ours = read(written / "config.json")
    assert set(published) <= set(ours)
    for key in ("architectures", "model_type", "tie_word_embeddings"):
        assert ours[key] == published[key]
    assert ours["ar_mode"] is True
    assert ours["rope_parameters"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert "redraft" not in ours


def test_shapes_are_those_of_the_configuration_and_weights_have_16_bits(written: Path) -> None:
    found, raw = stored(written), read(written / "config.json")
    heads = raw["num_attention_heads"] * raw["head_dim"]
    attention = "encoder.layers.2.self_attn"
    assert found[f"{attention}.q_proj.weight"].shape == (heads, raw["hidden_size"])
    assert found[f"{attention}.k_proj.weight"].shape == (heads // 2, raw["hidden_size"])
    assert found[f"{attention}.o_proj.weight"].shape == (raw["hidden_size"], heads)
    assert found["diffusion_head.weight"].shape == (raw["vocab_size"], raw["hidden_size"])
    assert {value.dtype for value in found.values()} == {torch.bfloat16}
    assert raw["dtype"] == "bfloat16"
    assert read(written / "model.safetensors.index.json")["weight_map"].keys() == found.keys()


@pytest.mark.parametrize(("precision", "apart"), [("bfloat16", 0.06), ("float16", 0.008)])
def test_our_loader_reads_it_back_to_the_same_logits(
    precision: Any, apart: float, source: Path, tmp_path: Path
) -> None:
    config = export(source, tmp_path / "out", precision)
    found = open_published(tmp_path / "out")
    assert found.family.name == "nemotron"
    before = logits(Transformer.load(AdaptedCheckpoint(source), config))
    after = logits(Transformer.load(found.weights(), found.config))
    assert float(before.std()) > 0.5
    torch.testing.assert_close(after, before, atol=apart, rtol=apart)
    unadapted = logits(Transformer.load(Checkpoint(source), config))
    assert float((unadapted - before).abs().max()) > 4 * apart  # the adapter is in it


def test_transformers_own_llama_computes_the_same_from_it(source: Path, written: Path) -> None:
    transformers = pytest.importorskip("transformers")
    raw = {k: v for k, v in read(written / "config.json").items() if k != "architectures"}
    raw |= {"model_type": "llama", "dtype": "float32"}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**raw)).eval()
    model.load_state_dict(
        {
            name.replace("encoder.", "model.").replace("diffusion_head", "lm_head"): value.float()
            for name, value in stored(written).items()
        }
    )
    with torch.inference_mode():
        expected = model(TOKENS[None]).logits[0]
    config = ModelConfig.load(source)
    ours = logits(Transformer.load(AdaptedCheckpoint(source), config))
    torch.testing.assert_close(ours, expected, atol=0.06, rtol=0.06)


def test_vocabulary_and_special_ids_survive(source: Path, written: Path) -> None:
    special = ModelConfig.load(source).special
    found = open_published(written)
    assert found.mask == special["mask"] == read(written / "config.json")["mask_token_id"]
    assert found.begin == found.end == special["endoftext"]
    assert found.ends == {special["endoftext"], found.tokenizer.control["<|im_end|>"]}
    assert set(special.values()) <= set(found.tokenizer.control.values())
    assert found.tokenizer.roles["mask"] == special["mask"]
    assert read(written / "redraft.json")["special"] == dict(special)
    before, after = read(source / "tokenizer.json"), read(written / "tokenizer.json")
    assert after["model"] == before["model"]
    assert found.tokenizer.size == ModelConfig.load(source).vocab_size
    assert read(written / "generation_config.json")["eos_token_id"] == [0, 2]


def test_transformers_own_tokenizer_reads_it(written: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(str(written))
    ours = open_published(written).tokenizer
    text = "def area(r):\n    return 31415 * r ** 2  # é🙂\n"
    assert theirs(text)["input_ids"] == ours.encode(text)
    assert theirs.decode(ours.encode(text)) == text
    assert (theirs.mask_token_id, theirs.eos_token_id, theirs.bos_token_id) == (8, 0, 0)
    assert theirs("<|im_end|>")["input_ids"] == [2]
    asked = theirs.apply_chat_template(
        [{"role": "user", "content": "hello"}], tokenize=True, add_generation_prompt=True
    )
    chat = load_asking(written, ours)
    assert chat is not None
    assert list(getattr(asked, "input_ids", asked)) == chat.ask(ours, "hello")


def test_the_card_says_what_is_lost(written: Path) -> None:
    card = (written / "README.md").read_text(encoding="utf-8")
    for part in (
        "--hf-overrides '{\"ar_mode\": true}'",
        "--max-model-len 512",
        "Not block diffusion",
        "it stayed behind",
        "not trained to fill in",
        "| mask | `<issue_start>` | 8 |",
        r"`<\|endoftext\|>`",
    ):
        assert part in card
    names = {path.name for path in written.iterdir()}
    assert "LICENSE" in names
    assert not {"denoiser.safetensors", "adapter_config.json", "gate.json"} & names


def test_a_folder_that_is_not_empty_is_left_as_it_is(source: Path, tmp_path: Path) -> None:
    kept = tmp_path / "mine.txt"
    kept.write_text("mine")
    for out in (tmp_path, kept, source):
        with pytest.raises(ModelError, match="nothing is overwritten"):
            export(source, out)
    assert kept.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_filled_with_shards_below_the_limit(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = 2 * 49152 * 32
    monkeypatch.setattr("model.vllm_export.LARGEST_SHARD", largest)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    config = export(source, Path())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    found = list((tmp_path / "out").glob("*.safetensors"))
    assert len(found) == 3  # embedding, layers, head
    assert max(path.stat().st_size for path in found) < largest + 10_000
    assert Checkpoint(tmp_path / "out").names() == {
        nemotron_stored(name) for name in shapes(config)
    }


def lose_shard(folder: Path) -> None:
    (folder / "model-00001-of-00001.safetensors").unlink()


def cut_shard(folder: Path) -> None:
    shard = folder / "model-00001-of-00001.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1000])


def cut_adapter(folder: Path) -> None:
    (folder / "adapter_model.safetensors").write_bytes(b"none")


def break_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


def forget_mask(folder: Path) -> None:
    rewrite(folder, redraft={"special": {"endoftext": 0}})


def name_unknown_token(folder: Path) -> None:
    rewrite(folder, vocab_size=49200, redraft={"special": {"mask": 49190}})


DAMAGE = [
    (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
    (lose_shard, "weights are incomplete"),
    (cut_shard, "truncated or damaged"),
    (cut_adapter, "adapter_model.safetensors"),
    (break_tokenizer, "not a readable tokenizer"),
    (forget_mask, "names no mask token"),
    (name_unknown_token, "has no token 49190, which is its mask"),
    (lambda folder: rewrite(folder, intermediate_size=80), r"\[64, 32\], not \[80, 32\]"),
    (lambda folder: rewrite(folder, num_hidden_layers=4), "lack the tensor model.layers.3"),
    (lambda folder: rewrite(folder, num_hidden_layers=2), "9 tensors that would be left out"),
    (lambda folder: rewrite(folder, vocab_size=40000), "more tokens than its model"),
    (
        lambda folder: rewrite(
            folder, rope_scaling={"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.1}
        ),
        "attention_factor, which vLLM reads otherwise",
    ),
]


@pytest.mark.parametrize(("damage", "says"), DAMAGE, ids=[says for _, says in DAMAGE])
def test_what_is_missing_or_damaged_is_one_error_and_leaves_nothing(
    damage: Any, says: str, copy: Path, tmp_path: Path
) -> None:
    damage(copy)
    with pytest.raises(ModelError, match=says):
        export(copy, tmp_path / "made" / "out")
    assert not (tmp_path / "made").exists() or not list((tmp_path / "made").iterdir())


@pytest.mark.parametrize(
    ("family", "says"), [("qwen2", "attention has biases"), ("qwen3", "keys are normed")]
)
def test_a_shape_the_layout_lacks_is_refused(family: str, says: str, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "ours", family, layers=1)
    with pytest.raises(ModelError, match=says):
        export(tmp_path / "ours", tmp_path / "out")


def test_a_number_that_float16_lacks_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "ours", layers=1)
    (shard,) = (tmp_path / "ours").glob("*.safetensors")
    tensors = load_file(shard)
    tensors["model.norm.weight"][3] = 1e5
    save_shards(tensors.items(), tmp_path / "ours", 10**9)
    with pytest.raises(ModelError, match=r"model\.norm\.weight .* no numbers in float16"):
        export(tmp_path / "ours", tmp_path / "out", "float16")


def test_a_published_model_is_refused(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "nemotron")
    with pytest.raises(ModelError, match="vLLM takes a published model as it is"):
        export(folder, tmp_path / "out")


def test_the_comparison_tells_how_far_they_are_apart(source: Path, written: Path) -> None:
    told = compare(source, written, "x = 1\n")
    assert told.places == 5
    assert 0 < told.mean < told.most < 0.06
    assert told.same_first == 5


def test_the_command_tells_how_to_serve_it(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "for vllm"
    assert run(["models", "export", str(source), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert f"vllm serve '{out}'" in told
    assert "block diffusion was not trained into it" in told
    assert run(["models", "export", str(source), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "nothing is overwritten" in error
