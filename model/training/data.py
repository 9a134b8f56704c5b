"""Builds the training and development data: plain sources and edit cases from package releases.

Responsible for the whole build, one command, resumable: `python -m model.training.data build --out
DIR`. Wheels are kept under DIR/wheels, one part per package under DIR/parts, so that a second run
does only what is missing. It knows nothing of models, tokens or training. Public test data is only
read to keep it out: sources and cases that share a run of lines with it are dropped.

Files written: `texts-train.jsonl` ({path, text, package}), `cases-train.jsonl` and
`cases-dev.jsonl` (the headless contract with `expected` and `meta`: package, from, to, kind,
linked, step, episode), `manifest.json`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from model.training.examples import episode_cases, episodes
from model.training.releases import (
    MANIFEST,
    Package,
    Wheel,
    download,
    open_wheel,
    python_sources,
    read_manifest,
)

MIX = {"jump": 0.35, "mid-typing": 0.25, "fim": 0.15, "done": 0.15, "idle": 0.10}
UNLINKED_JUMPS = 0.25
MAX_REPEATS = 3
MAX_TEXT_CHARS = 2_500_000
SHINGLE = 5
PARTS_VERSION = 2


def shingles(text: str) -> Iterator[int]:
    """Hashes of every run of `SHINGLE` lines that are not blank, surrounding white space
    ignored."""
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line]
    for start in range(len(lines) - SHINGLE + 1):
        run = "\n".join(lines[start : start + SHINGLE])
        if len(run) >= 80:
            digest = hashlib.blake2b(run.encode("utf-8", "replace"), digest_size=8).digest()
            yield int.from_bytes(digest, "big")


def forbidden_shingles(folder: Path) -> set[int]:
    """Shingles of every text field in the `.jsonl(.gz)` files under `folder` (the public test
    data)."""
    found: set[int] = set()
    for path in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.jsonl.gz")]):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", newline="") as lines:
            for line in lines:
                for value in json.loads(line).values():
                    if isinstance(value, str):
                        found.update(shingles(value))
    return found


def build_texts(
    packages: Iterable[Package], folder: Path, out: Path, forbidden: set[int]
) -> Counter[str]:
    """Write the newest sources of the training packages; at most `MAX_TEXT_CHARS` of each, files
    drawn evenly."""
    counts: Counter[str] = Counter()
    with replacing(out) as file:
        for package in packages:
            if package.split != "train":
                continue
            wheel = open_wheel(package, package.versions[-1], folder)
            sources = sorted(python_sources(wheel), key=lambda source: stable_hash(source[0]))
            room = MAX_TEXT_CHARS
            for path, text in sources:
                if not forbidden.isdisjoint(shingles(text)):
                    counts["texts dropped: overlap with test data"] += 1
                elif len(text) <= room:
                    room -= len(text)
                    write_row(file, {"path": path, "text": text, "package": package.name})
                    counts["texts"] += 1
                    counts["text characters"] += len(text)
    return counts


def package_cases(package: Package, folder: Path) -> Iterator[dict[str, Any]]:
    """Every case of one package, from each release to the next, in a repeatable order."""
    wheels = [open_wheel(package, version, folder) for version in package.versions]
    sources = [dict(python_sources(wheel)) for wheel in wheels]
    for older, newer, before, after in zip(wheels, wheels[1:], sources, sources[1:], strict=False):
        for path in sorted(before.keys() & after.keys()):
            if before[path] != after[path]:
                yield from file_cases(older, newer, path, before[path], after[path])


def file_cases(
    older: Wheel, newer: Wheel, path: str, old: str, new: str
) -> Iterator[dict[str, Any]]:
    """The cases of one file between two releases; drawn by a generator seeded with the file's name
    and release."""
    name = newer.package.name
    rng = random.Random(f"{name} {newer.version} {path}")
    for number, episode in enumerate(episodes(path, old, new, rng)):
        label = f"{name}-{newer.version}-{stable_hash(path):08x}-{number}"
        for row in episode_cases(episode, rng):
            meta = row["meta"]
            meta |= {"package": name, "from": older.version, "to": newer.version, "episode": label}
            yield {"id": f"{label}-{meta['step']}-{meta['kind']}"} | row


def select(rows: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    """Draw cases so that their kinds stand in the ratio of `MIX`, as many as the linked jumps
    allow.

    Unlinked jumps (their target cannot be guessed, so silence is the good answer) come on top, at
    most `UNLINKED_JUMPS` as many as linked ones. The order of the rows is kept.
    """
    by_kind: dict[str, list[int]] = {kind: [] for kind in MIX}
    unlinked: list[int] = []
    for index, row in enumerate(rows):
        meta = row["meta"]
        target = (
            unlinked if meta["kind"] == "jump" and not meta["linked"] else by_kind[meta["kind"]]
        )
        target.append(index)
    total = len(by_kind["jump"]) / MIX["jump"]
    kept: set[int] = set(
        rng.sample(unlinked, min(len(unlinked), round(UNLINKED_JUMPS * len(by_kind["jump"]))))
    )
    for kind, share in MIX.items():
        members = by_kind[kind]
        kept.update(rng.sample(members, min(len(members), round(share * total))))
    return [row for index, row in enumerate(rows) if index in kept]


def deduplicate(
    rows: Iterable[dict[str, Any]], forbidden: set[int], seen: Counter[str], counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    """Drop equal questions, answers seen more than `MAX_REPEATS` times, and overlap with test data.

    `seen` carries over between calls: with the training cases first, no development case repeats
    one of them.
    """
    for row in rows:
        question = digest("question", row["text"], row["cursor"], row["mode"])
        change = digest(
            "change", row["meta"]["kind"], changed_part(row["text"], row["expected"][0])
        )
        if seen[question]:
            counts["cases dropped: same question"] += 1
        elif row["meta"]["kind"] not in ("done", "idle") and seen[change] >= MAX_REPEATS:
            counts["cases dropped: same change"] += 1
        elif not forbidden.isdisjoint(shingles(row["expected"][0])):
            counts["cases dropped: overlap with test data"] += 1
        else:
            seen[question] += 1
            seen[change] += 1
            yield row


def changed_part(old: str, new: str) -> tuple[str, str]:
    """The two texts without their common first and last lines."""
    left, right = old.split("\n"), new.split("\n")
    while left and right and left[0] == right[0]:
        del left[0], right[0]
    while left and right and left[-1] == right[-1]:
        del left[-1], right[-1]
    return "\n".join(left), "\n".join(right)


def digest(*parts: object) -> str:
    return hashlib.sha1(json.dumps(parts).encode()).hexdigest()


def stable_hash(text: str) -> int:
    return int.from_bytes(hashlib.sha1(text.encode()).digest()[:4], "big")


def write_row(file: Any, row: dict[str, Any]) -> None:
    file.write(json.dumps(row) + "\n")


class replacing:  # noqa: N801
    """Open `path` for writing under another name and move it into place when the block ends
    well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary = path.with_name(path.name + ".part")

    def __enter__(self) -> Any:
        self.file = self.temporary.open("w", encoding="utf-8", newline="")
        return self.file

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self.file.close()
        if kind is None:
            os.replace(self.temporary, self.path)


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as lines:
        for line in lines:
            yield json.loads(line)


