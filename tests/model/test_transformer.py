from __future__ import annotations

import pytest
import torch

from model.config import ModelConfig
from model.evaluation.miniature import CONFIG, random_trunk
from model.transformer import Transformer
from model.weights import Checkpoint

TOKENS = torch.tensor([5, 17, 3, 88, 41, 41, 9, 60, 2, 33])


@torch.inference_mode()
def test_chunks_give_the_states_of_one_pass() -> None:
    trunk = random_trunk()
    whole = trunk.forward(TOKENS, trunk.new_cache(16))
    cache = trunk.new_cache(2)  # grows on the way
    parts = []
    for chunk in TOKENS.split([4, 1, 5]):
        parts.append(trunk.forward(chunk, cache))
        cache.commit(len(chunk))
    torch.testing.assert_close(torch.cat(parts), whole, atol=1e-5, rtol=1e-4)
    assert cache.length == 10


@torch.inference_mode()
def test_uncommitted_rows_leave_no_trace() -> None:
    trunk = random_trunk()
    cache = trunk.new_cache(16)
    trunk.forward(TOKENS[:4], cache)
    cache.commit(4)
    trunk.forward(torch.tensor([90, 91, 92]), cache)  # a canvas that is thrown away
    after = trunk.forward(TOKENS[4:], cache)
    torch.testing.assert_close(
        after, trunk.forward(TOKENS, trunk.new_cache(16))[4:], atol=1e-5, rtol=1e-4
    )


@torch.inference_mode()
def test_bidirectional_pattern_lets_early_rows_see_late_ones() -> None:
    trunk = random_trunk()
    allowed = torch.ones(3, 3, dtype=torch.bool)
    first = trunk.forward(torch.tensor([1, 2, 3]), trunk.new_cache(4), allowed=allowed)
    second = trunk.forward(torch.tensor([1, 2, 4]), trunk.new_cache(4), allowed=allowed)
    assert not torch.allclose(first[0], second[0], atol=1e-3)
    causal = [trunk.forward(torch.tensor(t), trunk.new_cache(4))[0] for t in ([1, 2, 3], [1, 2, 4])]
    torch.testing.assert_close(causal[0], causal[1])


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_same_logits_as_transformers(kind: str, tmp_path) -> None:
    transformers = pytest.importorskip("transformers")
    shape = dict(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=256,
        tie_word_embeddings=False,
    )
    config = transformers.AutoConfig.for_model(kind, **shape)
    torch.manual_seed(3)
    reference = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.normal_(0, 0.3)  # default initial values are too small to tell shapes apart
    reference.save_pretrained(tmp_path)
    with torch.inference_mode():
        expected = reference(TOKENS[None]).logits[0]
        ours = Transformer.load(Checkpoint(tmp_path), ModelConfig.load(tmp_path))
        logits = ours.head(ours.forward(TOKENS, ours.new_cache(16)))
    torch.testing.assert_close(logits, expected, atol=2e-3, rtol=1e-3)


def test_head_dim_and_groups_come_from_the_config() -> None:
    cache = random_trunk().new_cache(7)
    assert cache.keys.shape == (CONFIG.num_layers, CONFIG.num_kv_heads, 7, CONFIG.head_dim)
