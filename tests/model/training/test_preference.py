"""KTO of a tiny random model: the loss to the digit, what it moves, and what stays as it was."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiny import save_checkpoint

from model.adapter import AdaptedCheckpoint
from model.config import ModelConfig
from model.denoiser import STEM
from model.evaluation.miniature import CONFIG, random_trunk
from model.training.export import export
from model.training.lessons import Lesson
from model.training.network import POINTER, Network, Plan
from model.training.objective import Noise
from model.training.preference import (
    PreferenceTrainer,
    draw_answers,
    draw_hidden,
    log_likelihoods,
    mismatched,
)
from model.training.recipe import Loop, Preference, Recipe, RecipeError
from model.training.shards import Shards, pack, write_shard
from model.training.train import STATE, train
from model.weights import Checkpoint

SMALL = replace(CONFIG, special={"mask": 8, "endoftext": 0})
ANSWERS = {True: (40, 41, 42, 43, 44, 45, 0), False: (60, 61, 62, 63, 0)}
LINES = (2, 5, 9)
BOTH = {"next": 1.0, "denoise": 0.5, "locate": 1.0}


class Weights:
    """The tensors of a tiny random model by their names in a checkpoint."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(3)
        trunk = random_trunk(SMALL, 3)
        c = SMALL
        self.tensors = {
            "model.embed_tokens.weight": trunk.embedding,
            "model.norm.weight": trunk.norm,
        }
        kv = c.num_kv_heads * c.head_dim
        shapes = {
            "self_attn.q_proj": (c.hidden_size, c.hidden_size),
            "self_attn.k_proj": (kv, c.hidden_size),
            "self_attn.v_proj": (kv, c.hidden_size),
            "self_attn.o_proj": (c.hidden_size, c.hidden_size),
            "mlp.gate_proj": (c.intermediate_size, c.hidden_size),
            "mlp.up_proj": (c.intermediate_size, c.hidden_size),
            "mlp.down_proj": (c.hidden_size, c.intermediate_size),
        }
        for i in range(c.num_layers):
            stem = f"model.layers.{i}"
            for name, (out, into) in shapes.items():
                weight = torch.randn(out, into, generator=generator) / into**0.5
                self.tensors[f"{stem}.{name}.weight"] = weight
            for name in ("input_layernorm", "post_attention_layernorm"):
                self.tensors[f"{stem}.{name}.weight"] = torch.ones(c.hidden_size)

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def get(self, name: str) -> torch.Tensor:
        return self.tensors[name]


def lessons(count: int = 24) -> Iterator[Lesson]:
    """Questions of noise with a good or a bad answer, and good silences."""
    rng = random.Random(5)
    for number in range(count):
        question = tuple(rng.randrange(17, 39) for _ in range(10))
        silent = number % 3 == 2
        good = silent or number % 3 == 0
        answer = (0,) if silent else ANSWERS[good]
        target = len(LINES) if silent else number % 2
        weights = (0.0,) * 10 + (1.0,) * len(answer)
        kind = "silence" if silent else "completion"
        yield Lesson(kind, question + answer, weights, 10, LINES, (target,), good)


def recipe(**loop: object) -> Recipe:
    settings: dict[str, object] = {"steps": 40, "tokens": 140, "length": 48, "rows": 3}
    settings |= {
        "learning_rate": 5e-3,
        "warmup": 1,
        "save": 2,
        "weights": BOTH,
        "weight_decay": 0.0,
    }
    plan = Plan(
        "adapters", first=1, rank=4, alpha=8.0, denoiser=(0, 2), stack="adapters", locate=True
    )
    return Recipe(plan, Noise(), Loop(**{**settings, **loop}), Preference(beta=0.2, block=4))  # type: ignore[arg-type]


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    write_shard(lessons(), tmp_path / "shards")
    return Shards(tmp_path / "shards")


def trainer(shards: Shards, how: Recipe | None = None) -> PreferenceTrainer:
    how = how or recipe()
    torch.manual_seed(0)
    return PreferenceTrainer(Network(Weights(), SMALL, how.plan), how, shards)  # type: ignore[arg-type]


