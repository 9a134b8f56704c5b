"""Releases of the npm registry.

Responsible for downloading tarballs with `npm pack` (no script is run, nothing is installed; the registry is whatever
npm is configured to use), for their licence and for reading their members in place. A tarball is a stranger's file:
only plain files under one top folder are read, links, devices and paths that leave it are passed over. It knows
nothing of which files are worth learning from.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from model.training.data.allowlist import Package, Release, checked_release

MAX_MEMBER_BYTES = 2_000_000
MAX_TOTAL_BYTES = 200_000_000
BATCH = 12


def tarball_name(name: str, version: str) -> str:
    """The file name that npm gives a packed release (`@trpc/server` becomes `trpc-server-…`)."""
    return f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"


def download(packages: Iterable[Package], folder: Path) -> None:
    """Download every listed release that `folder` does not hold yet.

    Raises `RuntimeError` with npm's last words when a release cannot be had, or npm is not installed.
    """
    wanted = [
        f"{package.name}@{version}"
        for package in packages
        for version in package.versions
        if not (folder / tarball_name(package.name, version)).exists()
    ]
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        print(f"downloading {len(batch)} tarballs: {' '.join(batch)}", file=sys.stderr)
        command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination"]
        try:
            result = subprocess.run(
                [*command, str(folder), *batch], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise RuntimeError("npm is needed for the JavaScript packages, and not found") from None
        if result.returncode:
            raise RuntimeError(
                f"npm pack failed: {(result.stderr or result.stdout).strip()[-600:]}"
            )


def open_release(package: Package, version: str, folder: Path) -> Release:
    """Find and check one downloaded release.

    Raises `FileNotFoundError` when it is absent, `ValueError` when its licence is not permissive.
    """
    path = folder / tarball_name(package.name, version)
    if not path.exists():
        raise FileNotFoundError(f"{package.name} {version} is not in {folder}")
    return checked_release(package, version, path, tarball_licence(path))


def tarball_licence(path: Path) -> str:
    """The licence that package.json names; `unknown` when it names none."""
    for name, content in members(path):
        if name == "package.json":
            stated = json.loads(content).get("license", "unknown")
            return str(stated.get("type", "unknown") if isinstance(stated, dict) else stated)
    return "unknown"


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """(path inside, content) of each plain file of a tarball, in its order, without the top folder.

    Files above `MAX_MEMBER_BYTES` are left out. `ValueError` when it unpacks to more than `MAX_TOTAL_BYTES`.
    Nothing is unpacked onto the disk.
    """
    total = 0
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            total += member.size
            if total > MAX_TOTAL_BYTES:
                raise ValueError(f"{path.name}: unpacks to more than {MAX_TOTAL_BYTES:,} bytes")
            inside = safe_path(member.name)
            if inside is None or not member.isfile() or member.size > MAX_MEMBER_BYTES:
                continue
            file = archive.extractfile(member)
            if file is not None:
                yield inside, file.read()


def safe_path(name: str) -> str | None:
    """A member's path without its top folder; None when it is absolute, climbs, or has no top folder."""
    parts = PurePosixPath(name).parts
    if len(parts) < 2 or name.startswith("/") or "\\" in name or ".." in parts:
        return None
    return "/".join(parts[1:])
