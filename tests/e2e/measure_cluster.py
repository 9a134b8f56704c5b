"""Measures several replicas behind one door: `python -m tests.e2e.measure_cluster [kill] [update] [hits] [burst]
[autoscale]`.

Starts `redraft serve --replicas 2` for each measurement, and needs the extra `cluster`. `hits` and `burst` use the
embedded model, the others a scripted predictor. Prints one line of JSON per measurement.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import psutil

CLIENTS, SECONDS, DELAY_MS = 20, 20.0, 50
SESSIONS, TURNS = 4, 6


class Cluster:
    """A running `redraft serve --replicas 2`."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url, self.process = url, process

    def replicas(self) -> list[psutil.Process]:
        """The processes of the replicas, the oldest first."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with_name = child.cmdline() if child.is_running() else []
            if with_name and "ServeReplica" in with_name[0]:
                found.append(child)
        return sorted(found, key=lambda one: one.create_time())

    def fim(self, prompt: str, user: str = "", **more: Any) -> tuple[int, dict[str, Any], float]:
        """Status, body and seconds of one request; status 0 when there was no answer."""
        body = {"model": "redraft", "prompt": prompt, **more} | ({"user": user} if user else {})
        asked = urllib.request.Request(
            self.url + "/v1/fim/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        started = time.perf_counter()
        try:
            with urllib.request.urlopen(asked, timeout=90) as answer:
                return answer.status, json.load(answer), time.perf_counter() - started
        except urllib.error.HTTPError as error:
            return error.code, {"said": error.read().decode()}, time.perf_counter() - started
        except (OSError, ValueError) as error:
            return 0, {"said": str(error)}, time.perf_counter() - started


@contextmanager
def cluster(*arguments: str, script: dict[str, Any] | None = None) -> Iterator[Cluster]:
    """Two replicas of one thread each; with a script no weights are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"REDRAFT_HOME": folder}
        if script is not None:
            path = Path(folder) / "script.json"
            path.write_text(json.dumps(script))
            env["REDRAFT_SCRIPT"] = str(path)
        command = [sys.executable, "-m", "lsp_server", "serve", "--port", "0", "--no-feedback"]
        options = ["--replicas", "2", "--threads", "1", *arguments]
        process = subprocess.Popen(
            [*command, *options], env=env, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
        )
        try:
            assert process.stdout
            said = process.stdout.readline()
            assert said.startswith("Redraft serves"), said
            yield Cluster(said.split()[-1], process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def under_load(
    one: Cluster, midway: Callable[[], object], *, clients: int = CLIENTS, seconds: float = SECONDS
) -> dict[str, Any]:
    """Clients that ask again as soon as they have an answer; `midway` happens meanwhile."""
    ends = time.monotonic() + seconds
    outcomes: Counter[str] = Counter()
    times: list[float] = []
    lock = threading.Lock()

    def client(number: int) -> None:
        while time.monotonic() < ends:
            status, body, took = one.fim(f"x{number} = ", f"client {number}")
            right = status == 200 and body["choices"][0]["text"] == "1"
            with lock:
                outcomes["answered" if right else f"lost, {status} {body.get('said', '')}"] += 1
                times.append(took)

    timer = threading.Timer(seconds / 2, midway)
    timer.start()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    timer.join()
    answered = outcomes.pop("answered", 0)
    return {
        "sent": len(times),
        "answered": answered,
        "lost": len(times) - answered,
        "why": dict(outcomes),
        "longest_s": round(max(times), 2),
    }


SCRIPT = {"rules": [{"mode": "fim", "insert": "1", "delay_ms": DELAY_MS}]}


def kill(clients: int = CLIENTS, seconds: float = SECONDS) -> dict[str, Any]:
    """One of two replicas is killed under load."""
    with cluster("--queue", "32", script=SCRIPT) as one:
        killed = one.replicas()[0]
        found = under_load(one, killed.kill, clients=clients, seconds=seconds)
        return found | {"killed": not killed.is_running(), "replicas": len(one.replicas())}


def update(clients: int = CLIENTS, seconds: float = SECONDS * 2) -> dict[str, Any]:
    """All replicas are replaced under load."""
    with cluster("--queue", "32", script=SCRIPT) as one:
        before = {replica.pid for replica in one.replicas()}

        def renew() -> None:
            one.process.send_signal(signal.SIGHUP)

        found = under_load(one, renew, clients=clients, seconds=seconds)
        return found | {"old replicas left": len(before & {now.pid for now in one.replicas()})}


def hits() -> dict[str, Any]:
    """The share of prompt tokens that were cached, with and without affinity."""
    return {
        name: _hit_share(arguments)
        for name, arguments in (("affinity", ()), ("no affinity", ("--no-affinity",)))
    }


def _hit_share(arguments: tuple[str, ...]) -> float:
    """Sessions in turn, each with a file of its own that grows between its requests."""
    prompt_tokens = cached = 0
    with cluster(*arguments) as one:
        order = [session for session in range(SESSIONS) for _ in range(TURNS)]
        random.Random(0).shuffle(order)
        turns: Counter[int] = Counter()
        for session in order:
            turns[session] += 1
            status, body, _ = one.fim(file_of(session, turns[session]), suffix="\n", max_tokens=8)
            assert status == 200, body
            prompt_tokens += body["usage"]["prompt_tokens"]
            cached += body["usage"]["cached_input_tokens"]
    return round(cached / prompt_tokens, 3)


def file_of(session: int, turn: int) -> str:
    names = [f"field_{session}_{number}" for number in range(30 + 2 * turn)]
    lines = [f"    {name}: int = {number * session}\n" for number, name in enumerate(names)]
    return f"class Record{session}:\n" + "".join(lines) + "    "


def burst() -> dict[str, Any]:
    """Mean seconds of 15 requests at once against those of 5, in several rounds."""
    with cluster() as one:
        for number in range(4):
            one.fim(file_of(number, 0), max_tokens=8)
        means: dict[int, list[float]] = {5: [], 15: []}
        for turn in range(2):
            for size, seen in means.items():
                prompts = [file_of(100 * turn + 20 * size + number, 0) for number in range(size)]
                with ThreadPoolExecutor(size) as pool:
                    made = list(pool.map(lambda prompt: one.fim(prompt, max_tokens=8), prompts))
                assert {status for status, _, _ in made} == {200}, made
                seen.append(mean(took for _, _, took in made))
        of = {size: mean(seen) for size, seen in means.items()}
        return {f"mean of {size} (s)": round(of[size], 2) for size in of} | {
            "ratio": round(of[15] / of[5], 2)
        }


def autoscale(
    clients: int = CLIENTS, seconds: float = 3 * SECONDS, patience: float = 300
) -> dict[str, Any]:
    """One replica, of which a second may come under load; how long it takes to come, and to go when all is quiet."""
    options = ("--replicas", "1", "--max-replicas", "2", "--queue", "32")
    with cluster(*options, script=SCRIPT) as one:
        counts = [len(one.replicas())]
        began = time.monotonic()
        came: list[float] = []

        def watch() -> None:
            while time.monotonic() - began < seconds + patience:
                counts.append(len(one.replicas()))
                if counts[-1] != counts[-2]:
                    came.append(time.monotonic() - began)
                if len(came) == 2:
                    return
                time.sleep(0.5)

        watching = threading.Thread(target=watch)
        watching.start()
        found = under_load(one, int, clients=clients, seconds=seconds)
        quiet = time.monotonic() - began
        watching.join()
        status, _, _ = one.fim("x = ")
    changed = [round(at, 1) for at in came]
    return found | {
        "replicas at first, most, in the end": [counts[0], max(counts), counts[-1]],
        "second one came after (s)": changed[0] if changed else None,
        "went after the load ended (s)": round(changed[1] - quiet, 1) if len(changed) > 1 else None,
        "answered afterwards": status,
    }


MEASUREMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "kill": kill,
    "update": update,
    "hits": hits,
    "burst": burst,
    "autoscale": autoscale,
}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or MEASUREMENTS:
        print(json.dumps({wanted: MEASUREMENTS[wanted]()}), flush=True)
