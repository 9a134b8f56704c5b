"""Two replicas with Ray Serve as a process: one is killed under load, and all are replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray.serve", reason="the extra `cluster` is not installed")
pytest.importorskip("psutil", reason="psutil is not installed")

from measure_cluster import SCRIPT, cluster, under_load

pytestmark = pytest.mark.e2e


def test_neither_a_killed_replica_nor_an_update_loses_a_request() -> None:
    with cluster("--queue", "8", script=SCRIPT) as one:
        found = under_load(one, int, clients=40, seconds=1)
        assert found["answered"] > 0
        assert found["why"]
        assert all(why.startswith("lost, 429") for why in found["why"]), found

        killed, kept = one.replicas()
        found = under_load(one, killed.kill, clients=8, seconds=2)
        assert not killed.is_running()
        assert found["answered"] > 8
        assert found["lost"] == 0, found

        one.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 40
        while kept.is_running() and time.monotonic() < until:
            found = under_load(one, int, clients=4, seconds=1)
            assert found["lost"] == 0, found
        assert not kept.is_running()

        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(30) == 0


def test_one_replica_may_become_more() -> None:
    with cluster("--replicas", "1", "--max-replicas", "2", script=SCRIPT) as one:
        assert len(one.replicas()) == 1
        assert one.fim("x = ")[0] == 200


def test_ray_runs_the_application_itself(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": [{"mode": "fim", "insert": "1"}]}))
    done = subprocess.run(
        [sys.executable, "-c", RAYS_OWN],
        env=os.environ | {"REDRAFT_HOME": str(tmp_path), "REDRAFT_SCRIPT": str(script)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.stdout.splitlines()[-2:] == ["401", "200 1"], done.stderr[-2000:]


RAYS_OWN = """
import json, os, socket, urllib.error, urllib.request
from lsp_server.cluster import app
import ray
from ray import serve
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
token, TOKEN = "correct-horse-battery", os.environ["REDRAFT_HOME"] + "/token"
with open(TOKEN, "w") as file:
    file.write(token)
ray.init(num_cpus=1, include_dashboard=False, object_store_memory=2**27, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(app({"replicas": "1", "threads": "1", "no_feedback": "true", "token_file": TOKEN}))
body = json.dumps({"model": "redraft", "prompt": "x = "}).encode()
for headers in ({}, {"authorization": "Bearer " + token}):
    headers["content-type"] = "application/json"
    url = f"http://127.0.0.1:{port}/v1/fim/completions"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            print(answer.status, json.load(answer)["choices"][0]["text"])
    except urllib.error.HTTPError as error:
        print(error.code)
ray.shutdown()
"""
