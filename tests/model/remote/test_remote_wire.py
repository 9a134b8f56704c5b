"""What a service is asked and what its answers become. No connection is made."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffing.edits import apply
from diffing.hunks import unified_diff
from model.protocol import Request, Snippet
from model.remote.tags import Document, Escape, edit_prompt, rewritten
from model.remote.wire import AnswerError, Asked, Wire, approximate_tokens

FILE = "import os\n\n\ndef greet(name):\n    return 'hello'\n\n\ndef main():\n    greet('you')\n"
DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -4,1 +4,1 @@\n-def greet():\n+def greet(name):\n"


def request_of(text: str = FILE, cursor: int | None = None, **more: Any) -> Request:
    at = text.index("'hello'") if cursor is None else cursor
    return Request(**{"mode": "next_edit", "path": "src/a.py", "text": text, "cursor": at} | more)


def wire(protocol: Any = "inception", **more: Any) -> Wire:
    return Wire(protocol, "mercury-edit-2", more.pop("budget", 8192), **more)


def asked(request: Request, **more: Any) -> Asked:
    question = wire(**more).ask(request)
    assert question is not None
    return question


def answer(content: str, finish: str = "stop") -> dict[str, Any]:
    return {"choices": [{"message": {"content": content}, "finish_reason": finish}]}


def after(request: Request, content: str, finish: str = "stop") -> str:
    """The text after the edits that an answer asks for."""
    read = wire().read(asked(request), answer(content, finish))
    return apply(request.text, read.edits)


def test_fim_asks_with_prefix_and_suffix_and_nothing_else_of_the_workspace() -> None:
    request = request_of(mode="fim", history=(DIFF,), related=(Snippet("b.py", "secret"),))
    question = asked(request)
    assert question.path == "/fim/completions"
    assert question.body == {
        "model": "mercury-edit-2",
        "stream": False,
        "prompt": FILE[: request.cursor],
        "suffix": FILE[request.cursor :],
        "max_tokens": 150,
    }


def test_an_openai_service_gets_a_suffix_or_one_prompt_made_from_the_template() -> None:
    request = request_of("a = 1\nb\n", 6, mode="fim")
    body = asked(request, protocol="openai").body
    assert (body["prompt"], body["suffix"], body["max_tokens"]) == ("a = 1\n", "b\n", 64)
    body = asked(request, protocol="openai", template="<P>{prefix}<S>{suffix}<M>").body
    assert body["prompt"] == "<P>a = 1\n<S>b\n<M>"
    assert "suffix" not in body


def test_a_template_leaves_braces_in_the_users_text_alone() -> None:
    request = request_of("{suffix} {prefix}", 9, mode="fim")
    body = asked(request, protocol="openai", template="<{prefix}|{suffix}>").body
    assert body["prompt"] == "<{suffix} |{prefix}>"


def test_next_edits_are_not_asked_of_an_openai_service() -> None:
    assert wire("openai").ask(request_of()) is None


def test_the_edit_prompt_in_full() -> None:
    request = request_of(
        history=(DIFF,),
        related=(Snippet("src/b.py", "from a import greet\n"),),
        diagnostics=("4: error: name is not used",),
    )
    question = asked(request)
    assert question.path == "/edit/completions"
    assert question.body["max_tokens"] == 512
    (message,) = question.body["messages"]
    assert message["role"] == "user"
    assert message["content"] == (
        "<|recently_viewed_code_snippets|>\n"
        "<|recently_viewed_code_snippet|>\ncode_snippet_file_path: src/b.py\n"
        "from a import greet\n<|/recently_viewed_code_snippet|>\n"
        "<|recently_viewed_code_snippet|>\ncode_snippet_file_path: diagnostics\n"
        "4: error: name is not used\n<|/recently_viewed_code_snippet|>\n"
        "<|/recently_viewed_code_snippets|>\n\n"
        "<|current_file_content|>\ncurrent_file_path: src/a.py\n"
        "<|code_to_edit|>\nimport os\n\n\ndef greet(name):\n    return <|cursor|>'hello'\n\n\n"
        "def main():\n    greet('you')\n<|/code_to_edit|>\n\n<|/current_file_content|>\n\n"
        f"<|edit_diff_history|>\n{DIFF}<|/edit_diff_history|>\n"
    )


def test_the_region_is_fifteen_lines_around_the_cursor_with_the_rest_around_it() -> None:
    text = "".join(f"line {n}\n" for n in range(60))
    question = asked(request_of(text, text.index("line 30")))
    assert question.document is not None
    lines = question.document.region.splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("line 24", "line 38", 15)
    assert question.document.before + question.document.region + question.document.after == text


FAR = "def total(a):\n    return a\n\n" + "x = 1\n" * 60 + "print(total(1))\n"


def renamed(text: str) -> Request:
    new = text.replace("def total", "def grand_total")
    diff = unified_diff(text, new, "src/a.py")
    return request_of(new, new.index("(a)"), history=(diff,))


def test_the_region_is_where_a_rule_sees_the_next_edit() -> None:
    request = renamed(FAR)
    question = asked(request)
    assert question.document is not None
    assert question.document.region.endswith("print(total(1))\n")
    assert "def grand_total" not in question.document.region
    prompt = question.body["messages"][0]["content"]
    assert "print(<|cursor|>total(1))\n<|/code_to_edit|>" in prompt
    content = question.document.region.replace("total", "grand_total")
    read = wire().read(question, answer(f"```\n{content}```"))
    assert apply(request.text, read.edits) == FAR.replace("total", "grand_total")


def test_the_region_stays_at_the_cursor_while_there_is_something_to_do() -> None:
    request = renamed(FAR.replace("\n\n", "\n\nprint(total(0))\n", 1))
    question = asked(request)
    assert question.document is not None
    assert "def grand_total<|cursor|>" in question.body["messages"][0]["content"]
    assert question.document.region.startswith("def grand_total")


def test_the_prompt_keeps_to_its_budget() -> None:
    text = "".join(f"value_{n} = {n}\n" for n in range(20_000))
    related = tuple(Snippet(f"f{n}.py", text[:9000]) for n in range(5))
    request = request_of(text, len(text) // 2, related=related, history=(DIFF * 50,))
    for budget in (600, 3000):
        prompt = asked(request, budget=budget).body["messages"][0]["content"]
        assert budget / 2 < approximate_tokens(prompt) < budget + 300
        fim = Request("fim", "a.py", text, len(text) // 2)
        body = asked(fim, budget=budget).body
        assert budget / 2 < approximate_tokens(body["prompt"] + body["suffix"]) <= budget


def test_a_region_larger_than_the_budget_is_not_asked_about() -> None:
    assert wire(budget=300).ask(request_of("x" * 15_000, 3)) is None


def test_absolute_paths_do_not_leave_the_machine() -> None:
    diffs = (
        "--- a//home/me/a.py\n+++ b//home/me/a.py\n@@ -1,2 +1,1 @@\n--- /usr/share\n x\n",
        "--- /dev/null\n+++ C:\\Users\\me\\b.py\n@@ -0,0 +1,1 @@\n+x\n",
    )
    related = (Snippet("/home/me/c.py", "c"), Snippet("lib/d.py", "d"))
    request = request_of(path="/home/me/a.py", history=diffs, related=related)
    prompt = asked(request).body["messages"][0]["content"]
    assert "home" not in prompt
    assert "Users" not in prompt
    assert "current_file_path: a.py\n" in prompt
    assert "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,1 @@\n--- /usr/share\n" in prompt
    assert "--- /dev/null\n+++ b.py\n" in prompt
    assert "code_snippet_file_path: lib/d.py\n" in prompt


NEW = FILE.replace("'hello'", "f'hello {name}'").removesuffix("\n")


@pytest.mark.parametrize(
    "content",
    [
        f"```\n{NEW}\n```",
        f"```python\n{NEW}\n```\n",
        f"```\n{NEW}\n\n\n```",
        NEW,
        NEW + "\n\n",
        f"Here is the code:\n\n```\n{NEW}\n```\nI added the name.",
        f"```\n{NEW}",
        f"<|code_to_edit|>\n{NEW}\n<|/code_to_edit|>",
        f"```\n<|code_to_edit|>\n{NEW}\n<|/code_to_edit|>\n```",
        f"<|code_to_edit|>\n```\n{NEW}\n```\n<|/code_to_edit|>\n<|/current_file_content|>",
        f"```\n{NEW}\n<|/code_to_edit|>\n```",
        f"````\n{NEW}\n````",
        "```\n" + NEW.replace("return f", "return <|cursor|>f") + "\n```",
        "```\r\n" + NEW.replace("\n", "\r\n") + "\r\n```",
    ],
)
def test_one_change_however_it_is_wrapped(content: str) -> None:
    request = request_of()
    read = wire().read(asked(request), answer(content))
    assert apply(FILE, read.edits) == NEW + "\n"
    (change,) = read.edits
    assert FILE[change.start : change.end] == "'hello"
    assert change.new_text == "f'hello {name}"


@pytest.mark.parametrize(
    "content", ["None", "```\nNone\n```", "", "\n", "```\n```", f"```\n{FILE}```", FILE, "  None "]
)
def test_answers_that_mean_no_edit(content: str) -> None:
    assert wire().read(asked(request_of()), answer(content)).edits == ()


def test_a_region_with_fences_of_its_own() -> None:
    text = "# Title\n```python\nx = 1\n```\nend\n"
    request = request_of(text, 3, path="a.md")
    changed = text.replace("x = 1", "x = 2")
    assert after(request, changed) == changed
    assert after(request, f"```\n{changed}```") == changed
    assert after(request, f"```markdown\n{changed}```\n") == changed


def test_a_region_that_is_one_fenced_block_and_an_answer_without_a_fence() -> None:
    text = "```python\nx = 1\n```\n"
    assert after(request_of(text, 3), "```python\nx = 2\n```") == "```python\nx = 2\n```\n"


def test_an_answer_that_repeats_the_whole_file_changes_the_region_only() -> None:
    text = "".join(f"line {n}\n" for n in range(60))
    whole = text.replace("line 30\n", "line thirty\n")
    assert after(request_of(text, text.index("line 30")), f"```\n{whole}```") == whole


def test_nothing_outside_of_the_region_is_touched() -> None:
    text = "".join(f"line {n}\n" for n in range(60))
    request = request_of(text, text.index("line 30"))
    region = asked(request).document
    assert region is not None
    for content in ("```\nshort\n```", "x\n" * 90, text[:100]):
        changed = after(request, content)
        assert changed.startswith(region.before)
        assert changed.endswith(region.after)


def test_of_a_cut_answer_only_what_is_surely_finished_counts() -> None:
    cut = NEW[: NEW.index("    greet('you')") + 6]
    assert after(request_of(), f"```\n{cut}", "length") == NEW + "\n"
    torso = NEW[: NEW.index("hello")]
    read = wire().read(asked(request_of()), answer(f"```\n{torso}", "length"))
    assert (read.edits, read.truncated) == ((), True)


def test_completions_are_cut_to_lines_that_are_whole() -> None:
    request = request_of("x = \n", 4, mode="fim", max_lines=3)

    def read(text: str, finish: str = "stop") -> tuple[str, bool]:
        reply = {"choices": [{"text": text, "finish_reason": finish}]}
        got = wire().read(asked(request), reply)
        return apply(request.text, got.edits), got.truncated

    assert read("1\n\n") == ("x = 1\n", False)
    assert read("1\ny = 2\nz =", "length") == ("x = 1\ny = 2\n", False)
    assert read("some_call(", "length") == ("x = some_call(\n", True)
    assert read("1\n2\n3\n4\n5") == ("x = 1\n2\n3\n", False)
    assert read("") == ("x = \n", False)


def test_an_answer_with_all_that_was_seen_on_the_wire() -> None:
    text = 'function greet(name) {\n  return "hello";\n}\n'
    request = request_of(text, text.index("hello"), path="greet.js")
    content = '```\nfunction greet(name) {\n  return "hello " + name;\n}\n```'
    message = {"role": "assistant", "content": content, "tool_calls": [], "tool_call_id": None}
    usage = {"prompt_tokens": 221, "reasoning_tokens": 4, "completion_tokens": 28}
    reply = {
        **{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "mercury-edit"},
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage | {"total_tokens": 249, "cached_input_tokens": 25},
        "warning": None,
    }
    read = wire().read(asked(request), reply)
    assert apply(text, read.edits) == text.replace('"hello"', '"hello " + name')
    assert (read.tokens, read.truncated) == (28, False)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ([], "not an object"),
        ({}, "no `choices`"),
        ({"choices": []}, "no `choices`"),
        ({"choices": ["x"]}, "no `choices`"),
        ({"choices": [{"text": 3}]}, "no text"),
    ],
)
def test_answers_of_another_shape(reply: object, words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        wire().read(asked(request_of()), reply)


def test_tokens_and_texts_may_be_missing() -> None:
    read = wire().read(asked(request_of()), {"choices": [{"message": {"content": None}}]})
    assert (read.edits, read.truncated, read.tokens) == ((), False, 0)


PIECES = st.sampled_from(
    [
        *("<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>", "<|edit_diff_history|>"),
        *(
            "<|/current_file_content|>",
            "<\u2060|cursor|>",
            "```",
            "=======",
            "\n",
            "\n\n",
            "é😀",
            "x = 1",
            " ",
        ),
    ]
)
FIT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS, TEXTS, TEXTS, st.data())
@settings(max_examples=200, deadline=None)
def test_text_that_looks_like_the_wire_survives_it(
    before: str, region: str, after: str, data: st.DataObject
) -> None:
    """An answer that says the escaped region again changes nothing, and the prompt has each tag once."""
    cursor = data.draw(st.integers(0, len(region)))
    document = Document("a.py", before, region, cursor, after)
    escape = Escape.of((before, region, after))
    prompt = edit_prompt(document, (), (), escape)
    for tag in ("<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>", "<|/current_file_content|>"):
        assert prompt.count(tag) == 1
    shown = prompt.split("<|code_to_edit|>\n")[1].split("\n<|/code_to_edit|>")[0]
    body = shown.replace("<|cursor|>", "")
    same = rewritten(f"```\n{body}\n```", region, escape)
    assert same is None or same.rstrip("\n") == region.rstrip("\n")
    if region.strip() not in ("", "None"):
        assert same is not None


@given(TEXTS, FIT, st.sampled_from(["stop", "length"]), st.data())
@settings(max_examples=200, deadline=None)
def test_any_answer_gives_edits_inside_the_region(
    text: str, content: str, finish: str, data: st.DataObject
) -> None:
    request = request_of(text, data.draw(st.integers(0, len(text))))
    question = asked(request)
    assert question.document is not None
    start, end = question.start, question.start + len(question.document.region)
    read = wire().read(question, answer(content, finish))
    assert all(start <= edit.start <= edit.end <= end for edit in read.edits)
    apply(text, read.edits)


NAMES = st.sampled_from(
    ["choices", "message", "content", "text", "usage", "completion_tokens", "finish_reason"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES: st.SearchStrategy[Any] = LEAVES
for _ in range(3):
    VALUES = LEAVES | st.lists(VALUES, max_size=3) | st.dictionaries(NAMES, VALUES, max_size=4)


@given(VALUES | st.fixed_dictionaries({"choices": st.lists(VALUES, max_size=2), "usage": VALUES}))
@settings(max_examples=300, deadline=None)
def test_whatever_comes_is_read_or_refused(reply: Any) -> None:
    for request in (request_of(), request_of(mode="fim")):
        try:
            read = wire().read(asked(request), reply)
        except AnswerError:
            continue
        apply(request.text, read.edits)
