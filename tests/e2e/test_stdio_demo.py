"""The demonstration, with a scripted model in place of the embedded one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_server.demo_cases import CASES

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]


def demonstrate(folder: Path, script: object) -> subprocess.CompletedProcess[str]:
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    env = {**os.environ, "REDRAFT_SCRIPT": str(path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "lsp_server", "demo"]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_every_case_runs_and_says_what_was_answered(tmp_path: Path) -> None:
    first, several = CASES[0], CASES[1]
    old, new = CASES[2].edits[0]
    rules = [
        {"mode": "fim", "when": {"contains": first.before + first.typed}, "insert": first.cut},
        {"mode": "fim", "insert": several.cut, "confidence": 0.77},
        {
            "mode": "next_edit",
            "when": {"history": new},
            "replace": {"old": old.split()[0], "new": new.split()[0]},
        },
    ]
    rules.insert(1, {"mode": "fim", "when": {"contains": several.before}, **rules.pop(1)})
    done = demonstrate(tmp_path, rules)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("exactly what the file held") == 2
    assert done.stdout.count("exactly right") >= 1
    assert "Redraft is silent: secret-file" in done.stdout
    assert "Redraft is silent: no-prediction" in done.stdout
    assert f"{len(CASES)} of {len(CASES)} cases ran" in done.stdout
    assert "\x1b[" not in done.stdout


def test_a_model_that_fails_is_a_failed_demonstration(tmp_path: Path) -> None:
    broken = demonstrate(tmp_path, {"load_error": "the weights are cut off"})
    assert broken.returncode == 1
    assert "the weights are cut off" in broken.stderr
    failing = demonstrate(tmp_path, [{"raise": "out of memory"}])
    assert failing.returncode == 1
    assert "did not run" in failing.stdout