def stirred(one: PreferenceTrainer, size: float = 0.05) -> PreferenceTrainer:
    """A policy that is no longer its reference."""
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for value in one.trained:
            value.add_(size * torch.randn(value.shape, generator=generator))
    return one


def plain_log_likelihood(
    network: Network, lesson: Lesson, blocks: list[tuple[int, set[int], float]]
) -> float:
    """The same by one plain pass each: no packing, no chunks. `blocks` are (first place, hidden offsets, weight)."""
    tokens = torch.tensor([lesson.tokens])
    positions = torch.arange(len(lesson))[None]
    causal = torch.ones(1, 1, len(lesson), len(lesson), dtype=torch.bool).tril()
    states, past = network.encode(tokens, positions, causal)
    logs = network.logits(states[0]).log_softmax(-1)
    total = sum(float(logs[i - 1, lesson.tokens[i]]) for i in range(10, len(lesson)))
    places = torch.tensor(LINES)
    assert network.locate is not None
    pointed = network.locate(states[0, places[-1]], states[0, places]).log_softmax(-1)
    total += float(pointed[lesson.targets[0]])
    for start, hidden, weight in blocks:
        size = min(4, len(lesson) - start)
        shown = [8 if i in hidden else lesson.tokens[start + i] for i in range(size)]
        before = [(keys[:, :, :start], values[:, :, :start]) for keys, values in past]
        context = states[:, start - 1 : start].expand(1, size, -1)
        mask = torch.ones(1, 1, size, start + size, dtype=torch.bool)
        at = torch.arange(start, start + size)[None]
        out = network.denoise(torch.tensor([shown]), context, before, at, mask)
        found = network.logits(out[0]).log_softmax(-1)
        total += 0.5 * weight * sum(float(found[i, lesson.tokens[start + i]]) for i in hidden)
    return total


def test_the_loss_is_that_of_a_plain_reference(shards: Shards) -> None:
    one = stirred(trainer(shards))
    chosen = [shards[i] for i in range(6)]
    found = one.score(chosen, random.Random(7))
    rng = random.Random(7)
    parts: list[tuple[list[Lesson], list[list[tuple[int, set[int], float]]]]] = []
    others = list(mismatched(chosen, 48))
    for group in (others, chosen):
        ordered = sorted(group, key=len, reverse=True)
        drawn = []
        for lesson in ordered:
            blocks, places = [], list(range(10, len(lesson)))
            while places:
                for hidden, weight in draw_hidden(len(places[:3]), 1, rng):
                    blocks.append((places[0] - 1, hidden, weight))
                places = places[3:]
            drawn.append(blocks)
        parts.append((ordered, drawn))

    def ratios(part: tuple[list[Lesson], list[list[tuple[int, set[int], float]]]]) -> torch.Tensor:
        with torch.no_grad():
            now = [plain_log_likelihood(one.network, a, b) for a, b in zip(*part, strict=True)]
            with one.as_before():
                old = [plain_log_likelihood(one.network, a, b) for a, b in zip(*part, strict=True)]
        return torch.tensor(now, dtype=torch.float64) - torch.tensor(old, dtype=torch.float64)

    point = max(0.0, float(ratios(parts[0]).mean()))
    loss = 0.0
    bad_weight = 2.0  # 16 good answers and 8 bad ones
    for lesson, ratio in zip(parts[1][0], ratios(parts[1]).tolist(), strict=True):
        sign = 1 if lesson.desirable else -1
        value = 1 / (1 + torch.exp(torch.tensor(-0.2 * sign * (ratio - point)))).item()
        loss += (1 if lesson.desirable else bad_weight) * (1 - value)
    assert abs(float(ratios(parts[1]).abs().max())) > 0.1
    assert float(found.sums["kto"]) / 6 == pytest.approx(loss / 6, abs=1e-5)
    assert float(found.sums["point"]) == pytest.approx(point, abs=1e-5)


