"""The trainer on tiny random models: exact resume, every loss, export, the three families."""

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
from tiny import real_tokenizer, save_checkpoint

from model.adapter import AdaptedCheckpoint
from model.config import ModelConfig, ModelError
from model.denoiser import Denoiser
from model.training.export import export
from model.training.lessons import Lesson, LessonWriter
from model.training.network import Network, Plan
from model.training.objective import Noise, draw_canvas, losses
from model.training.recipe import Loop, Recipe, RecipeError, read_recipe
from model.training.shards import ShardError, Shards, pack, write_shard
from model.training.train import STATE, load_trainer, train
from model.training.trainer import Trainer
from model.transformer import Transformer
from model.weights import Checkpoint

SOURCE = "".join(f"def function_{i}(value):\n    return value + {i}\n\n\n" for i in range(40))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    config = ModelConfig.load(Path(save_base(folder / "base")))
    writer, rng = LessonWriter(real_tokenizer(), config, 96), random.Random(0)
    starts = [rng.randrange(len(SOURCE) - 40) for _ in range(40)]
    gaps = [(start, start + rng.randint(3, 40)) for start in starts]
    lessons = [one for gap in gaps if (one := writer.gap("a.py", SOURCE, *gap, rng))]
    with_lines = [
        replace(one, lines=(4, 9, one.answer - 1), targets=(i % 4,))
        for i, one in enumerate(lessons)
    ]
    write_shard(with_lines, folder / "shards")
    return folder


def save_base(folder: Path, family: str = "llama") -> Path:
    save_checkpoint(folder, family)
    return folder


def recipe(**loop: object) -> Recipe:
    settings = {
        "steps": 6,
        "tokens": 150,
        "length": 96,
        "learning_rate": 3e-3,
        "warmup": 1,
        "save": 2,
    }
    plan = Plan("adapters", first=1, rank=4, alpha=8.0, denoiser=(2,), locate=True)
    return Recipe(plan, Noise(blocks=3, sizes=(4, 6)), Loop(**{**settings, **loop}))  # type: ignore[arg-type]


def trainer(folder: Path, how: Recipe, family: str = "llama") -> Trainer:
    base = folder / "base" if family == "llama" else save_base(folder / family, family)
    torch.manual_seed(0)
    network = Network(Checkpoint(base), ModelConfig.load(base), how.plan)
    return Trainer(network, how, Shards(folder / "shards"))


def test_a_resumed_run_has_the_same_losses_as_one_that_was_not_interrupted(
    shards: Path, tmp_path: Path
) -> None:
    whole = trainer(shards, recipe())
    expected = [whole.advance() for _ in range(6)]
    assert list(train(trainer(shards, recipe()), tmp_path, minutes=0.0)) == [1]
    again = trainer(shards, recipe())
    torch.manual_seed(99)
    again.restore(torch.load(tmp_path / STATE, weights_only=True))
    assert again.step == 1
    for step in range(1, 6):
        assert again.advance() == pytest.approx(expected[step], abs=1e-6)
    assert expected[0].keys() == {"next", "locate", "denoise"}


def test_every_loss_falls_on_lessons_seen_again_and_again(shards: Path) -> None:
    one = trainer(shards, recipe(steps=30, tokens=6000, learning_rate=1e-2, decay=0.01))
    before = one.evaluate(one.shards)
    for _ in range(12):
        one.advance()
    after = one.evaluate(one.shards)
    assert all(after[name] < before[name] - 0.01 for name in before), (before, after)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_training_sees_what_serving_computes(shards: Path, tmp_path: Path, family: str) -> None:
    """States of the training pass, packed, equal those of the cached one; padding and neighbours do not matter."""
    base = save_base(tmp_path / family, family)
    config = ModelConfig.load(base)
    network = Network(Checkpoint(base), config, Plan("full", denoiser=(), locate=False))
    trunk = Transformer.load(Checkpoint(base), config)
    ids = [torch.randint(20, 900, (n,)).tolist() for n in (9, 14, 5)]
    lessons = [Lesson("x", tuple(t), (1.0,) * len(t), 1) for t in ids]
    batch = pack(lessons, 16)
    mask = batch.causal_mask() | torch.eye(batch.tokens.shape[1], dtype=torch.bool)
    with torch.no_grad():
        states, _ = network.encode(batch.tokens, batch.positions, mask)
        for row, at, lesson in batch.lessons:
            cache = trunk.new_cache(16)
            alone = trunk.forward(torch.tensor(lesson.tokens), cache)
            torch.testing.assert_close(
                states[row, at : at + len(lesson)], alone, atol=1e-4, rtol=1e-4
            )


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_adapters_train_and_are_merged_when_loaded(
    shards: Path, tmp_path: Path, family: str
) -> None:
    how = recipe(steps=2)
    how = replace(how, plan=replace(how.plan, denoiser=()))
    one = trainer(shards, how, family)
    base = shards / ("base" if family == "llama" else family)
    one.advance()
    assert {n.split(".")[1] for n, _ in one.network.named_parameters() if "layers" in n} == {
        "1",
        "2",
    }
    config = export(one.state(), how.plan, base, tmp_path / "out")
    assert config.infill
    trunk = Transformer.load(AdaptedCheckpoint(tmp_path / "out"), config)
    plain = Transformer.load(Checkpoint(base), config)
    tokens = torch.arange(30, 60)
    with torch.no_grad():
        served = trunk.forward(tokens, trunk.new_cache(40))
        mask = torch.ones(1, 1, 30, 30, dtype=torch.bool).tril()
        trained, _ = one.network.encode(tokens[None], torch.arange(30)[None], mask)
        before = plain.forward(tokens, plain.new_cache(40))
    torch.testing.assert_close(served, trained[0], atol=1e-4, rtol=1e-4)
    assert float((served - before).abs().max()) > 1e-3


