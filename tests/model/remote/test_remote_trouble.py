"""A service that fails: what is tried again, what is told, and when it is left alone."""

from __future__ import annotations

import logging

import pytest
from fake_service import FakeService, Reply, completion, refusal
from remotes import FIM, KEY, predictor_of

from model.protocol import Request, Stop, Unavailable
from model.remote.pacing import Breaker, RetryBudget
from model.remote.predictor import RemotePredictor


@pytest.mark.parametrize(
    "trouble",
    [refusal(500), refusal(503), refusal(429), Reply(drop=True)],
    ids=["500", "503", "429", "dropped"],
)
def test_one_more_attempt_after_what_may_pass(
    service: FakeService, remote: RemotePredictor, trouble: Reply
) -> None:
    service.replies = [trouble]
    assert remote.predict(FIM, Stop(5)).edits
    assert len(service.heard) == 2


def test_no_second_attempt_without_budget_or_time(service: FakeService) -> None:
    remote = predictor_of(service.url, budget=RetryBudget(tokens=0.5))
    service.replies = [refusal(503)]
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-failed"
    remote = predictor_of(service.url)
    service.replies = [refusal(503, headers={"Retry-After": "30"})]
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-failed"
    assert len(service.heard) == 2
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-resting"


@pytest.mark.parametrize("asked_for", ["3600", "inf", "1e999"])
def test_nobody_waits_long_for_a_second_attempt(
    service: FakeService, remote: RemotePredictor, asked_for: str
) -> None:
    service.replies = [refusal(429, headers={"Retry-After": asked_for})]
    assert remote.predict(FIM, Stop()).suppressed == "remote-failed"
    assert len(service.heard) == 1
    assert 0 < remote.breaker.pause_s <= 60


@pytest.mark.parametrize(
    "reply",
    [
        refusal(400),
        Reply(b"<html>"),
        Reply(b"[" * 100_000),
        Reply({"choices": []}),
        completion("a\x00b"),
        completion("\ud800"),
    ],
    ids=["400", "html", "deep", "no choices", "NUL", "surrogate"],
)
def test_bad_answers_are_not_asked_for_twice(
    service: FakeService, remote: RemotePredictor, reply: Reply
) -> None:
    service.replies = [reply]
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-failed"
    assert len(service.heard) == 1


def test_an_episode_of_trouble_is_told_once_and_the_service_is_left_alone(
    service: FakeService,
) -> None:
    now = [0.0]
    breaker = Breaker(clock=lambda: now[0])
    remote = predictor_of(service.url, breaker=breaker, budget=RetryBudget(tokens=0, share=0))
    service.default = refusal(500, "out of memory")
    outcomes = []
    for _ in range(10):
        try:
            outcomes.append(remote.predict(FIM, Stop(5)).suppressed)
        except Unavailable as error:
            outcomes.append(str(error))
    assert outcomes[:2] == ["remote-failed"] * 2
    assert "failed (status 500: out of memory)" in (outcomes[2] or "")
    assert outcomes[3:] == ["remote-resting"] * 7
    assert len(service.heard) == 3
    assert remote.backend["state"] == "open"
    assert "out of memory" in remote.backend["problem"]
    now[0] += 1
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-failed"
    now[0] += 2
    service.default = completion("1")
    assert remote.predict(FIM, Stop(5)).edits
    assert remote.backend["state"] == "closed"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "refuses the API key"),
        (402, "wants to be paid"),
        (404, "does not know the address or the model"),
    ],
)
def test_what_only_the_user_can_mend_is_told_at_once(
    service: FakeService, remote: RemotePredictor, status: int, words: str
) -> None:
    service.default = refusal(status, f"Incorrect key {KEY}\n<b>see</b>")
    with pytest.raises(Unavailable, match=words) as error:
        remote.predict(FIM, Stop(5))
    assert KEY not in str(error.value)
    assert "Incorrect key ... <b>see</b>" in str(error.value)
    assert remote.predict(FIM, Stop(5)).suppressed == "remote-resting"


def test_the_key_and_the_text_are_never_logged(
    service: FakeService, remote: RemotePredictor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "model")
    service.replies = [refusal(503, KEY), refusal(500, KEY), completion("1")]
    private = Request("fim", "a.py", "PRIVATE = \n", 10)
    remote.predict(private, Stop(5))
    remote.predict(private, Stop(5))
    assert "one more attempt" in caplog.text
    ours = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith("model"))
    assert KEY not in ours
    assert "PRIVATE" not in ours
