"""What the tests of the remote predictor ask, and of whom."""

from __future__ import annotations

from typing import Any

from model.protocol import Request
from model.remote.link import Link
from model.remote.predictor import RemotePredictor
from model.remote.wire import Wire

KEY = "sk-0123456789abcdef"
FIM = Request("fim", "a.py", "x = \n", 4)


def predictor_of(url: str, key: str = KEY, **more: Any) -> RemotePredictor:
    return RemotePredictor(Link(url, key), Wire("inception", "mercury-edit-2", 8192), **more)