def test_training_goes_on_from_an_exported_adapter(shards: Path, tmp_path: Path) -> None:
    how = recipe(steps=4)
    first = trainer(shards, how)
    first.advance()
    once = tmp_path / "once"
    config = export(first.state(), how.plan, shards / "base", once)
    network = Network(AdaptedCheckpoint(once), config, how.plan)
    second = Trainer(network, how, Shards(shards / "shards"))
    second.advance()
    twice = export(second.state(), how.plan, once, tmp_path / "twice")
    tokens = torch.arange(30, 50)
    served = Transformer.load(AdaptedCheckpoint(tmp_path / "twice"), twice)
    mask = torch.ones(1, 1, 20, 20, dtype=torch.bool).tril()
    with torch.no_grad():
        trained, _ = network.encode(tokens[None], torch.arange(20)[None], mask)
        loaded = served.forward(tokens, served.new_cache(32))
    torch.testing.assert_close(loaded, trained[0], atol=1e-4, rtol=1e-4)


def test_the_exported_denoiser_computes_what_was_trained(shards: Path, tmp_path: Path) -> None:
    how = Recipe(
        Plan("frozen", denoiser=(0, 2), locate=False), Noise(blocks=4, sizes=(6,)), recipe().loop
    )
    one = trainer(shards, how)
    one.advance()
    config = export(one.state(), how.plan, shards / "base", tmp_path)
    assert not config.infill
    assert config.denoiser is not None
    assert config.denoiser.trunk_layers == (0, 2)
    trunk = Transformer.load(Checkpoint(tmp_path), config)
    loaded = Denoiser.load(trunk, tmp_path, "float32")
    assert loaded is not None
    ids, canvas, positions = torch.arange(30, 40), torch.tensor([3, 8, 8]), torch.arange(10, 13)
    cache = trunk.new_cache(16)
    with torch.no_grad():
        states = trunk.forward(ids, cache)
        cache.commit(10)
        context = states[-1:].expand(3, -1)
        served = loaded.forward(canvas, context, cache, positions)
        mask = torch.ones(1, 1, 10, 10, dtype=torch.bool).tril()
        clean, past = one.network.encode(ids[None], torch.arange(10)[None], mask)
        over = torch.ones(1, 1, 3, 13, dtype=torch.bool)
        trained = one.network.denoise(
            canvas[None], clean[:, -1:].expand(1, 3, -1), past, positions[None], over
        )
    assert float((served - trained[0]).abs().mean() / trained.abs().mean()) < 0.08


def test_whole_weights_are_exported_to_within_eight_bits(shards: Path, tmp_path: Path) -> None:
    how = Recipe(Plan("full", locate=False), Noise(), recipe().loop)
    one = trainer(shards, how)
    one.advance()
    config = export(one.state(), how.plan, shards / "base", tmp_path)
    trunk = Transformer.load(Checkpoint(tmp_path), config)
    tokens = torch.arange(30, 60)
    mask = torch.ones(1, 1, 30, 30, dtype=torch.bool).tril()
    with torch.no_grad():
        served = trunk.forward(tokens, trunk.new_cache(40))
        trained, _ = one.network.encode(tokens[None], torch.arange(30)[None], mask)
    assert float((served - trained[0]).abs().mean()) < 0.05


def test_a_block_sees_nothing_behind_its_start_but_itself(shards: Path) -> None:
    one = trainer(shards, recipe())
    lesson = max((one.shards[i] for i in range(len(one.shards))), key=len)
    batch = pack([lesson], 96)
    noise = Noise(blocks=1, sizes=(4,), on_answer=0.0, all_hidden=1.0)
    canvas = draw_canvas(batch, noise, 8, 97, random.Random(3))
    assert canvas is not None
    last = int(canvas.places.max())
    assert last < len(lesson) - 2
    changed = replace(batch, tokens=batch.tokens.clone())
    changed.tokens[0, last + 1 :] = 77
    results = [
        losses(one.network, b, noise, random.Random(3)).means()["denoise"] for b in (batch, changed)
    ]
    assert results[0] == pytest.approx(results[1], abs=1e-6)


