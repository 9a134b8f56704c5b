"""The commands that made the embedded model, on tiny inputs."""

from __future__ import annotations

import json
import random
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiny import random_trunk

from diffing.edits import apply
from model.config import DenoiserConfig, ModelConfig
from model.denoiser import Denoiser
from model.evaluation.oracle import accepts
from model.gate import Gate
from model.training import calibrate, denoiser
from model.weights import Checkpoint, save_sharded


def test_unpermute_undoes_the_interleaving_of_rotary_halves() -> None:
    pytest.importorskip("gguf")
    from model.training.convert import unpermute

    heads, half = 2, 3
    rows = torch.arange(heads * 2 * half).view(-1, 1)
    # llama.cpp lays row (h, i, j) of the halves j at (h, i * 2 + j)
    stored = rows.view(heads, 2, half, 1).transpose(1, 2).reshape(-1, 1)
    assert torch.equal(unpermute(stored, heads), rows)


def test_repacked_blocks_keep_their_values() -> None:
    pytest.importorskip("gguf")
    import numpy as np
    from gguf import GGMLQuantizationType, dequantize, quantize

    from model.training.convert import repack
    from model.weights import unpack_q8

    weight = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    data = quantize(weight, GGMLQuantizationType.Q8_0)
    parts = repack(data, GGMLQuantizationType.Q8_0)
    expected = dequantize(data, GGMLQuantizationType.Q8_0)
    np.testing.assert_array_equal(unpack_q8(parts["q8"], parts["scale"]).numpy(), expected)


def test_blocks_show_their_anchor_and_hide_at_least_one_token() -> None:
    ids = torch.arange(100, 200)
    shape = DenoiserConfig((0,), 6, 8)
    starts, canvas, hidden = denoiser.sample_blocks(ids, shape, 50, random.Random(0))
    assert torch.equal(canvas[:, 0], ids[starts])
    assert not hidden[:, 0].any()
    assert hidden.any(1).all()
    assert (canvas[hidden] == 8).all()
    assert (canvas[~hidden] >= 100).all()
    assert 0.4 < float((hidden.sum(1) == 5).float().mean()) < 0.95


def test_a_block_sees_nothing_behind_its_start_but_itself() -> None:
    """The loss of a block must not depend on the text after it."""
    config = replace(random_trunk().config, max_positions=256)
    trunk = random_trunk(config)
    shape = DenoiserConfig((0, 2), 6, 8)
    from tiny import random_denoiser

    made = random_denoiser(trunk)
    ids = torch.randint(20, 90, (40,), generator=torch.Generator().manual_seed(1))
    changed = ids.clone()
    changed[30:] = 95
    outputs = []
    for text in (ids, changed):
        cache = trunk.new_cache(64)
        states = trunk.forward(text, cache)
        cache.length = len(text)
        canvas = torch.tensor([int(text[20]), 8, 8, 8, 8, 8])
        allowed = torch.cat(
            [(torch.arange(40) < 20).expand(6, -1), torch.ones(6, 6, dtype=torch.bool)], 1
        )
        positions = torch.arange(20, 26)
        outputs.append(made.forward(canvas, states[19:20].expand(6, -1), cache, positions, allowed))
    torch.testing.assert_close(outputs[0], outputs[1])
    assert shape.block == made.shape.block


