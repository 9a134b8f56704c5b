from __future__ import annotations

import re
import sys
import time
import xml.etree.ElementTree as ET
from importlib import import_module

import pytest
import tiny

from model import linear, transformer
from model.bundle import EMBEDDED
from model.evaluation import flame, flame_picture
from model.evaluation.flame import Node, Part, Place, Sampler, names_of
from model.gate import load_for_user
from model.local import LocalPredictor

pytestmark = pytest.mark.usefixtures("one_thread")


def stack(*places: str) -> list[Place]:
    return [Place(*one.split(" ", 1)) for one in places]


def test_functions_without_a_name_belong_to_their_caller() -> None:
    parts = (Part("a:outer", "work"), Part("a:inner", "detail"))
    assert names_of(stack("x:y"), parts) == []
    assert names_of(stack("a:outer", "x:y"), parts) == ["work"]
    assert names_of(stack("a:outer", "x:y", "a:inner", "x:z"), parts) == ["work", "detail"]
    assert names_of(stack("a:outer", "a:outer"), parts) == ["work"], "no part within itself"


def test_the_expression_tells_what_a_function_is_at() -> None:
    parts = (
        Part("a:f", "products", r"mm\("),
        Part("a:f", "rounding"),
        Part(r"a:(\w+)Thing", r"\1 things"),
        Part("a:layers", "trunk", own="sums"),
    )
    assert names_of(stack("a:f mm(x, y)"), parts) == ["products"]
    assert names_of(stack("a:f (x / 2).round()"), parts) == ["rounding"]
    assert names_of(stack("a:Float16Thing.call"), parts) == ["float16 things"]
    assert names_of(stack("a:layers"), parts) == ["trunk", "sums"]
    assert names_of(stack("a:layers", "a:f mm(x)"), parts) == ["trunk", "products"]


def test_the_project_names_its_own_parts() -> None:
    answering = ["model.answer:answer", "model.local:LocalPredictor.predict"]
    trunk = ["model.denoise:Decoder.generate", "model.transformer:Transformer.forward"]
    product = [
        "model.linear:Int8Linear.__call__ self.product(x / peak)",
        "model.linear:Packed.__call__ x",
    ]
    scales = "model.linear:Int8Linear.__call__ x.abs().amax(1"
    assert names_of(stack(*answering)) == []
    assert names_of(stack(*answering, *trunk)) == ["continuation", "trunk", "cache writes and sums"]
    inner = ["continuation", "trunk", "int8 products"]
    layer = "model.transformer:Layer.feed_forward"
    assert names_of(stack(*answering, *trunk, layer, *product)) == inner
    assert names_of(stack(*answering, *trunk, layer, scales))[2:] == ["scales of rows"]
    few = ["model.linear:Float16Linear.__call__ x"]
    assert names_of(stack(*answering, *trunk, *few)) == [
        "continuation",
        "trunk",
        "float16 products",
    ]
    asked = ["model.denoise:Decoder._record done(out)", "model.complete:Completer._posterior"]
    assert names_of(stack(trunk[0], *asked)) == ["continuation", "judge of endings"]
    assert names_of(stack(trunk[0], asked[0][:-10])) == ["continuation", "entropies"]
    assert names_of(stack(*answering, "model.draft_imports:found")) == ["drafts by rules"]


def test_the_named_functions_exist() -> None:
    """A part whose function is renamed would lose its name unseen."""
    for part in flame.PARTS:
        module, _, qualname = part.where.replace("\\", "").partition(":")
        if not qualname or not re.fullmatch(r"[\w.]+", module + qualname):
            continue
        found = import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name)


def tree() -> Node:
    root = Node("completion")
    root.add(["trunk", "attention"], 2.0)
    root.add(["trunk"], 1.0)
    root.add(["judge", "trunk", "attention"], 3.0)
    root.add([], 4.0)
    return root


