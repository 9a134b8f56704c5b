"""`redraft doctor`: what is installed, what would be used, and what is wrong.

Responsible for checks that a user can act on; each is one line. Exit code 1 when one of them fails.
Knows nothing of a running server.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata, util
from pathlib import Path
from typing import Literal, NamedTuple

from lsp_server import __version__
from lsp_server.engine import SCRIPT_VARIABLE, ModelChoice, load_predictor
from model.feedback import data_folder
from model.footprint import memory_gib
from model.library import EMBEDDED, chosen
from model.protocol import Request, Stop
from model.remote.consent import ConsentError, Consents, config_folder
from model.targets import TargetError, check_folder

Verdict = Literal["ok", "note", "wrong"]

PACKAGES = (
    *("pygls", "lsprotocol", "cattrs", "torch", "numpy", "safetensors", "tokenizers"),
    *("pathspec", "unidiff", "watchdog", "platformdirs"),
)
FEW_WATCHES = 8192
LITTLE_MEMORY = 1.5
"""GiB that should be free for the embedded model."""


class Finding(NamedTuple):
    """One line of the report."""

    verdict: Verdict
    about: str
    says: str


Check = Callable[[argparse.Namespace], Iterator[Finding]]


def run(options: argparse.Namespace) -> int:
    """Print every finding; 1 when something is wrong."""
    wrong = 0
    for check in CHECKS:
        try:
            for finding in check(options):
                wrong += finding.verdict == "wrong"
                print(f"{finding.verdict:5}  {finding.about:12}  {finding.says}", flush=True)
        except Exception as error:  # a check that breaks is a finding, too
            wrong += 1
            print(f"wrong  {check.__name__.strip('_'):12}  {type(error).__name__}: {error}")
    print(f"\n{wrong} problem{'' if wrong == 1 else 's'} found" if wrong else "\nall is well")
    return 1 if wrong else 0


def _program(options: argparse.Namespace) -> Iterator[Finding]:
    yield Finding("ok", "redraft", f"{__version__} in {Path(__file__).parent}")
    version = platform.python_version()
    good = sys.version_info >= (3, 11)
    yield Finding("ok" if good else "wrong", "python", f"{version} ({sys.executable})")
    yield Finding("ok", "system", f"{platform.platform()}, {os.cpu_count()} processors")


def _packages(options: argparse.Namespace) -> Iterator[Finding]:
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    yield Finding("ok", "packages", ", ".join(found))
    if missing:
        yield Finding("wrong", "packages", f"missing: {', '.join(missing)}; install redraft anew")


def _memory(options: argparse.Namespace) -> Iterator[Finding]:
    total, free = memory_gib()
    if total is None:
        yield Finding("note", "memory", "cannot be read on this system")
        return
    enough = free is None or free >= LITTLE_MEMORY
    shown = f"{total:.1f} GiB" + ("" if free is None else f", {free:.1f} GiB free")
    yield Finding("ok" if enough else "note", "memory", shown)


def _device(options: argparse.Namespace) -> Iterator[Finding]:
    if util.find_spec("torch") is None:
        yield Finding("wrong", "device", "torch is not installed")
        return
    import torch

    threads = f"{torch.get_num_threads()} threads"
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            gib = torch.cuda.get_device_properties(number).total_memory / 2**30
            name = torch.cuda.get_device_name(number)
            yield Finding("ok", "device", f"cuda:{number} {name}, {gib:.0f} GiB")
    elif torch.backends.mps.is_available():
        yield Finding("ok", "device", f"mps; cpu with {threads}")
    else:
        yield Finding("ok", "device", f"cpu with {threads} (no usable GPU)")


def _model_files(options: argparse.Namespace) -> Iterator[Finding]:
    if script := os.environ.get(SCRIPT_VARIABLE):
        yield Finding("note", "model", f"${SCRIPT_VARIABLE} is set: answers come from {script}")
    if (used := chosen().model) != EMBEDDED:
        yield Finding("ok", "model", f"{used} is used (`redraft models use`)")
    folder = Path(__file__).parents[1] / "model" / EMBEDDED
    files = sorted(path for path in folder.glob("*") if path.is_file())
    if not any(path.suffix == ".safetensors" for path in files):
        yield Finding("wrong", "model", f"no weights in {folder}")
        return
    size = sum(path.stat().st_size for path in files) / 2**20
    yield Finding("ok", "model", f"{folder}, {len(files)} files, {size:.0f} MiB")
    for path in files:
        if path.suffix == ".safetensors":
            yield _weights(path)


def _weights(path: Path) -> Finding:
    """Whether a weights file can be read to its end."""
    from safetensors import SafetensorError, safe_open

    size = path.stat().st_size / 2**20
    try:
        with safe_open(path, "pt") as tensors:
            count = len(tensors.keys())
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (SafetensorError, OSError) as error:
        return Finding("wrong", "weights", f"{path.name} ({size:.0f} MiB): {error}")
    return Finding(
        "ok", "weights", f"{path.name}: {count} tensors, {size:.0f} MiB, sha256 {digest[:12]}"
    )


def _try_model(options: argparse.Namespace) -> Iterator[Finding]:
    if options.no_load:
        return
    started = time.perf_counter()
    try:
        predictor = load_predictor(ModelChoice())
    except Exception as error:  # whatever keeps it from loading is the finding
        yield Finding("wrong", "loading", str(error) or type(error).__name__)
        return
    device = getattr(predictor, "device", "?")
    seconds = time.perf_counter() - started
    yield Finding("ok", "loading", f"{predictor.name} on {device} in {seconds:.1f} s")
    text = "def add(a, b):\n    return a "
    prediction = predictor.predict(Request("fim", "add.py", text, len(text)), Stop(30))
    answer = prediction.edits[0].new_text if prediction.edits else ""
    yield Finding(
        "ok", "prediction", f"{text[-9:]!r} -> {answer!r} in {prediction.latency_ms:.0f} ms"
    )


def _git(options: argparse.Namespace) -> Iterator[Finding]:
    git = shutil.which("git")
    if git is None:
        yield Finding("note", "git", "not found: uncommitted changes are not used as history")
        return
    done = subprocess.run([git, "--version"], check=False, capture_output=True, timeout=10)
    yield Finding("ok", "git", (done.stdout or done.stderr).decode(errors="replace").strip())


def _watches(options: argparse.Namespace) -> Iterator[Finding]:
    limit = Path("/proc/sys/fs/inotify/max_user_watches")
    if limit.exists():
        count = int(limit.read_text())
        few = count < FEW_WATCHES
        advice = "; raise fs.inotify.max_user_watches, or set watchFiles to off" if few else ""
        yield Finding("note" if few else "ok", "watches", f"at most {count} folders{advice}")


def _services(options: argparse.Namespace) -> Iterator[Finding]:
    """Where text may be sent to, and whether it could be."""
    services = list(Consents())
    if not services:
        yield Finding("ok", "services", "none is allowed: no text leaves this machine")
        return
    for service in services:
        try:
            key = "with a key" if service.key() else "without a key"
            yield Finding("note", "services", f"{service.origin} is allowed, {key}")
        except ConsentError as error:
            yield Finding("wrong", "services", str(error))
    if util.find_spec("httpx2") is None:
        yield Finding("wrong", "services", "httpx2 is missing: pip install 'redraft[remote]'")


def _home(options: argparse.Namespace) -> Iterator[Finding]:
    """Whether what is learned and chosen can be kept."""
    for folder in sorted({data_folder(), config_folder()}):
        try:
            check_folder(folder)
            yield Finding("ok", "home", f"{folder} can be written")
        except TargetError as error:
            lost = "no feedback and no choice of yours is kept, suggestions come all the same"
            yield Finding("wrong", "home", f"{error}; {lost}, or set REDRAFT_HOME")


def _log(options: argparse.Namespace) -> Iterator[Finding]:
    yield Finding(
        "ok", "log", "stderr (your editor's log of language servers), or `redraft lsp --log-file`"
    )


CHECKS: tuple[Check, ...] = (
    _program,
    _packages,
    _memory,
    _device,
    _model_files,
    _try_model,
    _git,
    _watches,
    _services,
    _home,
    _log,
)
