"""Fetches package releases and reads their source files.

Responsible for the manifest of allowed packages (`packages.toml`), for downloading wheels with pip
(no build hook is run, nothing is installed) and for yielding the Python sources inside that are
worth learning from. It knows nothing of edits, examples or models. Wheels are read in place and
never unpacked onto the disk.
"""

from __future__ import annotations

import email
import hashlib
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MANIFEST = Path(__file__).with_name("packages.toml")
PERMISSIVE = ("MIT", "BSD", "APACHE", "ISC")

Split = Literal["train", "dev"]


@dataclass(frozen=True)
class Package:
    """One allowed package; `versions` are releases in order, oldest first."""

    name: str
    licence: str
    split: Split
    versions: tuple[str, ...]


@dataclass(frozen=True)
class Wheel:
    """One downloaded release. `licence` is what its own metadata says."""

    package: Package
    version: str
    path: Path
    sha256: str
    licence: str


def read_manifest(path: Path = MANIFEST) -> list[Package]:
    """Read the allow-list; ValueError names the entry that is wrong."""
    packages: list[Package] = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("package", []):
        package = Package(entry["name"], entry["licence"], entry["split"], tuple(entry["versions"]))
        if package.split not in ("train", "dev"):
            raise ValueError(f"{package.name}: split is {package.split!r}, not 'train' or 'dev'")
        if len(set(package.versions)) != len(package.versions) or not package.versions:
            raise ValueError(f"{package.name}: versions must be listed, and each once")
        if any(package.name == other.name for other in packages):
            raise ValueError(f"{package.name}: listed twice")
        packages.append(package)
    return packages


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
    """Download every listed release that `folder` does not hold yet, newest releases of all
    packages first.

    Raises `RuntimeError` with pip's last words when a release cannot be had as a wheel.
    """
    folder.mkdir(parents=True, exist_ok=True)
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


def open_wheel(package: Package, version: str, folder: Path) -> Wheel:
    """Find and check one downloaded release.

    Raises `FileNotFoundError` when it is absent, `ValueError` when its metadata names no permissive
    licence.
    """
    path = find_wheel(folder, package.name, version)
    if path is None:
        raise FileNotFoundError(f"{package.name} {version} is not in {folder}")
    licence = wheel_licence(path)
    if not any(word in licence.upper() for word in PERMISSIVE):
        raise ValueError(f"{path.name}: licence {licence!r} is not one of the permissive ones")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Wheel(package, version, path, digest, licence)


def wheel_licence(path: Path) -> str:
    """The licence as the wheel's METADATA gives it: expression, classifier or free text; else its
    licence file."""
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


def python_sources(wheel: Wheel) -> Iterator[tuple[str, str]]:
    """Yield (path inside the wheel, text) of each source file that `reject_source` lets through, by
    path."""
    with zipfile.ZipFile(wheel.path) as archive:
        names = sorted(archive.namelist())
        foreign = foreign_folders(names)
        for name in names:
            if not name.endswith(".py") or name.startswith(foreign):
                continue
            try:
                text = archive.read(name).decode("utf-8")
            except UnicodeDecodeError:
                continue
            if reject_source(name, text) is None:
                yield name, text


def foreign_folders(names: Iterable[str]) -> tuple[str, ...]:
    """Folders (with a final slash) inside a wheel that carry a licence of their own: somebody
    else's code."""
    folders = set()
    for name in names:
        folder, _, file = name.rpartition("/")
        if folder and ".dist-info" not in folder and re.match(r"(?i)(licen[sc]e|copying)", file):
            folders.add(folder + "/")
    return tuple(sorted(folders))


SKIPPED_PARTS = ("_vendor", "vendor", "vendored", "_vendored", "extern", "_click", "locale")
GENERATED = re.compile(
    r"(?i)\b(auto-?generated|generated by|do not edit|@generated|file is generated)\b"
)
SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{35}\b"
)
MAX_CHARS = 200_000
MIN_CHARS = 200
MAX_LINE = 400


def reject_source(path: str, text: str) -> str | None:
    """Why a file is no training text: vendored, generated, minified, data, secret, too large or
    small; None if it is.

    `path` is relative to the wheel, with forward slashes.
    """
    parts = path.split("/")
    if any(part in SKIPPED_PARTS or ".dist-info" in part or ".data" in part for part in parts[:-1]):
        return "vendored"
    if re.search(r"(_pb2|_pb2_grpc|parsetab|_version|version)\.py$", path):
        return "generated"
    if not MIN_CHARS <= len(text) <= MAX_CHARS:
        return "size"
    if GENERATED.search(text[:1500]):
        return "generated"
    if SECRETS.search(text):
        return "secret"
    lines = text.splitlines()
    if max(map(len, lines)) > MAX_LINE or len(text) / len(lines) > 90:
        return "minified"
    if sum(map(str.isdigit, text)) > 0.15 * len(text):
        return "data"
    if "\0" in text or "\r" in text:
        return "unusual characters"
    return None
