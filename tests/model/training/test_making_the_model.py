"""The commands that made the embedded model, on tiny inputs."""

from __future__ import annotations

import pytest
import torch

from diffing.edits import apply
from model.evaluation.oracle import accepts
from model.gate import Gate
from model.training import calibrate


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
