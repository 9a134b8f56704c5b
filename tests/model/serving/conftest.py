"""Services for tests; without the extra `serve` they are skipped."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

NEEDED = ("fastapi", "greenlet", "jinja2", "prometheus_client", "uvicorn", "httpx")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

if MISSING:
    collect_ignore_glob = ["test_*.py"]
    print(f"tests of the service are skipped: {', '.join(MISSING)} not installed")
else:
    from served import RULES, Serve, Served

    from model.protocol import Predictor
    from model.scripted import ScriptedPredictor
    from model.serving.service import Options, Service

    @pytest.fixture
    def serve() -> Iterator[Serve]:
        """Starts services, and stops them behind the test."""
        running: list[Served] = []

        def start(predictor: Predictor | None = None, **options: Any) -> Served:
            served = Served(Service(predictor or ScriptedPredictor(RULES), Options(**options)))
            running.append(served)
            return served

        yield start
        for served in running:
            served.stop()

    @pytest.fixture(scope="module")
    def served() -> Iterator[Served]:
        """One service with the scripted rules, for all tests of a module."""
        served = Served(Service(ScriptedPredictor(RULES), Options()))
        yield served
        served.stop()
