"""Answers under a JSON schema. The models are random: that their answers are valid shows that it is enforced."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from json_schemas import PERSON, SHORT
from published_checkpoints import save_published
from tiny import random_bundle, real_tokenizer

from model.canvas import Answer, Asked, CanvasDecoder
from model.denoise import Generation
from model.families import open_published
from model.grammar import ANY_OBJECT, Grammars, SchemaError
from model.protocol import Stop
from model.transformer import Transformer
from model.windows import PrefixCache, Windows

jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="jsonschema-rs is not installed")
pytest.importorskip("llguidance", reason="llguidance is not installed")
pytestmark = pytest.mark.usefixtures("one_thread")

FAMILIES = ("nemotron", "fast-dllm-v2", "bd3lm", "mdlm", "llada", "dream", "dreamon")
BEFORE = [5, 17, 3, 88, 41, 41, 9, 60, 2, 33, 70]


def valid(schema: Any, text: str) -> bool:
    return bool(jsonschema_rs.is_valid(schema, json.loads(text)))


babbler = cache(partial(random_bundle, "block"))
tokenizer = cache(real_tokenizer)


@pytest.fixture(scope="module")
def grammars() -> Grammars:
    return Grammars(tokenizer())


@torch.inference_mode()
def generate(grammars: Grammars, schema: Any, limit: int, seed: int = 0) -> Generation:
    bundle = babbler()
    context = [40 + seed, 300, 17 * seed + 1]
    slot = bundle.prefixes.acquire(context)
    return bundle.decoder.generate(
        slot, context, max_tokens=limit, constraint=grammars.json(schema)
    )


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tokens_one_by_one_make_valid_json(name: str, seed: int, grammars: Grammars) -> None:
    made = generate(grammars, SHORT[name], 120, seed)
    assert made.ended
    assert valid(SHORT[name], made.bytes.decode())
    assert made.bytes == b"".join(map(tokenizer().token_bytes, made.tokens))


def test_what_must_follow_costs_no_pass(grammars: Grammars) -> None:
    made = generate(grammars, SHORT["const"], 120)
    assert made.bytes == b'{"kind": "fixed", "list": [1, 2]}'
    assert made.forwards < len(made.tokens) / 2


def test_a_limit_leaves_a_beginning_that_can_be_completed(grammars: Grammars) -> None:
    whole = generate(grammars, PERSON, 120)
    cut = generate(grammars, PERSON, 5)
    assert not cut.ended
    assert len(cut.tokens) == 5
    assert cut.tokens == whole.tokens[:5]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"not": {"type": "string"}}, "not"),
        ({"type": "strng"}, "strng"),
        ({"enum": []}, "anyOf is empty"),
        ({"type": "string", "minLength": 5, "maxLength": 3}, "greater than"),
        ({"type": "array", "uniqueItems": True, "x-guidance": {"lenient": True}}, "uniqueItems"),
        ({"$ref": "http://localhost/schema"}, "http://localhost/schema"),
    ],
)
def test_a_schema_that_cannot_be_enforced_is_told(
    schema: Any, told: str, grammars: Grammars
) -> None:
    with pytest.raises(SchemaError, match=told):
        grammars.json(schema)


def test_any_object_is_one(grammars: Grammars) -> None:
    state = grammars.json(ANY_OBJECT)
    for token in tokenizer().encode('{"a": [1, {"b": null}]'):
        assert not state.complete
        state.take(token)
    state.take(tokenizer().encode("}")[0])
    assert state.complete
    assert state.closed
    with pytest.raises(SchemaError):
        state.take(17)


def test_only_allowed_tokens_keep_their_logits(grammars: Grammars) -> None:
    state = grammars.json({"enum": ["yes"]})
    logits = state.only(torch.zeros(tokenizer().size + 7), ends=[2])
    allowed = logits.isfinite().nonzero().flatten().tolist()
    texts = {tokenizer().token_bytes(token) for token in allowed}
    assert b'"' in texts
    assert all(b'"yes"'.startswith(text) for text in texts)
    assert 2 not in allowed


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: save_published(tmp_path_factory.mktemp(name), name)[0] for name in FAMILIES}


@torch.inference_mode()
def fill(
    folder: Path, schema: Any, limit: int, taken: int, states: list[Any]
) -> tuple[Answer, str]:
    found = open_published(folder)
    found = replace(found, block=min(found.block, 8))
    trunk = Transformer.load(found.weights(), found.config)
    windows = Windows(found, trunk, PrefixCache(found.config, slots=2))
    asked = Asked(
        limit,
        constraint=Grammars(found.tokenizer).json(schema),
        watch=lambda decided, behind: states.append((list(decided), list(behind))),
    )
    stop = Stop()
    answer = CanvasDecoder(found).answer(windows.open(BEFORE[:taken], [], stop), stop, asked)
    text = b"".join(map(found.tokenizer.token_bytes, answer.tokens))
    return answer, text.decode()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", ["person", "const", "nested", "either"])
def test_canvases_make_valid_json(name: str, kind: str, folders: dict[str, Path]) -> None:
    states: list[Any] = []
    answer, text = fill(folders[name], SHORT[kind], 200, 11 - len(kind) % 4, states)
    assert answer.ended
    assert valid(SHORT[kind], text)
    for (before, behind), (after, _) in pairwise(states):
        assert after[: len(before)] == before
        assert behind == []


@pytest.mark.parametrize("name", FAMILIES)
def test_a_canvas_that_is_cut_says_so(name: str, folders: dict[str, Path]) -> None:
    for limit in (10, 32):
        answer, text = fill(folders[name], SHORT["const"], limit, 9, [])
        assert len(answer.tokens) == limit
        assert not answer.ended
        assert '{"kind": "fixed", "list": [1, 2]}'.startswith(text)
    answer, text = fill(folders[name], SHORT["const"], 33, 9, [])
    assert answer.ended
    assert text.endswith("]}")
