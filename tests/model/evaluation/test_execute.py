from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from model.evaluation.execute import infilling_program, run_program

TEST = "def check(candidate):\n    assert candidate(2) == 4\n"


def test_pass_and_fail() -> None:
    right = infilling_program("def f(x):\n    return 2 * x\n", TEST, "f")
    assert run_program(right) == "pass"
    assert run_program(right.replace("2 * x", "3 * x")) == "fail"
    assert run_program("def f(:\n") == "fail"
    assert run_program("x = '\ud800'\n") == "fail"


def test_leaving_early_is_no_pass() -> None:
    for leave in ("raise SystemExit(0)", "import os; os._exit(0)", "import sys; sys.exit()"):
        assert run_program(f"{leave}\n{infilling_program('', TEST, 'f')}") == "fail"


def test_an_endless_program_times_out() -> None:
    assert run_program("while True: pass\n", time_limit=0.5) == "timeout"


def test_it_has_no_input() -> None:
    assert run_program("import sys\nassert sys.stdin.read() == ''\n") == "pass"


def test_it_works_in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "planted.py").write_text("")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    program = (
        "import os, sys\n"
        "assert os.path.basename(os.getcwd()).startswith('redraft-check-')\n"
        "assert 'SECRET_TOKEN' not in os.environ\n"
        "assert sys.flags.isolated\n"
        "try:\n    import planted\nexcept ImportError:\n    pass\nelse:\n    raise AssertionError\n"
    )
    assert run_program(program) == "pass"


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux")
def test_memory_is_limited() -> None:
    program = "data = bytearray(600 << 20)\n"
    assert run_program(program, memory_limit=300 << 20) == "fail"
    assert run_program("data = bytearray(1 << 20)\n", memory_limit=300 << 20) == "pass"


def test_what_it_started_is_ended_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
    )
    assert run_program(program) == "pass"
    assert is_gone(int(note.read_text()))


def is_gone(pid: int, patience: float = 10.0) -> bool:
    """Whether a process that was killed ends (being a zombie is enough)."""
    ends = time.monotonic() + patience
    while time.monotonic() < ends:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False
