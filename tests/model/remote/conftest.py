"""A fake service on this machine, and a predictor that asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_service import FakeService, completion
from remotes import predictor_of

from model.remote.predictor import RemotePredictor


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService(completion("1")) as service:
        yield service


@pytest.fixture
def remote(service: FakeService) -> Iterator[RemotePredictor]:
    predictor = predictor_of(service.url + "/v1")
    yield predictor
    predictor.close()
