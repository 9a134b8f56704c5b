"""Releases of the Python package index.

Responsible for downloading wheels with pip (no build hook is run, nothing is installed), for their licence and for
reading their members in place. It knows nothing of which files are worth learning from.
"""

from __future__ import annotations

import email
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from model.training.data.allowlist import Package, Release, checked_release

MAX_MEMBER_BYTES = 2_000_000


def find_wheel(folder: Path, name: str, version: str) -> Path | None:
    """The wheel of one release in `folder`, by the wheel naming rules."""
    stem = re.sub(r"[-_.]+", "_", name).lower()
    for path in sorted(folder.glob("*.whl")):
        parts = path.name.split("-")
        if parts[0].lower().replace(".", "_") == stem and same_version(parts[1], version):
            return path
    return None


def same_version(left: str, right: str) -> bool:
    """Whether two plain release numbers are the same (`3.1` is `3.1.0`)."""

    def key(version: str) -> list[str]:
        parts = version.split(".")
        while parts and parts[-1] == "0":
            parts.pop()
        return parts

    return key(left) == key(right)


def download(packages: Iterable[Package], folder: Path) -> None:
    """Download every listed release that `folder` does not hold yet, newest releases of all packages first.

    Raises `RuntimeError` with pip's last words when a release cannot be had as a wheel.
    """
    rounds: list[list[str]] = []
    for package in packages:
        for number, version in enumerate(reversed(package.versions)):
            if find_wheel(folder, package.name, version) is None:
                while len(rounds) <= number:
                    rounds.append([])
                rounds[number].append(f"{package.name}=={version}")
    for requirements in filter(None, rounds):
        print(f"downloading {len(requirements)} wheels: {' '.join(requirements)}", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--only-binary", ":all:", "--no-deps"]
        command += ["--quiet", "--disable-pip-version-check", "--dest", str(folder), *requirements]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"pip download failed: {result.stderr.strip()[-600:]}")


def open_release(package: Package, version: str, folder: Path) -> Release:
    """Find and check one downloaded release.

    Raises `FileNotFoundError` when it is absent, `ValueError` when its licence is not permissive.
    """
    path = find_wheel(folder, package.name, version)
    if path is None:
        raise FileNotFoundError(f"{package.name} {version} is not in {folder}")
    return checked_release(package, version, path, wheel_licence(path))


def wheel_licence(path: Path) -> str:
    """The licence as the wheel's METADATA gives it: expression, classifier or free text; else its licence file."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        metadata_name = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_string(archive.read(metadata_name).decode("utf-8", "replace"))
        expression = metadata.get("License-Expression")
        if expression:
            return expression
        for classifier in metadata.get_all("Classifier", []):
            if classifier.startswith("License :: OSI Approved :: "):
                return classifier.rsplit(" :: ", 1)[1]
        stated = (metadata.get("License") or "").strip()
        if stated:
            return stated.splitlines()[0][:80]
        for name in names:
            if "dist-info" in name and "LICEN" in name.upper():
                text = archive.read(name).decode("utf-8", "replace")
                if "Permission is hereby granted, free of charge" in text:
                    return "MIT"
                if "Redistribution and use in source and binary forms" in text:
                    return "BSD"
        return "unknown"


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """(path inside, content) of each file of a wheel, by path, those above `MAX_MEMBER_BYTES` left out.

    Nothing is unpacked onto the disk.
    """
    with zipfile.ZipFile(path) as archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            if not info.is_dir() and info.file_size <= MAX_MEMBER_BYTES:
                yield info.filename, archive.read(info)
