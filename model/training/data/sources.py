"""The texts of a release that are worth learning from.

Responsible for walking the members of a release through the filters, whatever its registry. It knows nothing of edits
or rows.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

from model.training.data import npm, pypi
from model.training.data.allowlist import Package, Release
from model.training.data.filters import (
    compiled_twins,
    foreign_folders,
    reject_path,
    reject_source,
)
from model.training.data.syntax import language_of

REGISTRIES: dict[str, ModuleType] = {"pypi": pypi, "npm": npm}


def open_release(package: Package, version: str, folder: Path) -> Release:
    """The downloaded release in `folder`; errors as `pypi.open_release`."""
    release: Release = REGISTRIES[package.registry].open_release(package, version, folder)
    return release


def source_texts(release: Release, dropped: Counter[str]) -> dict[str, str]:
    """Path inside the release -> text of each source file, by path; what is left out is counted by reason."""
    folders = release.package.folders
    found: dict[str, bytes] = {}
    names: list[str] = []
    for name, content in REGISTRIES[release.package.registry].members(release.path):
        names.append(name)
        if not language_of(name):
            continue
        if folders and not name.startswith(folders):
            dropped["outside the source folders"] += 1
        elif reason := reject_path(name):
            dropped[reason] += 1
        else:
            found[name] = content
    foreign, twins = foreign_folders(names), compiled_twins(names)
    texts: dict[str, str] = {}
    for name, content in sorted(found.items()):
        if name.startswith(foreign):
            dropped["vendored"] += 1
        elif name in twins:
            dropped["generated"] += 1
        else:
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError:
                dropped["unusual characters"] += 1
                continue
            if reason := reject_source(name, text):
                dropped[reason] += 1
            else:
                texts[name] = text
    return texts
