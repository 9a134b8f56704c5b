"""The JSON-RPC layer, without a process."""

from __future__ import annotations

import pytest

from lsp_server.server import create_server


def test_a_cancellation_after_the_answer_is_nothing_to_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    create_server().protocol._handle_cancel_notification("answered")
    assert caplog.records == []
