"""Measures requests at once, by how many are worked on side by side: `python -m tests.e2e.measure_parallel [N ...]`.

Each user has a file that grows between requests and is a session. Starts `redraft serve --parallel N` with the embedded
model for each N (1, 4, 8 and 16 by default). Prints one line of JSON for each: mean seconds of an answer, and answers a
second, with 1, 5 and 15 users who ask at once.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from statistics import mean
from typing import Any

from tests.e2e.measure_cluster import Cluster, cluster, file_of

USERS, ROUNDS = (1, 5, 15), 4


def side_by_side(parallel: int) -> dict[str, Any]:
    found: dict[str, Any] = {"parallel": parallel}
    options = ("--replicas", "1", "--threads", "2", "--queue", "32", "--parallel", str(parallel))
    with cluster(*options) as one:
        for user in range(max(USERS)):
            _ask(one, user, 0)
        turn = 0
        for users in USERS:
            times, total = [], 0.0
            for _ in range(ROUNDS):
                turn += 1
                began = time.perf_counter()
                with ThreadPoolExecutor(users) as pool:
                    times += pool.map(_ask, repeat(one), range(users), repeat(turn))
                total += time.perf_counter() - began
            found[f"mean of {users} (s)"] = round(mean(times), 3)
            found[f"answers a second, {users}"] = round(len(times) / total, 2)
    return found


def _ask(one: Cluster, user: int, turn: int) -> float:
    status, body, took = one.fim(
        file_of(user, turn), suffix="\n", max_tokens=16, user=f"user {user}"
    )
    assert status == 200, body
    return took


if __name__ == "__main__":
    for number in map(int, sys.argv[1:] or ("1", "4", "8", "16")):
        print(json.dumps(side_by_side(number)), flush=True)
