"""The official SDKs, unchanged, with their base URL set to our service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from edit_prompt_shapes import Situation, kilo, zed
from served import Serve, Served
from tiny import random_bundle

from model.bundle import EMBEDDED
from model.protocol import Prediction, Request, Stop
from model.serving.security import Guard
from model.serving.service import Options, Service

inceptionai = pytest.importorskip("inceptionai", reason="the SDK inceptionai is not installed")
openai = pytest.importorskip("openai", reason="the SDK openai is not installed")

TOKEN = "a-token-of-the-tests"
ASKED: Any = [{"role": "user", "content": "Say something."}]
EDIT = kilo(Situation("a.py", ("total = 1", "print(count)"), 0, 1, 1, 6))


class Babbler:
    """A tiny random model: its chats are noise, but they are made like real ones."""

    name = "babbler"

    def __init__(self) -> None:
        self.bundle = random_bundle("block")
        self.bundle.folder = EMBEDDED  # for the chat template

    def predict(self, request: Request, stop: Stop) -> Prediction:
        return Prediction()


@pytest.fixture(scope="module")
def babbler() -> Iterator[Served]:
    served = Served(Service(Babbler(), Options()))
    yield served
    served.stop()


@pytest.fixture
def inception(served: Served, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("INCEPTION_BASE_URL", served.url)
    monkeypatch.setenv("INCEPTION_API_KEY", TOKEN)
    with inceptionai.Inception(max_retries=0) as client:
        yield client


@pytest.fixture
def chatting(babbler: Served, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("INCEPTION_BASE_URL", babbler.url)
    monkeypatch.setenv("INCEPTION_API_KEY", TOKEN)
    with inceptionai.Inception(max_retries=0) as client:
        yield client


def test_inception_fim(inception: Any) -> None:
    made = inception.fim.completions.create(model="mercury-edit-2", prompt="x = ", suffix="\n")
    assert made.choices[0].text == "a + b\nreturn c"
    assert made.object == "text_completion"
    assert made.usage.prompt_tokens_details.cached_tokens == 0


def test_inception_fim_in_pieces(inception: Any) -> None:
    pieces = list(
        inception.fim.completions.create(model="mercury-edit-2", prompt="x = ", stream=True)
    )
    assert "".join(c.text for p in pieces for c in p.choices) == "a + b\nreturn c"
    assert pieces[-1].choices[0].finish_reason == "stop"


def test_inception_edit(inception: Any) -> None:
    made = inception.edit.completions.create(
        model="mercury-edit-2", messages=[{"role": "user", "content": EDIT}]
    )
    assert made.choices[0].message.content == "```\ntotal = 1\nprint(total)\n```"
    assert made.object == "edit.completion"
    assert made.usage.total_tokens > 0


def test_inception_is_told_of_no_edit_as_its_service_says_it(inception: Any) -> None:
    nothing = zed(Situation("a.py", ("x = 1",), 0, 0, 0, 0))
    made = inception.edit.completions.create(
        model="mercury-edit-2", messages=[{"role": "user", "content": nothing}]
    )
    assert made.choices[0].message.content == "```\nNone\n```"


def test_inception_models(inception: Any) -> None:
    for models in (inception.models.list(), inception.models.list_fim()):
        assert [model.id for model in models.data] == ["scripted"]
        assert models.data[0].pricing.prompt == "0"
    assert inception.models.list_chat().data == []


def test_inception_errors(inception: Any, serve: Serve) -> None:
    ask = inception.fim.completions.create
    with pytest.raises(inceptionai.NotFoundError) as caught:
        ask(model="gpt-9", prompt="x")
    assert caught.value.body["error"]["code"] == "model_not_found"
    with pytest.raises(inceptionai.BadRequestError):
        ask(model="mercury-edit-2", prompt="x", max_tokens=-1)
    with pytest.raises(inceptionai.BadRequestError, match="tools"):
        inception.chat.completions.create(model="redraft", messages=ASKED, tools=[{}])
    locked = serve(guard=Guard(token=TOKEN))
    with pytest.raises(inceptionai.AuthenticationError):
        inceptionai.Inception(base_url=locked.url, api_key="wrong").models.list()
    assert inceptionai.Inception(base_url=locked.url, api_key=TOKEN).models.list().data


def test_inception_chat(chatting: Any) -> None:
    ask = chatting.chat.completions.create
    made = ask(model="mercury-2", messages=ASKED, max_tokens=12)
    text = made.choices[0].message.content
    assert text
    assert made.model == "babbler"
    assert made.usage.completion_tokens <= 12
    pieces = list(ask(model="mercury-2", messages=ASKED, max_tokens=12, stream=True))
    assert "".join(c.delta.content or "" for p in pieces for c in p.choices) == text
    assert pieces[-1].choices[0].finish_reason == made.choices[0].finish_reason


def test_inception_chat_diffusing(chatting: Any) -> None:
    ask = chatting.chat.completions.create
    asked = {"model": "mercury-2", "messages": ASKED, "max_tokens": 24}
    plain = ask(**asked).choices[0].message.content
    *pieces, ended = list(ask(**asked, stream=True, diffusing=True))
    shown = [piece.choices[0].delta.content for piece in pieces]
    assert shown[-1] == plain
    assert ended.choices[0].delta.content is None
    assert len(set(shown)) > 3
    progress = [piece.diffusion_meta["diffusion_progress"] for piece in pieces]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


def test_openai_chat_and_completions(babbler: Served) -> None:
    with openai.OpenAI(base_url=babbler.url + "/v1", api_key=TOKEN, max_retries=0) as client:
        chat = client.chat.completions.create(model="babbler", messages=ASKED, max_tokens=8)
        assert chat.choices[0].message.content
        pieces = client.chat.completions.create(
            model="babbler",
            messages=ASKED,
            max_completion_tokens=8,
            stream=True,
            stream_options={"include_usage": True},
        )
        *texts, last = list(pieces)
        said = "".join(c.delta.content or "" for p in texts for c in p.choices)
        assert said == chat.choices[0].message.content
        assert last.usage.completion_tokens == chat.usage.completion_tokens
        text = client.completions.create(model="babbler", prompt="def f", max_tokens=5)
        assert text.choices[0].text
        streamed = client.completions.create(
            model="babbler", prompt="def f", max_tokens=5, stream=True
        )
        assert "".join(c.text for p in streamed for c in p.choices) == text.choices[0].text
        assert [model.id for model in client.models.list()] == ["babbler"]
        assert client.models.retrieve("babbler").id == "babbler"
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="other", messages=ASKED)


def test_a_prompt_without_room_is_told_so(babbler: Served) -> None:
    with openai.OpenAI(base_url=babbler.url + "/v1", api_key=TOKEN, max_retries=0) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            client.completions.create(model="babbler", prompt="x y " * 3000)
        assert caught.value.code == "context_length_exceeded"


def test_stop_strings_end_a_text_and_are_not_in_it(babbler: Served) -> None:
    with openai.OpenAI(base_url=babbler.url + "/v1", api_key=TOKEN, max_retries=0) as client:
        whole = client.completions.create(model="babbler", prompt="def f", max_tokens=12)
        text = whole.choices[0].text
        word = text[len(text) // 2 :][:3]
        asked: Any = {"model": "babbler", "prompt": "def f", "max_tokens": 12, "stop": [word]}
        cut = client.completions.create(**asked).choices[0]
        assert cut.text == text[: text.index(word)]
        assert cut.finish_reason == "stop"
        pieces = client.completions.create(**asked, stream=True)
        assert "".join(c.text for p in pieces for c in p.choices) == cut.text


def test_the_async_client_and_feedback(served: Served, home: Path) -> None:
    import asyncio

    async def ask() -> Any:
        async with inceptionai.AsyncInception(base_url=served.url, api_key=TOKEN) as client:
            return await client.fim.completions.create(model="mercury-edit-2", prompt="x = ")

    made = asyncio.run(ask())
    told = {"request_id": made.id, "user_action": "accept", "provider_name": "zed"}
    assert served.client.post("/feedback", json=told).status_code == 200
    assert served.client.post("/feedback", json=told).status_code == 404  # it counts once
