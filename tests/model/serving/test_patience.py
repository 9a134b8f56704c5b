"""A client's own time limit as the deadline of its request."""

from __future__ import annotations

import time
from typing import Any

import pytest
from served import Serve

from model.protocol import Prediction, Request, Stop
from model.serving.patience import SHARE, patience

openai = pytest.importorskip("openai", reason="the SDK openai is not installed")
inceptionai = pytest.importorskip("inceptionai", reason="the SDK inceptionai is not installed")


class Noting:
    """Answers at once, and notes how much time it was given."""

    name = "noting"

    def __init__(self) -> None:
        self.given: list[float] = []

    def predict(self, request: Request, stop: Stop) -> Prediction:
        self.given.append(stop.remaining)
        return Prediction()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"x-stainless-read-timeout": "10"}, 10 * SHARE),
        ({"x-inception-read-timeout": "2.5"}, 2.5 * SHARE),
        ({"x-stainless-read-timeout": "10", "x-inception-read-timeout": "3"}, 3 * SHARE),
        ({"x-stainless-read-timeout": "soon", "x-inception-read-timeout": "3"}, 3 * SHARE),
        *(({"x-stainless-read-timeout": text}, None) for text in ("nan", "-1", "0", "inf", "")),
    ],
)
def test_what_a_client_says(headers: dict[str, str], expected: float | None) -> None:
    assert patience(headers) == (None if expected is None else pytest.approx(expected))


def test_the_shorter_of_both_limits_is_the_deadline(serve: Serve) -> None:
    noting = Noting()
    served = serve(noting, timeout=20.0)
    for seconds in ("8", "300"):
        served.client.post(
            "/v1/fim/completions",
            json={"model": "redraft", "prompt": " "},
            headers={"X-Stainless-Read-Timeout": seconds},
        )
    assert 0 < noting.given[0] <= 8 * SHARE
    assert 8 < noting.given[1] <= 20


def test_the_sdks_say_it(serve: Serve) -> None:
    noting = Noting()
    served = serve(noting, timeout=20.0)
    clients: list[Any] = [
        openai.OpenAI(base_url=served.url + "/v1", api_key="none-needed", timeout=7),
        inceptionai.Inception(base_url=served.url, api_key="none-needed", timeout=7),
    ]
    for client in clients:
        with client:
            made = client.post(
                "/fim/completions" if client is clients[0] else "/v1/fim/completions",
                body={"model": "redraft", "prompt": " "},
                cast_to=object,
            )
            assert made
    assert len(noting.given) == 2
    assert all(0 < given <= 7 * SHARE for given in noting.given)


def test_what_waits_for_longer_than_its_client_is_not_begun(serve: Serve) -> None:
    served = serve(timeout=20.0)
    job = served.service.submit(lambda _, stop: time.sleep(1))
    answer = served.client.post(
        "/v1/fim/completions",
        json={"model": "redraft", "prompt": "x = "},
        headers={"X-Stainless-Read-Timeout": "0.5"},
    )
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "timeout"
    assert job.future.done()
