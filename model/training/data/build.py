"""Builds the training and development data: texts, gaps to fill and edit cases.

Responsible for the whole build, one command, resumable: `redraft data build --out DIR`. Downloads are kept under
DIR/releases and the rows of each package under DIR/parts, so that a second run does only what is missing. It knows
nothing of models, tokens or training. Public test data is only read to keep it out.

Files written, for SPLIT `train` and `dev`:

- `texts-SPLIT.jsonl`: `{"path", "text", "package", "language"}`
- `fim-SPLIT.jsonl`: `{"text", "start", "end", "kind", "lines"}`, where `text` counts the rows of `texts-SPLIT.jsonl`
  from 0 and the offsets count code points; in the order of the texts
- `cases-SPLIT.jsonl`: the headless contract with `expected`, and `meta`: package, from, to, kind, linked, step, episode
- `manifest.json`: the packages, the hashes of their releases, and what was counted
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import IO, Any

from model.evaluation.benchmarks import default_data
from model.targets import check_folder
from model.training.data.allowlist import (
    ALLOW_LIST,
    Package,
    Release,
    compare_with_record,
    narrowed,
    read_allow_list,
)
from model.training.data.dedupe import Deduplicator, Seen, forbidden_runs
from model.training.data.jsonl import encode, read_rows, replacing
from model.training.data.manifest import RECORDED, Counts, kind_label, recorded_hashes, summary
from model.training.data.parts import Part, make_part
from model.training.data.selection import select
from model.training.data.sources import REGISTRIES, open_release

SPLITS = ("train", "dev")


def build(out: Path, packages: list[Package], test_data: Path | None) -> dict[str, Any]:
    """Do the whole build into `out`; returns what is written to `manifest.json`.

    Errors: `RuntimeError` when a download fails, `ValueError` for a release whose licence or hash is wrong.
    """
    folder = out / "releases"
    folder.mkdir(parents=True, exist_ok=True)
    for name, registry in REGISTRIES.items():
        registry.download([package for package in packages if package.registry == name], folder)
    releases = {package: open_all(package, folder) for package in packages}
    forbidden = forbidden_runs(test_data) if test_data else Seen()
    if not forbidden:
        print("no test data found: overlap with it is not checked", file=sys.stderr)
    counts, dedupe, files_dropped = Counts(), Deduplicator(forbidden), Counter[str]()
    for split in SPLITS:
        parts: list[Part] = []
        for package in packages:
            if package.split == split:
                part = make_part(package, releases[package], out / "parts")
                files_dropped.update(part.dropped)
                parts.append(part)
                print(f"{split}: {package.name} is ready", file=sys.stderr)
        with (
            replacing(out / f"texts-{split}.jsonl") as texts,
            replacing(out / f"fim-{split}.jsonl") as holes,
        ):
            write_texts(parts, texts, holes, dedupe, counts, split)
        with replacing(out / f"cases-{split}.jsonl") as file:
            write_cases(parts, file, dedupe, counts, split)
    result = summary(releases, counts, dedupe.dropped, files_dropped, len(forbidden))
    with replacing(out / "manifest.json") as file:
        file.write(json.dumps(result, indent=1).encode() + b"\n")
    return result


def open_all(package: Package, folder: Path) -> list[Release]:
    """All releases of a package, checked against the recorded manifest."""
    record = recorded_hashes()
    releases = [open_release(package, version, folder) for version in package.versions]
    for release in releases:
        compare_with_record(release, record)
    return releases


def write_texts(
    parts: list[Part],
    texts: IO[bytes],
    holes: IO[bytes],
    dedupe: Deduplicator,
    counts: Counts,
    split: str,
) -> None:
    """Join the texts of all parts without near duplicates, and the gaps of those that are kept."""
    total = 0
    for part in parts:
        numbers: dict[int, int] = {}
        languages: dict[int, str] = {}
        for index, row in enumerate(read_rows(part.texts)):
            if dedupe.new_text(row["text"]):
                numbers[index], languages[index] = total, row["language"]
                total += 1
                texts.write(encode(row))
                counts.add(split, "texts by language", row["language"])
                counts.add(split, "characters by language", row["language"], len(row["text"]))
                counts.add(split, "texts by package", row["package"])
        for gap in read_rows(part.gaps):
            if gap["text"] in numbers:
                counts.add(split, "gaps by language", languages[gap["text"]])
                counts.add(split, "gaps by kind", gap["kind"])
                counts.add(split, "gaps by lines", "one" if gap["lines"] == 1 else "several")
                holes.write(encode(gap | {"text": numbers[gap["text"]]}))


def write_cases(
    parts: list[Part], file: IO[bytes], dedupe: Deduplicator, counts: Counts, split: str
) -> None:
    """Join the cases of all parts without near duplicates, in the ratio of kinds that `select` gives, shuffled.

    Rows stay on disk until they are chosen; only their places are held.
    """
    places: list[tuple[Part, int, int]] = []
    kinds: list[tuple[str, bool | None]] = []
    for part in parts:
        with part.cases.open("rb") as lines:
            at, wanted = 0, True
            for line in lines:
                row = json.loads(line)
                if "id" not in row:
                    wanted = dedupe.new_episode(row["before"], row["after"])
                elif wanted and dedupe.new_case(row):
                    places.append((part, at, len(line)))
                    kinds.append((row["meta"]["kind"], row["meta"]["linked"]))
                at += len(line)
    chosen = select(kinds, random.Random(0))
    random.Random(0).shuffle(chosen)
    files = {part.cases: part.cases.open("rb") for part in parts}
    for index in chosen:
        part, at, size = places[index]
        files[part.cases].seek(at)
        line = files[part.cases].read(size)
        file.write(line)
        row = json.loads(line)
        counts.add(split, "cases by kind", kind_label(row))
        counts.add(split, "cases by language", row["language"])
        counts.add(split, "cases by package", row["meta"]["package"])
    for opened in files.values():
        opened.close()


def default_test_data() -> Path | None:
    """The folder of the public benchmarks, if there."""
    folder = default_data()
    return folder if folder.is_dir() else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `redraft data`."""
    commands = parser.add_subparsers(dest="data_command", required=True)
    command = commands.add_parser("build", help="download, make the rows, write everything")
    add = command.add_argument
    add("--out", type=Path, required=True, help="folder for downloads, parts and the results")
    add("--packages", type=Path, default=ALLOW_LIST, help="the allow-list (packages.toml)")
    add("--only", nargs="+", default=[], metavar="NAME", help="these packages of the list only")
    add("--releases", type=int, metavar="N", help="the last N releases of each only")
    add(
        "--avoid",
        type=Path,
        default=default_test_data(),
        help="folder of test data to keep out ($REDRAFT_DATA)",
    )
    add("--record", action="store_true", help="keep the manifest in the source tree too")


def run(options: argparse.Namespace) -> int:
    """Carry out `redraft data build`; prints the counts. 0, or 1 with a message when it cannot be done."""
    try:
        packages = narrowed(read_allow_list(options.packages), options.only, options.releases)
        check_folder(options.out)
        result = build(options.out, packages, options.avoid)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"redraft data: {error}", file=sys.stderr)
        return 1
    if options.record:
        RECORDED.write_bytes((options.out / "manifest.json").read_bytes())
    shown = {key: result[key] for key in ("counts", "dropped", "files_dropped")}
    print(json.dumps(shown, indent=1))
    return 0
