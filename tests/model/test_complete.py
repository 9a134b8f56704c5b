from __future__ import annotations

import pytest
import torch
from tiny import random_bundle

from model.complete import (
    SUFFIX_TOKENS,
    Completer,
    Ending,
    before_a_line,
    candidate_texts,
    suffix_head,
)
from model.protocol import Request, Stop


@pytest.mark.parametrize(
    ("prefix", "suffix", "text", "reached"),
    [
        ("x = f(", ")\n", "a, b", False),
        ("x = f(", ")\n", "a, b)\n", True),  # text follows on the line: one line only
        ("def f():\n", "\n", "    return 1\n", False),
        ("def f():\n    return 1", "\n", "\n\n\n", True),  # two blank lines
        ("    if x:\n        ", "\n", "y = 1\n    z", True),  # left the block
        ("    if x:\n        ", "\n", "y = [\n    ]\n", False),  # a closer may stand further left
        (
            "a\n",
            "\nnext_line()\n",
            "b\nnext_line()\n",
            True,
        ),  # arrived at the text after the cursor
        ("", "", "1\n2\n3\n4\n", True),  # more than three lines
    ],
)
def test_where_a_continuation_has_gone_far_enough(prefix, suffix, text, reached) -> None:
    assert Ending(prefix, suffix, max_lines=3).reached(text) is reached


def test_candidates_end_where_the_rest_of_the_line_might_go_on() -> None:
    assert candidate_texts("a, (b), c)", ")", complete=True) == [
        "",
        "a, (b",
        "a, (b), c",
        "a, (b), c)",
    ]
    assert candidate_texts("a\nb\nc", "\n", complete=True) == ["", "a", "a\nb", "a\nb\nc"]
    assert candidate_texts("a\nb\nc", "\n", complete=False) == ["", "a", "a\nb"]
    assert candidate_texts("  \n", "", complete=True) == [""]


def test_the_suffix_judges_with_its_first_two_lines_of_text() -> None:
    assert suffix_head(")\n\n    return x\n    more\n") == ")\n\n    return x"
    assert suffix_head("\n\n") == ""
    assert suffix_head("") == ""


def test_a_huge_rest_of_the_line_is_not_looked_at() -> None:
    assert len(suffix_head("1, " * 300_000)) < 1000


@torch.inference_mode()
def test_what_was_judged_for_the_last_key_is_not_judged_again() -> None:
    bundle = random_bundle()
    completer = Completer(bundle)
    request = Request("fim", "a.py", "value = compute(\nprint(value)\n", 16, max_tokens=5)
    context = bundle.tokenizer.encode("value = compute")
    found, made = completer.complete(context, b"(", request, Stop())
    again, remade = completer.complete(context, b"(", request, Stop())
    assert [(c.text, c.log_odds) for c in again] == [(c.text, c.log_odds) for c in found]
    assert remade.forwards < made.forwards


@torch.inference_mode()
def test_the_posterior_is_the_likelihood_of_the_whole_text() -> None:
    bundle = random_bundle()
    text = "value = compute(\nprint(value)\n"
    request = Request("fim", "a.py", text, 16, max_tokens=5)
    context = bundle.tokenizer.encode("value = compute")
    found, made = Completer(bundle).complete(context, b"(", request, Stop())
    assert found[0].log_odds >= found[-1].log_odds
    assert sum(c.share for c in found) == pytest.approx(1)
    nothing = next(c for c in found if not c.text)
    assert nothing.log_odds == 0
    assert made.bytes.startswith(b"(")
    head = suffix_head(text[16:])

    def likelihood(middle: str) -> float:
        own = bundle.tokenizer.encode("(" + middle)
        ids = bundle.tokenizer.encode("(" + middle + head)[: len(own) + SUFFIX_TOKENS]
        trunk = bundle.trunk
        rows = trunk.head(trunk.forward(torch.tensor([*context, *ids]), trunk.new_cache(64)))
        table = rows.log_softmax(-1)
        return sum(float(table[len(context) - 1 + i, t]) for i, t in enumerate(ids))

    for completion in found:
        expected = likelihood(completion.text) - likelihood("")
        assert completion.log_odds == pytest.approx(expected, abs=1e-3)


def test_what_counts_as_standing_before_a_line() -> None:
    assert before_a_line("def f():\n", "    return x\n")
    assert before_a_line("", "\tx\n")
    assert not before_a_line("def f():\n    ", "return x\n")  # inside the line
    assert not before_a_line("def f():\n", "\n    return x\n")  # an empty line waits
    assert not before_a_line("a\n", "   \n")
    assert not before_a_line("a\n", "b\n")  # might be the rest of a line


@torch.inference_mode()
def test_before_an_indented_line_only_whole_lines_are_offered() -> None:
    bundle = random_bundle()
    text = "def f(x):\n    return x\n"
    request = Request("fim", "a.py", text, len("def f(x):\n"), max_tokens=12)
    context = bundle.tokenizer.encode("def f(x):")
    found, _ = Completer(bundle).complete(context, b"\n", request, Stop())
    texts = [one.text for one in found]
    assert "" in texts
    assert all(one.endswith("\n") for one in texts if one)
