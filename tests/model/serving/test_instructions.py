"""What a model is told of the answer that will be enforced: its schema, or the functions that it may call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from json_schemas import PERSON
from published_checkpoints import save_published
from served import Served

from model.chat import ChatTemplate, Turn
from model.library import load
from model.serving.service import Options, Service

pytest.importorskip("llguidance", reason="llguidance is not installed")

ASKED: Any = [{"role": "user", "content": "Who is Ann?"}]
PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]"
WITH_TOOLS = "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}" + PLAIN
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + PLAIN
)
DROPS_SYSTEM = PLAIN.replace("messages %}", "messages if m.role != 'system' %}")
SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
TOOLS: Any = [
    {"type": "function", "function": {"name": "who", "description": "Tells.", "parameters": PERSON}}
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, _ = save_published(tmp_path_factory.mktemp("sdar"), "sdar")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": PLAIN}))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8192}))
    running = Served(Service(load(str(folder), threads=1), Options()))
    yield running
    running.stop()


def prompt_of(served: Served, monkeypatch: pytest.MonkeyPatch, template: str, **more: Any) -> str:
    """What the model reads when a chat is asked for, its template being this one."""
    seen: list[str] = []
    tokens = ChatTemplate.tokens

    def spied(self: ChatTemplate, tokenizer: Any, *rest: Any) -> list[int]:
        made = tokens(self, tokenizer, *rest)
        seen.append(tokenizer.decode(made))
        return made

    monkeypatch.setattr(ChatTemplate, "tokens", spied)
    monkeypatch.setattr(served.service.author, "_template", ChatTemplate(template))
    body = {"model": "redraft", "messages": ASKED, "max_tokens": 4, **more}
    answer = served.client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    (prompt,) = seen
    return prompt


def test_the_schema_stands_in_the_message_of_the_system(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = f"Answer with JSON of this JSON schema and nothing else:\n{json.dumps(PERSON)}"
    prompt = prompt_of(served, monkeypatch, PLAIN, response_format=SCHEMA)
    assert prompt == f"[system]{told}\n[user]Who is Ann?\n[assistant]"
    turns = [{"role": "system", "content": "Be short."}, *ASKED]
    prompt = prompt_of(served, monkeypatch, PLAIN, response_format=SCHEMA, messages=turns)
    assert prompt == f"[system]Be short.\n\n{told}\n[user]Who is Ann?\n[assistant]"


@pytest.mark.parametrize("template", [NO_SYSTEM, DROPS_SYSTEM])
def test_a_template_without_such_a_message_has_it_in_the_users(
    served: Served, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    prompt = prompt_of(served, monkeypatch, template, response_format={"type": "json_object"})
    told = "Answer with one JSON object and nothing else."
    assert prompt == f"[user]{told}\n\nWho is Ann?\n[assistant]"


def test_nothing_is_said_where_any_text_will_do(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for more in ({}, {"response_format": {"type": "text"}}, {"tools": TOOLS}):
        assert prompt_of(served, monkeypatch, PLAIN, **more) == "[user]Who is Ann?\n[assistant]"


def test_tools_have_their_own_place_where_the_template_has_one(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = "Answer with the arguments of a call of `who` as JSON."
    asked = {"tools": TOOLS, "tool_choice": "required"}
    there = f"[system]{task}\n[user]Who is Ann?\n[assistant]"
    assert prompt_of(served, monkeypatch, WITH_TOOLS, **asked) == "who " + there
    listed = f"These functions can be called:\n{json.dumps(TOOLS[0]['function'])}\n{task}"
    prompt = prompt_of(served, monkeypatch, PLAIN, **asked)
    assert prompt == f"[system]{listed}\n[user]Who is Ann?\n[assistant]"


def test_a_conversation_that_nobody_began_has_a_message_of_the_system() -> None:
    class Letters:
        def names_control(self, text: str) -> bool:
            return False

    template, said = ChatTemplate(NO_SYSTEM), Turn("assistant", "Hello")
    assert template.instructed(Letters(), [said], "Be short.") == [
        Turn("system", "Be short."),
        said,
    ]
