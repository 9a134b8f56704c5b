"""Tiny releases in the registries' own formats."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str]) -> Path:
    path = folder / f"{name}-{version}-py3-none-any.whl"
    metadata = f"Name: {name}\nVersion: {version}\nLicense-Expression: MIT\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", metadata)
        for file, text in files.items():
            archive.writestr(zipfile.ZipInfo(file), text)
    return path


def make_tarball(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    extra: tuple[tarfile.TarInfo, ...] = (),
) -> Path:
    path = folder / f"{name}-{version}.tgz"
    package = json.dumps({"name": name, "version": version, "license": "MIT"})
    with tarfile.open(path, "w:gz") as archive:
        for file, text in {"package/package.json": package, **files}.items():
            content = text.encode() if isinstance(text, str) else text
            info = tarfile.TarInfo(file)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return path
