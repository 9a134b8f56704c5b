"""Whose releases the training data is made from.

Responsible for reading the allow-list (`packages.toml`), for the licences that may be on it, and for comparing a
release with the one that the recorded manifest names. It knows nothing of registries' protocols or of file contents.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

ALLOW_LIST = Path(__file__).with_name("packages.toml")
PERMISSIVE = ("MIT", "BSD", "APACHE", "ISC")

Split = Literal["train", "dev"]
Registry = Literal["pypi", "npm"]


@dataclass(frozen=True)
class Package:
    """One allowed package.

    `versions` are releases in order, oldest first. `folders` are prefixes of the paths inside a release that hold
    hand-written sources; none means everywhere.
    """

    name: str
    licence: str
    split: Split
    versions: tuple[str, ...]
    registry: Registry = "pypi"
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Release:
    """One downloaded release. `licence` is what its own metadata says, `sha256` that of its file."""

    package: Package
    version: str
    path: Path
    sha256: str
    licence: str


def read_allow_list(path: Path = ALLOW_LIST) -> list[Package]:
    """Read the allow-list; ValueError names the entry that is wrong."""
    packages: list[Package] = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("package", []):
        package = Package(
            entry["name"],
            entry["licence"],
            entry["split"],
            tuple(entry["versions"]),
            entry.get("registry", "pypi"),
            tuple(entry.get("folders", ())),
        )
        if package.split not in ("train", "dev"):
            raise ValueError(f"{package.name}: split is {package.split!r}, not 'train' or 'dev'")
        if package.registry not in ("pypi", "npm"):
            raise ValueError(
                f"{package.name}: registry is {package.registry!r}, not 'pypi' or 'npm'"
            )
        if len(set(package.versions)) != len(package.versions) or not package.versions:
            raise ValueError(f"{package.name}: versions must be listed, and each once")
        if not is_permissive(package.licence):
            raise ValueError(f"{package.name}: licence {package.licence!r} is not a permissive one")
        if any(package.name == other.name for other in packages):
            raise ValueError(f"{package.name}: listed twice")
        packages.append(package)
    return packages


def narrowed(
    packages: Iterable[Package], only: Iterable[str], releases: int | None
) -> list[Package]:
    """The packages named in `only` (all when it is empty), with their last `releases` releases.

    ValueError names a package that is not on the list.
    """
    chosen = list(packages)
    wanted = set(only)
    if wanted:
        unknown = wanted - {package.name for package in chosen}
        if unknown:
            raise ValueError(f"not on the allow-list: {', '.join(sorted(unknown))}")
        chosen = [package for package in chosen if package.name in wanted]
    if releases is not None:
        chosen = [replace(package, versions=package.versions[-releases:]) for package in chosen]
    return chosen


def is_permissive(licence: str) -> bool:
    return any(word in licence.upper() for word in PERMISSIVE)


def checked_release(package: Package, version: str, path: Path, licence: str) -> Release:
    """The release that a file is; ValueError when its metadata names no permissive licence."""
    if not is_permissive(licence):
        raise ValueError(f"{path.name}: licence {licence!r} is not one of the permissive ones")
    return Release(package, version, path, hashlib.sha256(path.read_bytes()).hexdigest(), licence)


def compare_with_record(release: Release, record: Mapping[str, Mapping[str, str]]) -> None:
    """ValueError when the manifest, package -> version -> SHA-256, knows the release as another file.

    A wheel built for one platform is left out of the comparison: another machine fetches another file.
    """
    known = record.get(release.package.name, {}).get(release.version)
    universal = release.path.suffix == ".tgz" or release.path.name.endswith("-none-any.whl")
    if known and universal and known != release.sha256:
        raise ValueError(f"{release.path.name}: not the file that the manifest records ({known})")
