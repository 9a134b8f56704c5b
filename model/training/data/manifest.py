"""What a build wrote, so that anyone can tell whether theirs is the same.

Responsible for the form of `manifest.json` and for the recorded one beside this file, which holds the hashes that
downloads are compared with. It knows nothing of how rows are made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from model.training.data.allowlist import Package, Release

RECORDED = Path(__file__).with_name("manifest.json")


class Counts:
    """Counters by split and topic, for example `train`, `gaps by kind`."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Counter[str]]] = {}

    def add(self, split: str, topic: str, key: str, number: int = 1) -> None:
        self.tables.setdefault(split, {}).setdefault(topic, Counter())[key] += number

    def plain(self) -> dict[str, dict[str, dict[str, int]]]:
        return {
            split: {
                topic: dict(sorted(counter.items())) for topic, counter in sorted(topics.items())
            }
            for split, topics in self.tables.items()
        }


def summary(
    releases: Mapping[Package, Sequence[Release]],
    counts: Counts,
    dropped: Mapping[str, int],
    files_dropped: Mapping[str, int],
    test_runs: int,
) -> dict[str, Any]:
    """The manifest as JSON values: counts first, then each package with the SHA-256 of its releases' files."""
    return {
        "counts": counts.plain(),
        "dropped": dict(sorted(dropped.items())),
        "files_dropped": dict(sorted(files_dropped.items())),
        "test_data_runs": test_runs,
        "packages": [
            {
                "name": package.name,
                "registry": package.registry,
                "split": package.split,
                "licence": package.licence,
                "stated": sorted({release.licence for release in some}),
                "releases": {release.version: release.sha256 for release in some},
            }
            for package, some in releases.items()
        ],
    }


def recorded_hashes(path: Path = RECORDED) -> dict[str, dict[str, str]]:
    """Package -> version -> SHA-256 of the recorded manifest; empty when there is none."""
    if not path.exists():
        return {}
    packages = json.loads(path.read_text(encoding="utf-8"))["packages"]
    return {package["name"]: package["releases"] for package in packages}


def kind_label(row: dict[str, Any]) -> str:
    """A case's kind, with `linked` or `unlinked` where that says something."""
    meta = row["meta"]
    if meta["linked"] is None:
        return str(meta["kind"])
    return f"{meta['kind']} {'linked' if meta['linked'] else 'unlinked'}"
