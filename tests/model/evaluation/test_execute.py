from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
import uuid
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


def test_what_it_started_is_ended_with_it() -> None:
    mark = f"redraft-{uuid.uuid4()}"
    program = (
        "import subprocess, sys\n"
        f"code = 'import sys, time; time.sleep(60) # {mark}'\n"
        "subprocess.Popen([sys.executable, '-c', code])\n"
    )
    assert run_program(program) in ("pass", "fail")
    assert is_gone(mark)


def test_a_file_is_limited() -> None:
    assert run_program("open('a', 'w').write('x' * 1000)\n") == "pass"
    assert run_program("open('a', 'w').write('x' * (2 << 20))\n") == "fail"


def test_processor_time_is_limited() -> None:
    program = "import resource\nassert resource.getrlimit(resource.RLIMIT_CPU) == (3, 3)\n"
    assert run_program(program, time_limit=1.5) == "pass"


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() == 0, reason="Linux does not hold root to it"
)
def test_processes_are_limited() -> None:
    program = (
        "import os, time\n"
        "for _ in range(200):\n    if os.fork() == 0:\n        time.sleep(2)\n        os._exit(0)\n"
    )
    assert run_program(program) == "fail"


def may_isolate() -> bool:
    """Whether this system lets a user make namespaces of his own."""
    command = ["unshare", "--user", "--map-current-user", "--net", "--mount", "--pid", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


isolated = pytest.mark.skipif(not may_isolate(), reason="no namespaces for users here")


def raises(statement: str, number: int) -> str:
    return (
        f"try:\n    {statement}\nexcept OSError as error:\n    assert error.errno == {number}, error\n"
        "else:\n    raise AssertionError\n"
    )


@isolated
def test_there_is_no_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        connect = f"socket.create_connection({address}, 1)"
        assert run_program("import socket\n" + raises(connect, errno.ENETUNREACH)) == "pass"
    assert run_program(f"import socket\n{connect}\n") == "fail"


@isolated
def test_only_its_folder_can_be_written(tmp_path: Path) -> None:
    target = tmp_path / "file"
    program = f"open({str(target)!r}, 'w')"
    assert run_program(raises(program, errno.EROFS)) == "pass"
    assert not target.exists()
    many = "for n in range(40):\n    open(str(n), 'w').write('x' * (1 << 19))\n"
    assert run_program(many) == "fail", "the folder holds 16 MiB"
    assert run_program(many.replace("40", "20")) == "pass"


@isolated
def test_no_process_escapes() -> None:
    mark = f"redraft-{uuid.uuid4()}"
    program = (
        "import subprocess, sys, time\n"
        f"code = 'import sys, time; time.sleep(60) # {mark}'\n"
        "subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    assert run_program(program, time_limit=1.0) == "timeout"
    assert is_gone(mark)


def is_gone(mark: str, patience: float = 10.0) -> bool:
    """Whether no process has this mark in its command line, or comes to have none."""
    ends = time.monotonic() + patience
    while time.monotonic() < ends:
        lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        if not any(mark in part for line in lines for part in line):
            return True
        time.sleep(0.01)
    return False