def build(out: Path, manifest: Path, test_data: Path | None) -> dict[str, Any]:
    """Do the whole build into `out`; returns what is written to `manifest.json`."""
    packages = read_manifest(manifest)
    wheels, parts = out / "wheels", out / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    download(packages, wheels)
    forbidden = forbidden_shingles(test_data) if test_data else set()
    if not forbidden:
        print("no test data found: overlap with it is not checked", file=sys.stderr)
    counts = build_texts(packages, wheels, out / "texts-train.jsonl", forbidden)
    seen: Counter[str] = Counter()
    totals: dict[str, Counter[str]] = {}
    for split in ("train", "dev"):
        rows: list[dict[str, Any]] = []
        for package in packages:
            if package.split != split:
                continue
            key = digest(PARTS_VERSION, package.versions)[:12]
            part = parts / f"{package.name}-{key}.jsonl"
            if not part.exists():
                with replacing(part) as file:
                    for row in package_cases(package, wheels):
                        write_row(file, row)
            rows += deduplicate(read_rows(part), forbidden, seen, counts)
            print(f"{package.name}: {len(rows)} cases so far", file=sys.stderr)
        chosen = select(rows, random.Random(0))
        random.Random(0).shuffle(chosen)
        with replacing(out / f"cases-{split}.jsonl") as file:
            for row in chosen:
                write_row(file, row)
        totals[split] = Counter(kind_label(row) for row in chosen)
        totals[f"{split} per package"] = Counter(row["meta"]["package"] for row in chosen)
    summary = {
        "counts": dict(counts),
        "cases": {name: dict(sorted(counter.items())) for name, counter in totals.items()},
        "test_data_shingles": len(forbidden),
        "packages": [describe(package, wheels) for package in packages],
    }
    with replacing(out / "manifest.json") as file:
        json.dump(summary, file, indent=1)
    return summary


def kind_label(row: dict[str, Any]) -> str:
    meta = row["meta"]
    return (
        meta["kind"]
        if meta["linked"] is None
        else f"{meta['kind']} {'linked' if meta['linked'] else 'unlinked'}"
    )


def describe(package: Package, folder: Path) -> dict[str, Any]:
    wheels = [open_wheel(package, version, folder) for version in package.versions]
    return {
        "name": package.name,
        "split": package.split,
        "licence": package.licence,
        "releases": [
            {
                "version": wheel.version,
                "file": wheel.path.name,
                "sha256": wheel.sha256,
                "licence": wheel.licence,
            }
            for wheel in wheels
        ],
    }


def default_test_data() -> Path | None:
    """`$REDRAFT_DATA`, else `../shared/data` beside the repository, if there."""
    given = os.environ.get("REDRAFT_DATA")
    folder = (
        Path(given) if given else Path(__file__).resolve().parents[2].parent / "shared" / "data"
    )
    return folder if folder.is_dir() else None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m model.training.data", description=__doc__.split("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build", help="download, make the cases, write everything")
    command.add_argument(
        "--out", type=Path, required=True, help="folder for wheels, parts and the results"
    )
    command.add_argument(
        "--packages", type=Path, default=MANIFEST, help="the allow-list (packages.toml)"
    )
    command.add_argument(
        "--avoid",
        type=Path,
        default=default_test_data(),
        help="folder of test data to keep out ($REDRAFT_DATA)",
    )
    args = parser.parse_args(arguments)
    summary = build(args.out, args.packages, args.avoid)
    print(json.dumps({"counts": summary["counts"], "cases": summary["cases"]}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
