"""What the service answers to FIM and edit requests, and to what is wrong with them."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import httpx
import pytest
from edit_prompt_shapes import SHAPES, Situation, body, kilo, zed
from served import RULES, Serve, Served

from model.scripted import ScriptedPredictor

SITUATION = Situation(
    *("src/app.py", ("import sys", "total = 1", "print(count)", "", "count()")),
    *(1, 2, 2, 5),
    edits=(("src/app.py", 2, ("count = 1",), ("total = 1",)),),
)
NOTHING = Situation("a.py", ("x", "y", "z"), 1, 1, 1, 0)


def events(response: httpx.Response) -> list[dict[str, Any]]:
    """The objects of a stream, which must end as streams end."""
    lines = [line for line in response.text.split("\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_fim(served: Served) -> None:
    answer = served.fim(suffix="\n", max_tokens=100).json()
    assert answer["id"].startswith("cmpl-")
    assert answer["object"] == "text_completion"
    assert answer["model"] == "scripted"
    assert answer["choices"][0]["text"] == "a + b\nreturn c"  # up to the blank line, by default
    assert answer["choices"][0]["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["cached_input_tokens"] == usage["prompt_tokens_details"]["cached_tokens"] == 0
    assert answer["redraft"]["confidence"] == 0.9


def test_stop_strings_are_the_clients(served: Served) -> None:
    assert served.fim(stop=[]).json()["choices"][0]["text"] == RULES[3]["insert"]
    assert served.fim(max_tokens=10**30).json()["choices"][0]["finish_reason"] == "stop"
    assert served.fim(stop="+").json()["choices"][0]["text"] == "a "
    assert served.fim(stop=["\n", "b"]).json()["choices"][0]["text"] == "a + "


@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_few_tokens_give_a_short_answer(served: Served, tokens: int) -> None:
    choice = served.fim(max_tokens=tokens).json()["choices"][0]
    assert choice["text"]
    assert RULES[3]["insert"].startswith(choice["text"])
    assert len(choice["text"]) < len("a + b\nreturn c")
    assert choice["finish_reason"] == "length"


def test_fim_in_pieces(served: Served) -> None:
    response = served.fim(stream=True, stream_options={"include_usage": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    *pieces, ended, usage = events(response)
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == "a + b\nreturn c"
    assert ended["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] > 0
    assert len({piece["id"] for piece in (*pieces, ended, usage)}) == 1


def test_completions_with_a_suffix_are_fim(served: Served) -> None:
    asked = {"model": "redraft", "prompt": "x = ", "suffix": "<|endoftext|>", "stop": ["\n"]}
    answer = served.client.post("/v1/completions", json=asked).json()
    assert answer["choices"][0]["text"] == "a + b"
    assert "redraft" in answer


@pytest.mark.parametrize(
    "prompt",
    [
        "<|fim_prefix|>x = <|fim_suffix|>\n<|fim_middle|>",
        "<fim_prefix>x = <fim_suffix>\n<fim_middle>",
        "<PRE> x =  <SUF>\n <MID>",
        "[SUFFIX]\n[PREFIX]x = ",
    ],
)
def test_completions_with_fim_tags_are_fim(serve: Serve, prompt: str) -> None:
    served = serve(ScriptedPredictor([{"when": {"regex": "^x = $"}, "insert": "1"}]))
    asked = {"model": "redraft", "prompt": prompt, "stop": ["<|endoftext|>"]}
    answer = served.client.post("/v1/completions", json=asked).json()
    assert answer["choices"][0]["text"] == "1"
    twice = asked | {"prompt": prompt.replace("x =", "'<|fim_suffix|><fim_suffix> <SUF>[PREFIX]'")}
    refused = served.client.post("/v1/completions", json=twice).json()
    assert refused["error"]["code"] == "ambiguous_prompt"


@pytest.mark.parametrize("client", SHAPES)
def test_an_edit_rewrites_the_region(served: Served, client: str) -> None:
    asked = body(client, SHAPES[client](SITUATION))
    response = served.client.post("/v1/edit/completions", json=asked)
    assert response.status_code == 200, response.text
    if asked.get("stream"):
        *pieces, ended = events(response)
        content = "".join(piece["choices"][0]["delta"]["content"] for piece in pieces)
        assert pieces[0]["choices"][0]["delta"]["role"] == "assistant"
        assert ended["choices"][0]["finish_reason"] == "stop"
    else:
        answer = response.json()
        assert answer["object"] == "edit.completion"
        assert answer["id"].startswith("cmpl-")
        content = answer["choices"][0]["message"]["content"]
    assert content == "```\ntotal = 1\nprint(total)\n```"


def test_an_edit_outside_of_the_region_is_no_edit(served: Served) -> None:
    away = Situation("src/app.py", ("a", "b", "c", "d", "count()"), 0, 1, 1, 0)
    answer = served.edit(kilo(away)).json()
    assert answer["choices"][0]["message"]["content"] == "```\na\nb\n```"
    assert answer["redraft"]["suppressed"] == "outside-region"
    assert answer["redraft"]["shown"] is False


AGENTS = {
    "zed": "Zed/0.999.0",
    "continue": "node",
    "cursortab": "Go-http-client/1.1",
    "kilo": "node",
}


@pytest.mark.parametrize("client", SHAPES)
def test_no_edit_is_said_as_the_client_reads_it(served: Served, client: str) -> None:
    asked = body(client, SHAPES[client](NOTHING))
    headers = {"user-agent": AGENTS[client]}
    response = served.client.post("/v1/edit/completions", json=asked, headers=headers)
    assert response.headers["x-redraft-shown"] == "false"
    if asked.get("stream"):
        content = "".join(p["choices"][0]["delta"].get("content", "") for p in events(response))
    else:
        content = response.json()["choices"][0]["message"]["content"]
    said = "None" if client in ("zed", "cursortab") else "y"
    assert content == f"```\n{said}\n```"


def test_no_edit_can_be_said_in_one_way(serve: Serve) -> None:
    for how, said in (("none", "None"), ("unchanged", "y")):
        answer = serve(no_edit=how).edit(zed(NOTHING)).json()
        assert answer["choices"][0]["message"]["content"] == f"```\n{said}\n```"


def test_secrets_get_no_edit(served: Served) -> None:
    secret = Situation("conf/.env", SITUATION.lines, 1, 2, 2, 5)
    answer = served.edit(kilo(secret)).json()
    assert answer["redraft"]["suppressed"] == "secret-file"
    assert answer["choices"][0]["message"]["content"] == "```\ntotal = 1\nprint(count)\n```"


def test_strict_wants_one_message(serve: Serve, served: Served) -> None:
    asked = body("continue", kilo(SITUATION))
    strict = serve(strict=True).client.post("/v1/edit/completions", json=asked)
    assert strict.status_code == 400
    assert strict.json()["error"]["param"] == "messages"
    assert served.client.post("/v1/edit/completions", json=asked).status_code == 200


@pytest.mark.parametrize(
    ("path", "change", "status", "code", "param"),
    [
        ("/v1/fim/completions", {"prompt": None}, 400, "invalid_request", "prompt"),
        ("/v1/fim/completions", {"max_tokens": 0}, 400, "invalid_request", "max_tokens"),
        ("/v1/fim/completions", {"n": 2}, 400, "unsupported_parameter", "n"),
        ("/v1/fim/completions", {"model": "gpt-9"}, 404, "model_not_found", "model"),
        ("/v1/fim/completions", {"prompt": "a\0b"}, 400, "binary", "prompt"),
        ("/v1/fim/completions", {"prompt": "x" * 30_000}, 400, "line-too-long", "prompt"),
        ("/v1/completions", {"prompt": ["a", "b"]}, 400, "unsupported_parameter", "prompt"),
        ("/v1/completions", {"echo": True}, 400, "unsupported_parameter", "echo"),
        ("/v1/completions", {"logprobs": 1}, 400, "unsupported_parameter", "logprobs"),
        ("/v1/edit/completions", {"messages": []}, 400, "invalid_request", "messages"),
        ("/v1/chat/completions", {}, 400, "model_not_supported", "model"),
        ("/v1/chat/completions", {"tools": [{}]}, 400, "invalid_request", "tools.0.function"),
        (
            "/v1/chat/completions",
            {"functions": [{"name": "add"}]},
            *(400, "unsupported_parameter", "functions"),
        ),
        ("/feedback", {"request_id": "cmpl-0"}, 404, "request_not_found", "request_id"),
        ("/feedback", {"user_action": "maybe"}, 400, "invalid_request", "user_action"),
    ],
)
def test_what_is_wrong_is_told(
    served: Served, path: str, change: dict[str, Any], status: int, code: str, param: str
) -> None:
    message = {"role": "user", "content": "hello"}
    right = {"model": "redraft", "prompt": "x", "messages": [message]}
    right |= {"request_id": "cmpl-1", "user_action": "accept"}
    response = served.client.post(path, json=right | change)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["message"]
    assert error["type"] == "invalid_request_error"


def test_what_is_no_request_at_all(served: Served) -> None:
    post = served.client.post
    for content in (b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"model":1e999}'):
        headers = {"content-type": "application/json"}
        response = post("/v1/fim/completions", content=content, headers=headers)
        assert response.status_code == 400, content[:10]
        assert response.json()["error"]["type"] == "invalid_request_error"
    assert post("/nowhere").status_code == 404
    assert served.client.get("/v1/fim/completions").json()["error"]["message"]
    no_json = post("/v1/fim/completions", content=b"x=1", headers={"content-type": "text/plain"})
    assert no_json.status_code in (400, 415)


def test_a_lone_surrogate_comes_back(serve: Serve) -> None:
    echo = serve(ScriptedPredictor([{"insert": "\ud83d!"}]))
    content = rb'{"model": "redraft", "prompt": "x \ud83d"}'
    headers = {"content-type": "application/json"}
    response = echo.client.post("/v1/fim/completions", content=content, headers=headers)
    assert response.status_code == 200
    assert response.json()["choices"][0]["text"] == "\ud83d!"


def test_a_failing_model_is_a_declared_fault_that_quotes_nothing(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    response = served.fim("fail ")
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "model_failed"
    assert "secret" not in response.text + caplog.text
    assert served.fim().status_code == 200


def test_nothing_to_say_is_an_empty_answer(served: Served) -> None:
    answer = served.fim("nothing ").json()
    assert answer["choices"][0]["text"] == ""
    assert answer["redraft"]["suppressed"] == "no-prediction"


def test_models(served: Served) -> None:
    get = served.client.get
    (model,) = get("/v1/models").json()["data"]
    assert model["id"] == "scripted"
    assert "/v1/fim/completions" in model["supported_endpoints"]
    assert get("/v1/models/scripted").json() == model
    assert get("/v1/models/other").json()["error"]["code"] == "model_not_found"
    assert get("/v1/fim/completions/models").json()["data"] == [model]
    assert get("/v1/edit/completions/models").json()["data"] == [model]
    assert get("/v1/chat/completions/models").json()["data"] == []


def test_metrics_count_and_hold_no_text(serve: Serve) -> None:
    served = serve()
    served.fim("very secret prompt")
    served.client.get("/secret/path")
    served.fim(model="secret-model")
    page = served.client.get("/metrics").text
    wanted = 'redraft_requests_total{endpoint="/v1/fim/completions",status="200"} 1.0'
    assert wanted in page
    assert 'redraft_requests_total{endpoint="other",status="404"} 1.0' in page
    assert 'redraft_answers_total{endpoint="/v1/fim/completions",shown="true"} 1.0' in page
    assert "secret" not in page


def test_the_queue_has_a_bound_and_a_client_that_leaves_ends_its_work(serve: Serve) -> None:
    served = serve(waiting=2)
    asked = json.dumps({"model": "redraft", "prompt": "slow "}).encode()
    head = f"POST /v1/fim/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(asked)}"
    head += "\r\nContent-Type: application/json\r\n\r\n"
    waiting = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(2)]
    for one in waiting:
        one.sendall(head.encode() + asked)
    _until(lambda: served.service.engine.pending == 2)
    refused = served.fim()
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert refused.json()["error"]["code"] == "rate_limit_reached"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    for one in waiting:
        one.close()
    _until(lambda: served.service.engine.pending == 0)  # long before their 20 s are over
    assert served.fim().status_code == 200


def test_a_request_that_takes_too_long_ends(serve: Serve) -> None:
    served = serve(timeout=2.0)
    response = served.fim("slow ")
    assert response.status_code == 200  # what is decided by then is the answer
    assert response.json()["choices"][0]["text"] == ""
    assert response.json()["redraft"]["suppressed"] == "deadline"


def test_a_request_that_waits_too_long_is_told_so(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = {"delay_ms": 600, "ignore_stop": True, "insert": "x"}
    served = serve(ScriptedPredictor([rule]), timeout=0.1)
    monkeypatch.setattr("model.serving.engine.GRACE_S", 0.1)
    response = served.fim()
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "timeout"


def _until(true: Any, seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
