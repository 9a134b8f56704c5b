"""Two replicas with Ray Serve as a process: one is killed under load, and all are replaced."""

from __future__ import annotations

import signal
import time

import pytest

pytest.importorskip("ray.serve", reason="the extra `cluster` is not installed")
pytest.importorskip("psutil", reason="psutil is not installed")

from measure_cluster import SCRIPT, cluster, under_load

pytestmark = pytest.mark.e2e


def test_neither_a_killed_replica_nor_an_update_loses_a_request() -> None:
    with cluster("--queue", "8", script=SCRIPT) as one:
        killed, kept = one.replicas()
        found = under_load(one, killed.kill, clients=8, seconds=4)
        assert not killed.is_running()
        assert found["lost"] == 0, found
        assert found["answered"] > 8

        one.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 30
        while kept.is_running() and time.monotonic() < until:
            found = under_load(one, int, clients=4, seconds=1)
            assert found["lost"] == 0, found
        assert not kept.is_running()
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(30) == 0


def test_what_has_no_room_is_refused_and_a_queue_is_bounded() -> None:
    slow = {"rules": [{"mode": "fim", "insert": "1", "delay_ms": 500}]}
    with cluster("--queue", "1", script=slow) as one:
        found = under_load(one, int, clients=8, seconds=3)
        assert found["answered"] >= 4
        refused = [why for why in found["why"] if why.startswith("lost, 429")]
        assert refused
        assert len(refused) == len(found["why"]), found
        assert '"rate_limit_reached"' in refused[0]