def test_a_policy_that_has_not_moved_is_its_reference(shards: Shards) -> None:
    found = trainer(shards).evaluate(shards)
    assert found["desirable"] == found["undesirable"] == found["point"] == 0.0
    # lambda_D = 1 for 16 good ones, lambda_U = 2 for 8 bad ones, and half of each
    assert found["kto"] == pytest.approx((16 * 0.5 + 8 * 1.0) / 24)


def test_good_answers_rise_against_bad_ones_and_nowhere_where_silence_was_right(
    shards: Shards,
) -> None:
    one = trainer(shards)
    frozen = [value.clone() for value in one.reference]
    silences = [shards[i] for i in range(len(shards)) if shards[i].kind == "silence"]
    before = chance_of_nowhere(one.network, silences)
    for _ in range(16):
        one.advance()
    after = one.evaluate(shards)
    assert after["desirable"] > 1.0 > -1.0 > after["undesirable"]
    assert after["kto"] < 0.5
    assert chance_of_nowhere(one.network, silences) > before + 0.1
    assert all(torch.equal(a, b) for a, b in zip(frozen, one.reference, strict=True))
    with one.as_before():
        assert chance_of_nowhere(one.network, silences) == pytest.approx(before)


def chance_of_nowhere(network: Network, silences: list[Lesson]) -> float:
    batch = pack([replace(one, weights=(0.0,) * len(one)) for one in silences], 48)
    with torch.no_grad():
        found = log_likelihoods(network, batch, None, {"next": 0.0, "locate": 1.0})
    return float(found.exp().mean())


def test_shared_draws_take_the_variance_out_of_the_ratio(shards: Shards) -> None:
    one = stirred(trainer(shards), 0.01)
    batch = pack([shards[0], shards[1]], 48)
    weights = {"next": 0.0, "locate": 0.0, "denoise": 1.0}

    def bound(seed: int, *, policy: bool) -> torch.Tensor:
        canvas = draw_answers(batch, Preference(block=6), 8, random.Random(seed))
        if policy:
            return log_likelihoods(one.network, batch, canvas, weights)
        with one.as_before():
            return log_likelihoods(one.network, batch, canvas, weights)

    with torch.no_grad():
        policy = [bound(seed, policy=True) for seed in range(30)]
        shared = torch.stack([p - bound(seed, policy=False) for seed, p in enumerate(policy)])
        alone = torch.stack([p - bound(seed + 100, policy=False) for seed, p in enumerate(policy)])
    assert (shared.var(0) < 0.2 * alone.var(0)).all(), (shared.var(0), alone.var(0))


def test_draws_estimate_the_bound_without_bias_and_complements_hide_every_token() -> None:
    def log_p(hidden: frozenset[int]) -> float:
        return -sum(i * len(hidden) ** 0.5 for i in hidden)

    size = 4
    exact = 0.0
    for count in range(1, size + 1):
        sets = [frozenset(s) for s in itertools.combinations(range(1, size + 1), count)]
        exact += size / count * sum(map(log_p, sets)) / len(sets) / size
    rng, drawn = random.Random(0), []
    for _ in range(4000):
        parts = list(draw_hidden(size, 1, rng))
        assert sum(weight * len(part) for part, weight in parts) == pytest.approx(size)
        assert parts[1][0] | parts[2][0] == parts[0][0] == {1, 2, 3, 4}
        assert not parts[1][0] & parts[2][0]
        drawn.append(sum(weight * log_p(frozenset(part)) for part, weight in parts))
    assert sum(drawn) / len(drawn) == pytest.approx(exact, rel=0.01)
    assert list(draw_hidden(1, 3, rng)) == [({1}, 1.0)]
    assert list(draw_hidden(3, 0, rng)) == [({1, 2, 3}, 1.0)]


