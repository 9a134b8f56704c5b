from __future__ import annotations

import pytest
from tiny import real_tokenizer

from model.config import ModelError
from model.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return real_tokenizer()


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x\n",
        "a\x0cb\u2028c",
        "naïve 日本語 👩‍👩‍👧 e\u0301",
        "\t\tx = 1234\r\n",
        "",
    ],
)
def test_round_trip(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_control_tokens_in_a_file_are_text(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("<|endoftext|> <file_sep> <filename>")
    assert not set(ids) & tokenizer.control_ids
    assert tokenizer.decode(ids) == "<|endoftext|> <file_sep> <filename>"


def test_lone_surrogates_and_cut_characters(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffd\ufffd\ufffdb"
    smile = tokenizer.encode("x 😀")
    assert tokenizer.decode(smile[:-1]).startswith("x")
    assert "\ufffd" not in tokenizer.decode(smile[:-1])


@pytest.mark.parametrize(
    ("text", "kept", "required"),
    [
        ("def f():\n    ", "def f():", b"\n    "),
        ("def f():\n    retur", "def f():\n   ", b" retur"),
        ("x = ", "x =", b" "),
        ("n12", "n1", b"2"),
        ("a\n\n", "a", b"\n\n"),
        ("", "", b""),
        ("a 😀", "a", " 😀".encode()),
    ],
)
def test_healing_cuts_at_a_boundary_the_tokenizer_makes(tokenizer, text, kept, required) -> None:
    assert tokenizer.heal(text) == (kept, required)


def test_what_may_follow_a_required_beginning(tokenizer: Tokenizer) -> None:
    found = {tokenizer.token_bytes(t) for t in tokenizer.continuations(b" retur")}
    assert b" return" in found
    assert all(piece.startswith(b" retur") for piece in found)
    assert b" f" not in {tokenizer.token_bytes(t) for t in tokenizer.continuations(b" fil")}
    # nothing covers it: the longest beginning
    assert [tokenizer.token_bytes(t) for t in tokenizer.continuations(b" returzq")] == [b" ret"]


def test_what_no_model_can_choose_is_forced(tokenizer: Tokenizer) -> None:
    pieces = [tokenizer.token_bytes(t) for t in tokenizer.forced(b" returzqzq")]
    assert pieces[0] == b" ret"
    rest = b" returzqzq"[len(b"".join(pieces)) :]
    assert rest  # a token that covers it is left to the model
    assert all(tokenizer.token_bytes(t).startswith(rest) for t in tokenizer.continuations(rest))
    assert tokenizer.forced(b" retur") == []
    assert tokenizer.forced(b"") == []


def test_healed_text_tokenises_like_the_finished_one(tokenizer: Tokenizer) -> None:
    full = "for item in items:\n        print(item)\n"
    for cut in range(1, len(full)):
        kept, _ = tokenizer.heal(full[:cut])
        ids = tokenizer.encode(kept)
        assert tokenizer.encode(full)[: len(ids)] == ids, full[:cut]


def test_a_damaged_tokenizer_is_named(tmp_path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{")
    with pytest.raises(ModelError, match=r"tokenizer\.json is not a readable tokenizer"):
        Tokenizer(path)
