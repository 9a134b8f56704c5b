"""Requests at random: no fault that is not declared, no hang, and the service answers as before.

`REDRAFT_FUZZ_EXAMPLES=400` makes that many requests for each operation instead of a dozen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from fuzz import DECLARED, RULES, fuzz
from hypothesis import HealthCheck, given, settings
from served import Serve, Served

from model.scripted import ScriptedPredictor
from model.serving.security import Guard

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

EXAMPLES = int(os.environ.get("REDRAFT_FUZZ_EXAMPLES", "12"))
QUICK = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def test_changed_requests_and_raw_bytes(serve: Serve) -> None:
    served = serve(ScriptedPredictor(RULES), guard=Guard(body_seconds=0.5))
    before = served.fim().json()["choices"]
    seen = fuzz(served.port, 200, seed=3)
    assert seen[200] > 10
    assert seen[400] > 40
    assert served.service.engine.pending == 0
    assert served.fim().json()["choices"] == before


def described(served: Served) -> dict[str, Any]:
    schema: dict[str, Any] = served.client.get("/openapi.json").json()
    return schema


def test_every_path_is_described(served: Served) -> None:
    schema = described(served)
    assert "/v1/edit/completions" in schema["paths"]
    for path in schema["paths"].values():
        for operation in path.values():
            assert "422" not in operation["responses"]
            assert operation["operationId"]
            assert "200" in operation["responses"]


def test_requests_made_from_the_description(serve: Serve) -> None:
    served = serve(ScriptedPredictor(RULES))
    schema = schemathesis.openapi.from_dict(described(served))
    schema.config.update(base_url=served.url)
    for operation in schema.get_all_operations():
        _try(operation.ok(), served)
    page = served.client.get("/metrics").text
    assert 'redraft_requests_total{endpoint="/v1/edit/completions",status="400"}' in page
    assert 'redraft_requests_total{endpoint="/v1/fim/completions",status="200"}' in page


def _try(operation: Any, served: Served) -> None:
    @given(operation.as_strategy())
    @QUICK
    def run(case: Any) -> None:
        if isinstance(case.body, dict) and "model" in case.body:
            case.body["model"] = "redraft"
        response = case.call()
        assert response.status_code in DECLARED
        case.validate_response(response, excluded_checks=_without(schemathesis))

    run()


def _without(library: Any) -> list[Callable[..., Any]]:
    """Checks that do not hold here: unknown fields are passed over on purpose."""
    return [library.checks.CHECKS.get_one("positive_data_acceptance")]
