"""Uncommitted git changes of a workspace, as the edit history of a session that has just begun.

Responsible for asking git, harmlessly and for a bounded time. Knows nothing of editors or of how
history is used.
"""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

from diffing.history import MAX_ENTRY_CHARS
from diffing.hunks import parse_unified
from diffing.policy import MAX_FILE_BYTES, FilePolicy

log = logging.getLogger(__name__)

# Seconds that all questions to git may take together, files whose changes are asked for (the
# latest), and longest diff of all of them, in code points.
TIMEOUT = 2.0
MAX_FILES = 16
MAX_CHARS = 32_768

# Nothing that a repository's own configuration names may be run, and the form must not depend on
# the user's.
_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "diff.submodule=short",
)
_DIFF = (
    "diff",
    "HEAD",
    "--relative",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
)
_DIFF_FILTER = ("--diff-filter=AM", "--ignore-submodules=all")


def uncommitted_changes(
    root: str | os.PathLike[str],
    policy: FilePolicy,
    *,
    timeout: float = TIMEOUT,
    max_files: int = MAX_FILES,
    max_chars: int = MAX_CHARS,
) -> list[tuple[str, str]]:
    """Pairs of path (relative to `root`, with slashes) and unified diff against HEAD.

    The file that was modified last comes last. Only files that `policy` allows are asked for. Empty
    when there is no git, no repository, no commit yet, or no answer within `timeout` seconds.
    """
    folder = Path(root)
    names = _git(folder, [*_DIFF, *_DIFF_FILTER, "--name-only", "-z"], timeout)
    if not names:
        return []
    dated = []
    for name in names.decode("utf-8", "surrogateescape").split("\0"):
        path = folder / name
        if not name or policy.verdict(path) is not None:
            continue
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            continue
        if status.st_size <= MAX_FILE_BYTES:
            dated.append((status.st_mtime, name))
    changes: list[tuple[str, str]] = []
    if not dated:
        return changes
    latest = [name for _, name in sorted(dated)[-max_files:]]
    prefixes = ["-U3", "--src-prefix=a/", "--dst-prefix=b/"]
    output = _git(folder, [*_DIFF, *_DIFF_FILTER, *prefixes, "--", *latest], timeout)
    diffs = dict(_by_file(output or b""))
    for name in reversed(latest):
        diff = diffs.get(name, "")
        if not diff or len(diff) > MAX_ENTRY_CHARS:
            continue
        max_chars -= len(diff)
        if max_chars < 0:
            break
        changes.append((name, diff))
    return changes[::-1]


def _by_file(output: bytes) -> list[tuple[str, str]]:
    """Split git's output into (path, diff) without git's own header; only what is UTF-8 text."""
    files = []
    parts = (b"\n" + output).split(b"\ndiff --git ")
    for part in parts[1:]:
        _, mark, body = part.partition(b"\n--- ")
        if not mark:
            continue
        try:
            diff = "--- " + body.decode("utf-8")
            if not diff.endswith("\n"):
                diff += "\n"
            parsed = parse_unified(diff)
        except ValueError:
            continue
        if len(parsed) == 1:
            files.append((parsed[0].path, diff))
    return files


def _git(folder: Path, arguments: list[str], timeout: float) -> bytes | None:
    """What git prints, or None when it fails or takes too long."""
    command = ["git"]
    for setting in _SETTINGS:
        command += ["-c", setting]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment |= {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            [*command, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        log.warning("git took more than %.1f s; uncommitted changes are not used", timeout)
        return None
    except (OSError, ValueError) as error:
        log.info("git could not be asked for uncommitted changes: %s", error)
        return None
    return done.stdout if done.returncode == 0 else None