def test_blocks_show_their_first_token_and_complements_hide_what_was_shown() -> None:
    lesson = Lesson("x", tuple(range(100, 160)), (1.0,) * 60, 30)
    noise = Noise(blocks=40, sizes=(6,), all_hidden=0.0, drafted=0.0)
    canvas = draw_canvas(pack([lesson], 64), noise, 8, 97, random.Random(0))
    assert canvas is not None
    for block in range(0, 40, 2):
        mine, other = (canvas.block[0] == block + i for i in (0, 1))
        assert torch.equal(canvas.true[0, mine], canvas.true[0, other])
        hidden, shown = canvas.shown[0, mine] == 8, canvas.shown[0, other] == 8
        assert not hidden[0]
        assert not shown[0]
        assert (hidden | shown)[1:].all()
        if shown.any():
            assert not (hidden & shown).any()
    asked = canvas.weights[0] > 0
    assert torch.equal(asked, canvas.shown[0] == 8)


def test_shards_give_back_what_was_written_and_every_lesson_once(tmp_path: Path) -> None:
    lessons = [
        Lesson("a", (1, 2, 49_151), (0.0, 0.15, 1.0), 2, (0, 1), (2,)),
        Lesson("b", (4, 5), (0.0, 0.5), 1),
    ]
    write_shard(lessons, tmp_path / "one")
    write_shard(lessons[::-1], tmp_path / "two")
    found = Shards(tmp_path)
    assert [found[i] for i in range(4)] == [*lessons, *lessons[::-1]]
    order = found.order(0)
    assert sorted(next(order) for _ in range(4)) == [0, 1, 2, 3]
    with pytest.raises(ShardError, match="no shards"):
        Shards(tmp_path / "none")
    (tmp_path / "one" / "tokens.npy").write_bytes(b"garbage")
    with pytest.raises(ShardError, match="damaged"):
        Shards(tmp_path)


def test_every_recipe_of_ours_reads_and_a_wrong_one_says_what_is_wrong(tmp_path: Path) -> None:
    folder = Path(read_recipe.__code__.co_filename).parent / "recipes"
    for path in folder.glob("*.toml"):
        assert read_recipe(path.stem).loop.steps > 0
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[loop]\nsteps = 3\nspeed = 9\n")
    with pytest.raises(RecipeError, match="knows no speed"):
        read_recipe(str(wrong))
    wrong.write_text('[plan]\ntune = "most"\n[loop]\nsteps = 3\n')
    with pytest.raises(RecipeError, match="tune is one of"):
        read_recipe(str(wrong))
    with pytest.raises(RecipeError, match="ours are"):
        read_recipe("nothing")


def test_a_damaged_adapter_is_refused(shards: Path, tmp_path: Path) -> None:
    how = recipe()
    one = trainer(shards, how)
    export(one.state(), how.plan, shards / "base", tmp_path)
    about = tmp_path / "adapter_config.json"
    raw = json.loads(about.read_text())
    about.write_text(json.dumps({**raw, "r": 0}))
    with pytest.raises(ModelError, match="does not describe an adapter"):
        AdaptedCheckpoint(tmp_path)
    about.write_text(json.dumps(raw))
    (tmp_path / "adapter_model.safetensors").write_bytes(b"short")
    with pytest.raises(ModelError, match="truncated or damaged"):
        AdaptedCheckpoint(tmp_path)


def test_a_denoiser_that_is_there_is_trained_further(shards: Path, tmp_path: Path) -> None:
    plan = Plan("frozen", denoiser=(0, 2), locate=False)
    one = trainer(shards, Recipe(plan, Noise(blocks=4, sizes=(6,)), recipe().loop))
    one.advance()
    export(one.state(), plan, shards / "base", tmp_path / "out")
    how = tmp_path / "more.toml"
    text = '[plan]\ntune = "frozen"\ndenoiser = [{}]\nlocate = false\n[loop]\nsteps = 3\n'
    words = {"device": "cpu", "shards": shards / "shards", "model": tmp_path / "out"}
    stored = Checkpoint(tmp_path / "out", "denoiser").get("denoiser.fuse.weight")
    for layers, same in (("0, 2", True), ("0, 1", False)):
        how.write_text(text.format(layers))
        network = load_trainer(Namespace(**words), read_recipe(str(how))).network
        assert torch.equal(network.fuse.weight, stored) is same