def test_a_resumed_run_goes_on_exactly_with_the_same_reference(
    shards: Shards, tmp_path: Path
) -> None:
    whole = trainer(shards)
    expected = [whole.advance() for _ in range(5)]
    assert list(train(trainer(shards), tmp_path, until=2)) == [1, 2]
    again = stirred(trainer(shards))
    again.reference = [value + 1 for value in again.reference]
    again.restore(torch.load(tmp_path / STATE, weights_only=True))
    assert [again.advance() for _ in range(3)] == [pytest.approx(e, abs=1e-6) for e in expected[2:]]
    assert all(torch.equal(a, b) for a, b in zip(whole.reference, again.reference, strict=True))
    assert any(abs(losses["desirable"]) > 0.01 for losses in expected)


def test_a_question_with_the_answer_of_another() -> None:
    first = Lesson("a", (20, 21, 22, 30), (0, 0, 0, 1.0), 3, (0, 2), (0,), True)
    second = Lesson("b", (23, 24, 31, 32), (0, 0, 1.0, 1.0), 2, (0, 1, 1), (3,), False)
    one, other = mismatched([first, second], 9)
    assert one.tokens == (20, 21, 22, 31, 32)
    assert one.targets == (2,)
    assert other.tokens == (23, 24, 30)
    assert other.targets == (0,)
    assert [len(lesson) for lesson in mismatched([first, second], 4)] == [3]
    assert not list(mismatched([first], 9))


def test_lessons_without_a_label_are_refused(tmp_path: Path) -> None:
    write_shard([replace(one, desirable=None) for one in lessons(3)], tmp_path)
    with pytest.raises(RecipeError, match="desirable or undesirable"):
        trainer(Shards(tmp_path))


def test_what_no_part_answers_is_passed_over(shards: Shards) -> None:
    how = recipe()
    one = trainer(shards, replace(how, plan=replace(how.plan, locate=False)))
    where = replace(shards[0], weights=(0.0,) * len(shards[0]))
    assert not one.asked(where)
    assert one.asked(shards[0])
    assert trainer(shards).asked(where)


def test_an_exported_tuning_is_what_the_next_one_starts_from(tmp_path: Path) -> None:
    """A denoiser's adapters are worked into it, the trunk's lie beside it; filling in stays the model's own way."""
    torch.manual_seed(0)
    base, made, out = (tmp_path / name for name in ("base", "made", "out"))
    asked = [replace(one, tokens=tuple(t + 100 for t in one.tokens)) for one in lessons(6)]
    write_shard(asked, tmp_path / "shards")
    whole = recipe()
    plan = Plan("frozen", denoiser=(0, 2), locate=True)
    shape = save_checkpoint(base)
    network = Network(Checkpoint(base), shape, plan)
    state = {"network": {n: v.detach() for n, v in network.named_parameters() if v.requires_grad}}
    config = export(state, plan, base, made)
    assert config.denoiser is not None
    one = PreferenceTrainer(served(made, whole), recipe(tokens=60), Shards(tmp_path / "shards"))
    reference = [value.clone() for value in one.trained]
    one.advance()
    tuned = export(one.state(), whole.plan, made, out, taught=False)
    assert not tuned.infill
    batch, hidden = pack(asked, 48), {"denoise": 1.0, "next": 0.0, "locate": 0.0}
    canvas = draw_answers(batch, Preference(), 8, random.Random(0))
    with torch.no_grad():
        policy = log_likelihoods(one.network, batch, canvas, hidden)
        loaded = log_likelihoods(served(out, whole), batch, canvas, hidden)
        with one.as_before():
            before = log_likelihoods(one.network, batch, canvas, hidden)
    assert float((policy - before).abs().mean()) > 0.5
    off = float((loaded - policy).abs().mean())
    assert off < 0.2  # matrices of the denoiser are rounded to 8 bits
    assert all(torch.equal(a, b) for a, b in zip(reference, one.reference, strict=True))


def served(folder: Path, how: Recipe) -> Network:
    """A network over a model folder as the command loads it."""
    parts = (Checkpoint(folder, STEM), Checkpoint(folder, POINTER))
    config = ModelConfig.load(folder)
    return Network(AdaptedCheckpoint(folder), config, how.plan, torch.float32, *parts)
