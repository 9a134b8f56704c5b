"""Runs a filled-in program against its own tests, in a child process with limits.

Responsible for the pass or fail of one program. It knows nothing of cases or predictors.

This runs generated code. The child is isolated from the environment and user site, has no input, a
time limit and the limits and namespaces of `model.evaluation.sandbox`; what of it holds depends on
the system, and everywhere it can read the user's files. The command line asks for `--execute`.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

Verdict = Literal["pass", "fail", "timeout"]

TIME_LIMIT = 8.0
MEMORY_LIMIT = 1 << 30
# A program that leaves early by itself (SystemExit, os._exit(0)) has not passed.
_PASSED = 97

SANDBOX = Path(__file__).with_name("sandbox.py")


def infilling_program(filled: str, test: str, entry_point: str) -> str:
    """HumanEval's program: the filled-in text, its tests, and the call that runs them."""
    return f"{filled}\n{test}\ncheck({entry_point})\n"


def run_program(
    program: str, *, time_limit: float = TIME_LIMIT, memory_limit: int = MEMORY_LIMIT
) -> Verdict:
    """Run a Python program to its end.

    `time_limit` in seconds of wall clock, `memory_limit` in bytes of address space. Whatever the
    program started is ended with it. Text that UTF-8 cannot hold fails.
    """
    with tempfile.TemporaryDirectory(prefix="redraft-check-") as folder:
        path = Path(folder, "program.py")
        try:
            path.write_text(program, encoding="utf-8", newline="")
        except UnicodeEncodeError:
            return "fail"
        command = [
            sys.executable,
            "-I",
            "-B",
            str(SANDBOX),
            str(path),
            str(memory_limit),
            str(math.ceil(time_limit) + 1),
            str(_PASSED),
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": os.defpath, "HOME": folder, "TMPDIR": folder},
            start_new_session=True,
        )
        try:
            code = process.wait(time_limit)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            end(process)
        return "pass" if code == _PASSED else "fail"


def end(process: subprocess.Popen[bytes]) -> None:
    """End the child and everything in its session, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