def test_export_gives_back_what_was_trained(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(denoiser, "TRUNK_LAYERS", (0, 1))
    base = tmp_path / "base"
    base.mkdir()
    hidden, ffn = 64, 96
    shapes = {
        "self_attn.q_proj": (64, hidden),
        "self_attn.k_proj": (32, hidden),
        "self_attn.v_proj": (32, hidden),
        "self_attn.o_proj": (hidden, 64),
        "mlp.gate_proj": (ffn, hidden),
        "mlp.up_proj": (ffn, hidden),
        "mlp.down_proj": (hidden, ffn),
    }
    generator = torch.Generator().manual_seed(0)
    tensors = {
        "model.embed_tokens.weight": torch.randn(50, hidden, generator=generator),
        "model.norm.weight": torch.ones(hidden),
    }
    for layer in range(2):
        for name, shape in shapes.items():
            weight = torch.randn(*shape, generator=generator)
            tensors[f"model.layers.{layer}.{name}.weight"] = weight
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{layer}.{name}.weight"] = torch.ones(hidden)
    save_sharded(tensors, base)
    raw = {
        "model_type": "llama",
        "vocab_size": 50,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "redraft": {"name": "tiny", "special": {"mask": 8}},
    }
    (base / "config.json").write_text(json.dumps(raw))
    config = ModelConfig.load(base)
    module = denoiser.TrainableDenoiser(Checkpoint(base), config)
    run = tmp_path / "run"
    run.mkdir()
    torch.save({"module": module.state_dict(), "step": 7}, run / "state.pt")
    denoiser.export(Namespace(model=base, run=run))

    from model.transformer import Transformer

    config = ModelConfig.load(base)
    assert config.denoiser == DenoiserConfig((0, 1), denoiser.BLOCK, 8)
    with torch.inference_mode():
        trunk = Transformer.load(Checkpoint(base), config)
        loaded = Denoiser.load(trunk, base, "float32")
        trained = module.bind(trunk, config.denoiser)
        ids = torch.arange(10)
        cache = trunk.new_cache(16)
        states = trunk.forward(ids, cache)
        cache.commit(10)
        canvas, positions = torch.tensor([3, 8, 8]), torch.arange(10, 13)
        context = states[-1:].expand(3, -1)
        ours = loaded.forward(canvas, context, cache, positions)
        exact = trained.forward(canvas, context, cache, positions)
    assert float((ours - exact).abs().max() / exact.abs().max()) < 0.05


def test_a_line_being_typed_has_the_finished_file_as_its_answer() -> None:
    text = "".join(f"def function_{i}(argument):\n    return argument + {i}\n\n" for i in range(30))
    cases = [
        case
        for i in range(40)
        if (case := calibrate.typing_case({"path": "a.py", "text": text, "package": "p"}, i))
    ]
    assert len(cases) > 15
    for case in cases:
        request, answer = case.request, case.expected[0]
        assert answer.startswith(request.text[: request.cursor])
        assert answer.endswith(request.text[request.cursor :])
        assert len(answer) > len(request.text)
        missing = answer[request.cursor : len(answer) - len(request.text) + request.cursor]
        from diffing.edits import Edit

        after = apply(request.text, [Edit(request.cursor, request.cursor, missing)])
        assert after == answer
        assert accepts(request.text, after, case.expected)


def test_the_fitted_gate_ranks_by_what_separates() -> None:
    generator = torch.Generator().manual_seed(0)
    gain = torch.randn(400, generator=generator)
    noise = torch.randn(400, generator=generator)
    labels = (gain + 0.3 * torch.randn(400, generator=generator) > 0.5).float()
    fitted = calibrate.fit_logistic(torch.stack([gain, noise], 1), labels, ("gain", "noise"))
    gate: Gate = calibrate.gate_of({"draft": fitted})
    scores = [
        gate.probability("draft", {"gain": float(g), "noise": float(n)})
        for g, n in zip(gain, noise, strict=True)
    ]
    assert calibrate.area(scores, [bool(v) for v in labels]) > 0.9
    assert abs(fitted["weights"]["noise"][0]) < 0.3 * fitted["weights"]["gain"][0]
    assert abs(sum(scores) / 400 - float(labels.mean())) < 0.03  # calibrated on average


def test_area_counts_ties_as_half() -> None:
    assert calibrate.area([0.9, 0.5, 0.5, 0.1], [True, True, False, False]) == 0.875
    assert calibrate.area([0.9], [True]) == 0.5
