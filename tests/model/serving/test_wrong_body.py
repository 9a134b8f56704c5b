"""Bodies that are wrong: what the answer says is wrong, and where."""

from __future__ import annotations

import pytest
from served import Served

FIM, CHAT = "/v1/fim/completions", "/v1/chat/completions"
OBJECT = "the body must be a JSON object, sent as application/json"


@pytest.mark.parametrize(
    ("path", "body", "message", "param"),
    [
        (
            FIM,
            '{"model": "redraft",\n "prompt": "secret" "x"}',
            "the body is not JSON: Expecting ',' delimiter at line 2, column 21",
            None,
        ),
        (FIM, '{"model": ', "the body is not JSON: Expecting value at line 1, column 11", None),
        (FIM, "", OBJECT, None),
        (FIM, '["secret"]', OBJECT, None),
        (FIM, '"secret"', OBJECT, None),
        (FIM, '{"model": "redraft"}', "`prompt`: Field required", "prompt"),
        (
            FIM,
            '{"model": "redraft", "prompt": "secret", "max_tokens": "secret"}',
            "`max_tokens`: Input should be a valid integer",
            "max_tokens",
        ),
        (
            FIM,
            '{"model": 3, "prompt": 4}',
            "`model`: Input should be a valid string (and 1 more field is wrong)",
            "model",
        ),
        (
            CHAT,
            '{"model": "redraft", "messages": [{"role": "user", "content": 3}]}',
            "`messages.0.content`: Input should be a valid string",
            "messages.0.content",
        ),
        (
            CHAT,
            '{"model": "redraft", "messages": [{"content": "secret"}]}',
            "`messages.0.role`: Field required",
            "messages.0.role",
        ),
    ],
)
def test_what_is_wrong_and_where(
    path: str, body: str, message: str, param: str | None, served: Served
) -> None:
    answer = served.client.post(path, content=body, headers={"content-type": "application/json"})
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error["message"].startswith(message)
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert "secret" not in error["message"]


def test_a_body_of_another_type_is_told_which_is_needed(served: Served) -> None:
    answer = served.client.post(FIM, content="model=redraft", headers={"content-type": "text/x"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, OBJECT)
