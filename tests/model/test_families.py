"""Every open family: a tiny random checkpoint in its published layout is recognised and computes what it must."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from published_checkpoints import LAYOUTS, SHARED, save_published
from torch import Tensor

from model.config import ModelError
from model.families import FAMILIES, open_published
from model.published import QWEN_SPLIT
from model.transformer import Transformer

pytestmark = pytest.mark.usefixtures("one_thread")

TOKENS = [5, 17, 3, 88, 41, 41, 9, 60, 2, 33, 70, 11, 12]
N = len(TOKENS)


def patterns() -> dict[str, Tensor]:
    place = torch.arange(N)
    blocks = place // 4
    canvas = place >= 8
    return {
        "causal": place[:, None] >= place[None, :],
        "causal context, open canvas": (place[:, None] >= place[None, :])
        | (canvas[:, None] & canvas[None, :]),
        "block-causal": blocks[:, None] >= blocks[None, :],
        "open": torch.ones(N, N, dtype=torch.bool),
    }


@pytest.mark.parametrize("name", LAYOUTS)
def test_logits_are_the_reference_s_under_every_attention_pattern(
    name: str, tmp_path: Path
) -> None:
    folder, reference = save_published(tmp_path, name)
    found = open_published(folder)
    assert found.family.name == SHARED.get(name, name)
    with torch.inference_mode():
        trunk = Transformer.load(found.weights(), found.config)
        for about, allowed in patterns().items():
            states = trunk.forward(torch.tensor(TOKENS), trunk.new_cache(N), allowed=allowed)
            expected = reference(TOKENS, allowed)
            assert float(expected.std()) > 0.1
            torch.testing.assert_close(
                trunk.head(states),
                expected,
                atol=1e-4,
                rtol=1e-4,
                msg=lambda m, a=about: f"{a}: {m}",
            )


@pytest.mark.parametrize("name", LAYOUTS)
def test_ids_come_from_the_checkpoint_s_files(name: str, tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, name)
    layout, found = LAYOUTS[name], open_published(folder)
    ids = found.tokenizer.control
    assert list(ids) == list(layout.control)
    (mask,) = (i for text, i in ids.items() if "mask" in text.lower() or "SPECIAL" in text)
    assert found.mask == mask
    assert ids[layout.roles["eos"]] in found.ends
    assert mask not in found.ends
    assert mask in found.forbidden
    assert max(ids.values()) + 1 in found.forbidden  # a row of the embedding that no token has
    assert not set(found.forbidden) & {found.expand, *found.ends}
    assert found.expand == ids.get("<|expand|>")
    assert found.delete == (ids["<|endoftext|>"] if name == "dreamon" else None)


def test_block_sizes_come_from_the_checkpoint_where_it_tells_them(tmp_path: Path) -> None:
    sizes = {
        name: open_published(save_published(tmp_path / name, name)[0]).block for name in LAYOUTS
    }
    assert sizes["nemotron"] == 8  # block_size
    assert sizes["fast-dllm-v2"] == 8  # bd_size
    assert sizes["sdar"] == sizes["stable-diffcoder"] == 4  # the published default
    assert sizes["bd3lm"] == 32


def test_a_block_size_in_the_name_counts_where_the_configuration_is_silent(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "sdar")
    renamed = folder.rename(tmp_path / "SDAR-1.7B-Chat-b32")
    assert open_published(renamed).block == 32
    rewrite(renamed, block_size=8)
    assert open_published(renamed).block == 8
    rewrite(renamed, "redraft.json", name="JetLM/SDAR-1.7B-Chat-b64", block=-1)
    assert "a block of -1" in message(renamed)


def test_a_relative_of_dream_that_decodes_otherwise_is_refused(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "dream")
    rewrite(folder, architectures=["DreamForCausalLM"], block_size=32)
    assert "DreamForCausalLM" in message(folder)


def test_every_family_of_the_table_is_tried() -> None:
    assert {family.name for family in FAMILIES} == {SHARED.get(name, name) for name in LAYOUTS}


def test_text_that_looks_like_a_control_token_is_text(tmp_path: Path) -> None:
    tokenizer = open_published(save_published(tmp_path, "sdar")[0]).tokenizer
    text = "x = '<|MASK|>' # <|im_end|>\n\té🙂"
    ids = tokenizer.encode(text)
    assert not set(ids) & tokenizer.control_ids
    assert tokenizer.decode(ids) == text
    marked = tokenizer.encode_template("a<|im_end|>b")
    assert marked == [
        *tokenizer.encode("a"),
        tokenizer.control["<|im_end|>"],
        *tokenizer.encode("b"),
    ]


def test_a_vocabulary_without_a_tokenizer_file_is_split_as_qwen_s(tmp_path: Path) -> None:
    qwen = pytest.importorskip("transformers.models.qwen2.tokenization_qwen2")
    assert qwen.PRETOKENIZE_REGEX == QWEN_SPLIT
    tokenizer = open_published(save_published(tmp_path, "dream")[0]).tokenizer
    assert tokenizer.decode(tokenizer.encode("return x\n  é🙂 12")) == "return x\n  é🙂 12"
    assert len(tokenizer.encode("return")) == 1


@pytest.mark.parametrize("name", ["dream", "sdar"])
def test_healing_leaves_what_the_tokenizer_would_really_make(name: str, tmp_path: Path) -> None:
    tokenizer = open_published(save_published(tmp_path, name)[0]).tokenizer
    assert tokenizer.heal("x = ret") == ("x =", b" ret")
    assert tokenizer.heal("def f():\n    ") == ("def f():\n   ", b" ")
    assert tokenizer.heal("x = 1\n") == ("x = 1\n", b"")
    assert tokenizer.heal("") == ("", b"")


def rewrite(folder: Path, file: str = "config.json", **keys: object) -> None:
    path = folder / file
    raw = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**raw, **keys}))


def message(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        open_published(folder).weights()
    return str(caught.value)


def test_what_fits_no_family_is_named(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "sdar")
    rewrite(folder, model_type="mamba", architectures=["MambaForCausalLM"])
    told = message(folder)
    for part in ("'mamba'", "MambaForCausalLM", "lm_head.weight", "sdar", "llada"):
        assert part in told


def test_a_plain_causal_model_is_refused(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "open-dcoder")
    raw = json.loads((folder / "tokenizer.json").read_text())
    raw["added_tokens"] = [row for row in raw["added_tokens"] if row["content"] != "[MASK]"]
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    assert "not a diffusion model" in message(folder)


def test_two_families_with_the_same_files_are_told_apart_by_name_or_by_hand(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "bd3lm")
    plain = folder.rename(folder.with_name("Qwen3"))
    assert "bd3lm, mdlm" in message(plain)
    rewrite(plain, "redraft.json", family="mdlm")
    assert open_published(plain).family.attention == "bidirectional"
    rewrite(plain, "redraft.json", family="bd3lm", block=16)
    assert open_published(plain).block == 16
    rewrite(plain, "redraft.json", family="sdar")
    assert "bd3lm, mdlm" in message(plain)


def test_tensors_that_would_be_left_out_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder, _ = save_published(tmp_path, "sdar")
    shard = folder / "model-00001-of-00002.safetensors"
    save_file({**load_file(shard), "model.layers.0.mlp.experts.weight": torch.ones(2)}, shard)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"]["model.layers.0.mlp.experts.weight"] = shard.name
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "mlp.experts" in message(folder)


def test_a_mask_outside_the_embeddings_is_refused(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "dream")
    rewrite(folder, mask_token_id=4000)
    assert "4000" in message(folder)


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "sdar")
    raw = json.loads((folder / "tokenizer.json").read_text())
    raw["model"]["vocab"]["▁the"] = 600  # a piece of SentencePiece
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    assert "not a byte-level one" in message(folder)


def test_begin_and_end_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "dream")
    rewrite(folder, bos_token_id=1, eos_token_id=[2, 3])
    found = open_published(folder)
    assert found.begin == found.tokenizer.control["<|beginoftext|>"]
    assert found.end == found.tokenizer.control["<|endoftext|>"]
    assert found.ends > {2, 3, found.end}


@pytest.mark.parametrize(
    ("file", "says"),
    [("config.json", "config.json is missing"), ("vocab.json", "no readable tokenizer")],
)
def test_missing_files_are_named(file: str, says: str, tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "dream")
    (folder / file).unlink()
    assert says in message(folder)


def test_an_architecture_of_the_family_that_cannot_be_run_is_refused(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "llada")
    rewrite(folder, block_type="sequential")
    assert "block_type" in message(folder)
