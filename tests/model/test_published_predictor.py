"""Open diffusion models behind the one protocol: prompts, modes, edits, and which model a name means."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from published_checkpoints import LAYOUTS, save_published
from tiny import save_checkpoint

from diffing.edits import apply
from lsp_server import engine
from model.answer import answer
from model.canvas import Answer
from model.chat import load_asking
from model.config import ModelError
from model.context import ContextBuilder
from model.families import FAMILIES, open_published
from model.library import Choice, choose, chosen, folder_of, load, models_folder, pulled
from model.protocol import Prediction, Predictor, Request, Stop
from model.published_predictor import NOT_SERVED, PublishedPredictor, whole_lines
from model.published_prompt import fenced, infill_prompt, instruction

pytestmark = pytest.mark.usefixtures("one_thread")

FILLS = ("nemotron", "stable-diffcoder", "mdlm", "llada", "dream", "dreamon", "open-dcoder")
DUAL = ("mdlm", "llada", "dream", "open-dcoder")
TEXT = "def area(width, height):\n    return wi\n\nprint(area(3, 4))\n"
CURSOR = TEXT.index("wi\n") + 2
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    made = {}
    for name in LAYOUTS:
        made[name], _ = save_published(tmp_path_factory.mktemp(name), name)
    for name in ("sdar", "mdlm"):
        with_chat(made[name])
    return made


def with_chat(folder: Path, template: Any = CHATML) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


def request(mode: Any = "fim", text: str = TEXT, cursor: int = CURSOR, **options: Any) -> Request:
    return Request(mode, "area.py", text, cursor, **{"max_tokens": 12, **options})


def says(predictor: PublishedPredictor, text: str, *, ended: bool = True) -> None:
    """Let the model answer so, with probability 1/2 for each token."""
    ids = predictor.published.tokenizer.encode(text)
    told = Answer(ids, [math.log(0.5)] * len(ids), forwards=3, steps=2, ended=ended)
    predictor.decoder.write = lambda *_, **__: told  # type: ignore[method-assign]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_model_serves_what_it_was_trained_for(name: str, folders) -> None:
    predictor = load(str(folders[name]), threads=1)
    assert isinstance(predictor, PublishedPredictor)
    assert isinstance(predictor, Predictor)
    fills = name in (*FILLS, "dream-coder", "diffucoder")
    assert predictor.modes == (("fim",) if fills else ())
    made = predictor.predict(request(), Stop())
    assert made.suppressed == (None if fills else NOT_SERVED)
    assert predictor.predict(request("next_edit"), Stop()).suppressed == NOT_SERVED
    if fills:
        assert made.forwards > 0
        assert made.model == folders[name].name
        for edit in made.edits:
            assert edit.start == edit.end == CURSOR
            assert 0 < made.confidence < 1
            assert "�" not in edit.new_text


def test_only_models_that_follow_instructions_are_asked_in_a_chat(folders) -> None:
    told = PublishedPredictor.load(folders["sdar"], instruct=True)
    assert told.modes == ("fim", "next_edit")
    assert PublishedPredictor.load(folders["sdar"]).modes == ()
    assert (
        PublishedPredictor.load(folders["fast-dllm-v2"], instruct=True).modes == ()
    )  # no template


def context(folder: Path, text: str = TEXT, cursor: int = CURSOR):
    published = open_published(folder)
    return published, ContextBuilder(published.tokenizer.count, 200).build(
        request(cursor=cursor, text=text)
    )


@pytest.mark.parametrize("name", ["mdlm", "llada", "open-dcoder"])
def test_a_canvas_lies_between_the_two_texts(name: str, folders) -> None:
    published, around = context(folders[name])
    hole = infill_prompt(published, around)
    encode = published.tokenizer.encode
    before, required = published.tokenizer.heal(TEXT[:CURSOR])
    assert (before, required) == (TEXT[: CURSOR - 3], b" wi")
    assert hole.required == required
    assert hole.before == encode(before)
    assert hole.after == encode(TEXT[CURSOR:])


def test_a_sidecar_says_what_is_kept_of_the_texts_around_a_canvas(tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "llada")
    (folder / "redraft.json").write_text('{"reuse": "prefix"}')
    assert PublishedPredictor.load(folder).windows.reuse == "prefix"
    (folder / "redraft.json").write_text('{"reuse": "all"}')
    with pytest.raises(ModelError, match="'all' is none of none, prefix, dual"):
        PublishedPredictor.load(folder)


def test_nemotron_goes_on_from_the_cursor_and_the_rest_judges_how_far(folders) -> None:
    """What it decides is plain greedy decoding: drafted canvases change the passes only."""
    predictor = PublishedPredictor.load(folders["nemotron"], compute="float32", context_tokens=64)
    silence(predictor)
    continuer = predictor.continuer
    assert continuer is not None
    assert continuer.begin == [predictor.published.tokenizer.control["<s>"]]
    decoder, passes = continuer.bundle.decoder, {}
    asked = request(text="x = 1\ny = x\n", cursor=11, max_tokens=9)
    texts = {}
    for decoding in ("block", "causal"):
        decoder.decoding = decoding
        decoder._recent.clear()
        continuer.bundle.prefixes.clear()
        with torch.inference_mode():
            best, made = continuer.complete(asked, Stop())
        texts[decoding] = (made.tokens, best and best.text)
        passes[decoding] = made.denoising_steps
    assert texts["block"] == texts["causal"]
    assert len(texts["block"][0]) == 9
    assert passes["block"] > 0 == passes["causal"]
    made = predictor.predict(asked, Stop())
    for edit in made.edits:
        assert edit.start == edit.end == 11
        assert made.confidence == pytest.approx(made.features["share"])


def silence(predictor: PublishedPredictor) -> None:
    """Let the random model never end its text."""
    head, control = predictor.trunk.head, sorted(predictor.published.tokenizer.control_ids)

    def talkative(hidden: torch.Tensor) -> torch.Tensor:
        return head(hidden).index_fill(1, torch.tensor(control), -1e4)

    predictor.trunk.head = talkative


@pytest.mark.parametrize("name", ["dream", "dreamon"])
def test_dream_s_text_stands_between_its_begin_and_end(name: str, folders) -> None:
    published, around = context(folders[name])
    hole = infill_prompt(published, around)
    control = published.tokenizer.control
    assert hole.before[0] == control["<|beginoftext|>"]
    assert hole.after[-1] == control["<|endoftext|>"]
    assert published.tokenizer.decode(hole.before[1:]) == TEXT[: CURSOR - 3]


def test_stable_diffcoder_reads_the_suffix_first(folders) -> None:
    published, around = context(folders["stable-diffcoder"])
    hole = infill_prompt(published, around)
    marked = f"<[fim-suffix]>{TEXT[CURSOR:]}<[fim-prefix]>{TEXT[:CURSOR]}<[fim-middle]>"
    assert hole.before == published.tokenizer.encode_template(marked)
    assert hole.after == []
    assert hole.required == b""


def test_a_checkpoint_without_the_tags_does_not_fill(folders, tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "stable-diffcoder")
    raw = json.loads((folder / "tokenizer.json").read_text())
    raw["added_tokens"] = [row for row in raw["added_tokens"] if "middle" not in row["content"]]
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    assert PublishedPredictor.load(folder).modes == ()


def test_the_answer_goes_in_at_the_cursor(folders) -> None:
    predictor = PublishedPredictor.load(folders["llada"])
    says(predictor, " width * height")
    made = predictor.predict(request(), Stop())
    assert apply(TEXT, made.edits) == TEXT.replace("wi\n", "width * height\n")
    assert made.confidence == pytest.approx(0.5)
    assert made.features["denoising_steps"] == 2
    assert not made.truncated
    says(predictor, " height")  # not what has been typed
    assert predictor.predict(request(), Stop()).edits == ()
    says(predictor, " width � 2")  # bytes that are no text
    assert predictor.predict(request(), Stop()).edits[0].new_text == "dth "
    says(predictor, " wi")  # nothing to add
    assert predictor.predict(request(), Stop()).edits == ()


def test_an_answer_that_was_cut_off_ends_with_a_whole_line(folders) -> None:
    predictor = PublishedPredictor.load(folders["llada"])
    says(predictor, " width\n    x = hei", ended=False)
    made = predictor.predict(request(), Stop())
    assert made.edits[0].new_text == "dth"
    assert made.truncated
    assert whole_lines("a\nb\nc", 2, ended=True) == "a\nb"
    assert whole_lines("abc", 2, ended=False) == "abc"


def test_an_empty_document_and_a_cursor_at_its_start(folders) -> None:
    for name in FILLS:
        predictor = PublishedPredictor.load(folders[name])
        assert predictor.windows.reuse == ("dual" if name in DUAL else "none")
        assert predictor.predict(request(text="", cursor=0), Stop()).edits == ()
        made = predictor.predict(request(text="x = 1\n", cursor=0), Stop())
        assert all(edit.start == edit.end == 0 for edit in made.edits)


def test_a_passed_deadline_leaves_nothing_and_breaks_nothing(folders) -> None:
    predictor = PublishedPredictor.load(folders["stable-diffcoder"])
    long = "x = 1\n" * 60
    late = predictor.predict(request(text=long, cursor=len(long)), Stop(0.0))
    assert late.edits == ()
    assert predictor.predict(request(), Stop()).forwards > 0


@pytest.mark.parametrize("name", ["llada", "stable-diffcoder"])
def test_a_long_file_and_many_tokens_stay_within_the_model_s_places(name: str, folders) -> None:
    predictor = PublishedPredictor.load(folders[name], context_tokens=400)
    text = "value = other(value)\n" * 400
    made = predictor.predict(request(text=text, cursor=len(text) // 2, max_tokens=1024), Stop(2))
    assert made.suppressed is None


def test_dream_s_context_is_as_long_as_it_was_trained(folders) -> None:
    assert {f.name: f.context for f in FAMILIES if f.context} == {"dreamon": 2048, "dream": 2048}
    assert open_published(folders["dreamon"]).config.max_positions == 512


def test_a_chat_asks_for_the_lines_around_the_cursor(folders) -> None:
    published = open_published(folders["sdar"])
    chat = load_asking(published.folder, published.tokenizer)
    assert chat is not None
    ids = chat.ask(published.tokenizer, "say <|im_end|>")
    start, end = (published.tokenizer.control[t] for t in ("<|im_start|>", "<|im_end|>"))
    assert ids.count(end) == 1  # that of the template: the user's is text
    assert ids.count(start) == 2
    assert published.tokenizer.decode(ids) == "user\nsay <|im_end|>\nassistant\n"


def test_an_instruction_shows_history_region_and_cursor(folders) -> None:
    published = open_published(folders["sdar"])
    asked = request("next_edit", history=("--- a/area.py\n+++ b/area.py\n@@ -1 +1 @@\n-x\n+y\n",))
    built = ContextBuilder(published.tokenizer.count, 400).build(asked, range(1, 2))
    message = instruction("area.py", "next_edit", built, CURSOR - TEXT.index("    return"))
    for part in (
        "area.py",
        "-x\n+y",
        "<rewrite>\n    return wi<cursor>\n</rewrite>",
        "print(area(3, 4))",
    ):
        assert part in message
    assert "recent" not in instruction("area.py", "fim", built, 0).split("Here is")[1]


@pytest.mark.parametrize("name", ["sdar", "mdlm"])
def test_a_rewritten_region_becomes_edits(name: str, folders) -> None:
    predictor = PublishedPredictor.load(folders[name], instruct=True, context_tokens=250)
    mode = "next_edit"
    says(predictor, "```python\n" + TEXT.replace("wi\n", "width * height\n") + "```")
    made = answer(predictor, request(mode), Stop(), threshold=0.1)
    assert apply(TEXT, made.edits) == TEXT.replace("wi\n", "width * height\n")
    assert made.shown
    says(predictor, "```\n" + TEXT + "```")
    assert predictor.predict(request(mode), Stop()).edits == ()
    says(predictor, "I cannot do that.")
    assert predictor.predict(request(mode), Stop()).edits == ()


def test_a_random_model_in_a_chat_gives_no_edit_and_no_error(folders) -> None:
    for name in ("sdar", "mdlm"):
        predictor = PublishedPredictor.load(folders[name], instruct=True, context_tokens=120)
        made = predictor.predict(request("next_edit", text="x = 1\n", cursor=2), Stop(3))
        assert made.edits == ()


@pytest.mark.parametrize(
    ("text", "region", "expected"),
    [
        ("```\na = 1\n```", "a = 2\n", "a = 1\n"),
        ("```python\na = 1\n```\n", "a = 2", "a = 1"),
        ("```\n```", "a\n", ""),
        ("\n```\nx = '```'\n```", "x\n", "x = '```'\n"),
        ("```\na<cursor>\n```", "a\n", "a\n"),
        ("```\na = 1\n", "a\n", None),
        ("here:\n```\na\n```", "a\n", None),
        ("", "a\n", None),
    ],
)
def test_fenced_blocks(text: str, region: str, expected: str | None) -> None:
    assert fenced(text, region) == expected


def test_a_template_runs_in_a_sandbox(folders, tmp_path: Path) -> None:
    folder, _ = save_published(tmp_path, "sdar")
    for template, says_ in (
        ("{{ ''.__class__.__mro__ }}{{ messages[0].content }}", "fails"),
        ("{{ raise_exception('no system message') }}", "fails: no system message"),
        ("nothing", "does not show the message"),
        ("{% if %}", "fails"),
    ):
        with_chat(folder, template)
        with pytest.raises(ModelError, match=says_):
            PublishedPredictor.load(folder, instruct=True)
    with_chat(folder, [{"name": "tool", "template": "x"}, {"name": "default", "template": CHATML}])
    assert PublishedPredictor.load(folder, instruct=True).modes
    (folder / "chat_template.jinja").write_text("nothing")
    with pytest.raises(ModelError):
        PublishedPredictor.load(folder, instruct=True)


def test_a_name_means_the_embedded_model_a_folder_or_a_pulled_one(
    home: Path, folders, tmp_path
) -> None:
    assert folder_of("embedded") is None
    assert folder_of(str(folders["sdar"])) == folders["sdar"]
    assert pulled() == []
    (models_folder() / "someone").mkdir(parents=True)
    (models_folder() / "someone" / "small").symlink_to(folders["dream"])
    assert pulled() == ["someone/small"]
    assert load("someone/small").name == "small"
    with pytest.raises(ModelError, match="redraft models pull someone/other"):
        folder_of("someone/other")
    with pytest.raises(ModelError, match="neither a folder"):
        folder_of("nothing")


def test_a_choice_is_remembered_until_another_is_made(home: Path, folders, monkeypatch) -> None:
    monkeypatch.delenv("REDRAFT_SCRIPT", raising=False)
    assert chosen() == Choice()
    choose(Choice(str(folders["sdar"]), instruct=True))
    assert chosen() == Choice(str(folders["sdar"].resolve()), instruct=True)
    predictor = engine.load_predictor(engine.ModelChoice())
    assert isinstance(predictor, PublishedPredictor)
    assert predictor.modes == ("fim", "next_edit")
    named = engine.load_predictor(engine.ModelChoice(model=str(folders["dream"])))
    assert named.name == folders["dream"].name  # a setting is stronger
    with pytest.raises(ModelError):
        choose(Choice("nothing"))
    assert chosen().instruct
    choose(Choice("embedded"))
    assert chosen() == Choice()
    (home / "model.json").write_text("{")
    with pytest.raises(ModelError, match="models use"):
        chosen()


def test_redraft_s_own_checkpoints_are_loaded_as_before(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "own")
    with pytest.raises(ModelError, match="gate"):
        load(str(tmp_path / "own"))
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        load(str(tmp_path))


def test_a_way_of_decoding_is_for_redraft_s_own_models(folders) -> None:
    with pytest.raises(ModelError, match="--decoding causal"):
        load(str(folders["sdar"]), decoding="causal")


@pytest.mark.parametrize("name", FILLS)
def test_side_by_side_they_answer_what_they_answer_alone(name: str, folders) -> None:
    together = pytest.importorskip("model.together")
    texts = [TEXT, TEXT.replace("area", "size"), "x = 1\n" + TEXT]
    asked = [request(text=text, cursor=text.index("wi\n") + 2) for text in texts]

    def told(made: Prediction) -> tuple[object, ...]:
        return made.edits, made.forwards, made.tokens

    alone = [told(load(str(folders[name]), threads=1).predict(one, Stop())) for one in asked]
    room = together.Together()
    several = together.side_by_side(load(str(folders[name]), threads=1), len(asked), room)
    found: dict[int, tuple[object, ...]] = {}

    def work(number: int) -> Callable[[], None]:
        one, predictor = asked[number], several[number]
        return lambda: found.update({number: told(predictor.predict(one, Stop()))})

    arriving = iter([[work(number) for number in range(len(asked))]])
    room.run(lambda: next(arriving, ()))
    assert [found[number] for number in range(len(asked))] == alone
    assert all(forwards for _, forwards, _ in alone)