def test_a_tree_adds_up() -> None:
    root = tree()
    assert (root.seconds, root.own) == (10.0, 4.0)
    assert [(node.name, node.seconds) for node in root.ordered()] == [
        ("trunk", 3.0),
        ("judge", 3.0),
    ]
    assert root.leaves() == {"completion": 4.0, "trunk": 1.0, "attention": 5.0, "judge": 0.0}
    assert flame.unnamed(root) == 0.4
    flame.merge(root, tree())
    assert root.children["judge"].children["trunk"].seconds == 6.0


def test_tables() -> None:
    rows = flame.tree_table(tree(), keys=4, least=0.15).splitlines()
    assert [row.split() for row in rows[2:]] == [
        ["completion", "2500.0", "100.0%"],
        ["trunk", "750.0", "30.0%"],
        ["attention", "500.0", "20.0%"],
        ["judge", "750.0", "30.0%"],
        ["trunk", "750.0", "30.0%"],
        ["attention", "750.0", "30.0%"],
        ["(itself)", "1000.0", "40.0%"],
    ]
    other = Node("next edit")
    other.add(["drafts"], 1.0)
    rows = flame.parts_table([tree(), other]).splitlines()
    assert [row.split() for row in rows[2:4]] == [
        ["drafts", "0.0%", "100.0%"],
        ["attention", "50.0%", "0.0%"],
    ]
    assert "nothing" not in flame.tree_table(Node("nothing"), 0, 0.1)[30:]


def test_the_picture_names_every_large_part() -> None:
    root = tree()
    root.add(["a part whose name is long"], 1.0)
    picture = flame_picture.draw([(root, 4)], "500 lines <warm>")
    document = ET.fromstring(picture)
    texts = [element.text or "" for element in document.iter() if element.tag.endswith("text")]
    assert any("500 lines <warm>" in text for text in texts)
    for legend in (
        "attention 45.5%",
        "completion 36.4%",
        "trunk 9.1%",
        "a part whose name is long 9.1%",
    ):
        assert legend in texts
    found = [(box.name, box.depth, round(box.left, 3)) for box in flame_picture.boxes(root)]
    assert found[:3] == [("completion", 0, 0.0), ("trunk", 1, 0.0), ("attention", 2, 0.0)]
    assert ("judge", 1, round(3 / 11, 3)) in found
    assert flame_picture.fitting("attention", 30) == ""
    assert flame_picture.fitting("attention", 50) == "atten…"


def test_an_expression_is_found_in_its_line() -> None:
    def look() -> Place | None:
        frame = sys._getframe(1)
        return flame.place(frame.f_code, frame.f_lasti)

    def at_work() -> list[Place | None]:
        return [None, look()]

    found = at_work()[1]
    assert found is not None
    assert found.where.endswith("test_an_expression_is_found_in_its_line.<locals>.at_work")
    assert found.doing.startswith("look()")
    assert flame.place(re.match.__code__, 0) is None, "the standard library is not ours"
    assert flame.place(linear.bucket.__code__, 0).where == "model.linear:bucket"  # type: ignore[union-attr]
    assert flame.place(transformer.attend.__code__, 0).where == "model.transformer:attend"  # type: ignore[union-attr]


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        time.sleep(0.001)


def top(seconds: float) -> None:
    busy(seconds)


def test_all_time_is_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flame, "PARTS", (Part(r".*:busy", "busy"),))
    root, sampler = Node("all"), Sampler()
    monkeypatch.setattr(flame, "names_of", lambda stack: names_of(stack, flame.PARTS))
    began = time.perf_counter()
    with sampler.watching(top.__code__, root):
        top(0.2)
    passed = time.perf_counter() - began
    assert 0.2 <= root.seconds <= passed
    assert root.children["busy"].seconds >= 0.5 * root.seconds


def test_keys_of_a_real_pipeline_are_told_apart() -> None:
    predictor = LocalPredictor(tiny.random_bundle(), load_for_user(EMBEDDED, "tiny", None), 128)
    root, keys = flame.profile(predictor, "fim", lines=50, keys=4, repeats=1)
    assert (root.name, keys) == ("completion", 3)
    assert {"continuation"} <= set(root.children)
    assert "trunk" in root.children["continuation"].children
    assert sum(root.leaves().values()) == pytest.approx(root.seconds)
