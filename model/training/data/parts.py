"""The rows of one package, made once and kept.

Responsible for a part: the texts of a package's newest release, the gaps in them, and the cases between each release
and the next. It knows nothing of other packages, of duplicates or of test data.

A part is a folder with `texts.jsonl`, `gaps.jsonl` (its `text` is a row of that file), `cases.jsonl` (each sitting's
excerpt before and after, followed by its cases) and `facts.json`. It gets its name last, so one that is there is whole.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from model.training.data.allowlist import Package, Release
from model.training.data.examples import episode_cases, episodes
from model.training.data.fim import gaps
from model.training.data.jsonl import digest, encode, stable_hash
from model.training.data.sources import source_texts
from model.training.data.syntax import language_of

VERSION = 5
MAX_TEXT_CHARS = 2_500_000
MAX_CHANGED_FILES = 150


@dataclass(frozen=True)
class Part:
    """Where the rows of one package are; `dropped` counts the files of its newest release by reason."""

    folder: Path
    dropped: dict[str, int]

    @property
    def texts(self) -> Path:
        return self.folder / "texts.jsonl"

    @property
    def gaps(self) -> Path:
        return self.folder / "gaps.jsonl"

    @property
    def cases(self) -> Path:
        return self.folder / "cases.jsonl"


def make_part(package: Package, releases: Sequence[Release], folder: Path) -> Part:
    """The part of a package under `folder`, made from its releases (oldest first) unless it is there."""
    key = digest(VERSION, package.folders, [release.sha256 for release in releases])[:12]
    name = package.name.removeprefix("@").replace("/", "-")
    done = folder / f"{name}-{key}"
    if not done.exists():
        work = folder / f"{done.name}.part"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        _write(package, releases, work)
        os.replace(work, done)
    return Part(done, json.loads((done / "facts.json").read_text())["dropped"])


def _write(package: Package, releases: Sequence[Release], work: Path) -> None:
    dropped: Counter[str] = Counter()
    older: dict[str, str] = {}
    with (work / "cases.jsonl").open("wb") as file:
        for number, release in enumerate(releases):
            dropped.clear()
            newer = source_texts(release, dropped)
            if number:
                for row in release_cases(releases[number - 1], release, older, newer):
                    file.write(encode(row))
            older = newer
    with (work / "texts.jsonl").open("wb") as texts, (work / "gaps.jsonl").open("wb") as holes:
        for number, (path, text) in enumerate(chosen_texts(older, dropped)):
            language = language_of(path)
            row = {"path": path, "text": text, "package": package.name, "language": language}
            texts.write(encode(row))
            for gap in gaps(text, language, random.Random(f"{package.name} {path}")):
                holes.write(encode({"text": number} | asdict(gap)))
    (work / "facts.json").write_text(json.dumps({"dropped": dict(sorted(dropped.items()))}))


def chosen_texts(sources: dict[str, str], dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """Files drawn evenly until `MAX_TEXT_CHARS` are full."""
    room = MAX_TEXT_CHARS
    for path in sorted(sources, key=stable_hash):
        if len(sources[path]) <= room:
            room -= len(sources[path])
            yield path, sources[path]
        else:
            dropped["beyond the package's share"] += 1


def release_cases(
    older: Release, newer: Release, before: dict[str, str], after: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """The rows from one release to the next, of at most `MAX_CHANGED_FILES` files drawn evenly, by path."""
    changed = [path for path in before.keys() & after.keys() if before[path] != after[path]]
    changed = sorted(changed, key=stable_hash)[:MAX_CHANGED_FILES]
    for path in sorted(changed):
        yield from file_cases(older, newer, path, before[path], after[path])


def file_cases(
    older: Release, newer: Release, path: str, old: str, new: str
) -> Iterator[dict[str, Any]]:
    """The sittings of one file between two releases, each as one row `{"episode", "before", "after"}` and its cases.

    Drawn by a generator seeded with the file's name and release.
    """
    name = newer.package.name
    rng = random.Random(f"{name} {newer.version} {path}")
    for number, episode in enumerate(episodes(path, old, new, rng)):
        label = f"{name}-{newer.version}-{stable_hash(path):08x}-{number}"
        after = "".join(episode.state(episode.groups))
        yield {"episode": label, "before": "".join(episode.lines), "after": after}
        for row in episode_cases(episode, rng):
            meta = row["meta"]
            meta |= {"package": name, "from": older.version, "to": newer.version, "episode": label}
            yield {"id": f"{label}-{meta['step']}-{meta['kind']}"} | row
