"""What is freed goes back to the system, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")

LEFT = """
import sys
from model.allocator import give_back_what_is_freed

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20

if "set" in sys.argv and not give_back_what_is_freed():
    sys.exit("not glibc")
before = resident()
b"x" * (30 << 20)  # by itself, the library puts smaller blocks among others from now on
passing, staying = [], []
for _ in range(16):
    passing.append(b"x" * (12 << 20))
    staying.append(b"x" * (64 << 10))
most = resident()
del passing
print(most - before, resident() - before)
"""


def left(*arguments: str, **environment: str) -> tuple[int, int]:
    """MiB at most, and when what was large has been freed."""
    command = [sys.executable, "-c", LEFT, *arguments]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "not glibc" in ran.stderr:
        pytest.skip("not glibc")
    assert ran.returncode == 0, ran.stderr
    most, after = map(int, ran.stdout.split())
    return most, after


def test_large_blocks_between_small_ones_that_stay_are_given_back() -> None:
    most, after = left("set")
    assert most >= 190
    assert after < 10


def test_it_would_not_be_so_without() -> None:
    most, after = left()
    assert after > most - 30


def test_settings_of_the_user_are_left_alone() -> None:
    command = [
        sys.executable,
        "-c",
        "from model.allocator import *; print(give_back_what_is_freed())",
    ]
    for own in ({"MALLOC_ARENA_MAX": "2"}, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}):
        ran = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
        assert ran.stdout == "False\n"
