"""From the built data to shards of lessons for one model.

    redraft pack --data DATA --out SHARDS [--room 256]

Responsible for choosing which raw examples become lessons and how many. Knows nothing of training.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from model.bundle import EMBEDDED, control_ids
from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.training.lessons import Lesson, LessonWriter, random_gap
from model.training.shards import write_shard

SHARD = 20_000


def gap_lessons(path: Path, writer: LessonWriter, count: int, seed: int) -> Iterator[Lesson]:
    """`count` gaps in the texts of a `texts-*.jsonl`, drawn evenly over their characters."""
    texts = list(read_rows(path))
    ends, total = [], 0
    for row in texts:
        total += min(len(row["text"]), 40_000)
        ends.append(total)
    rng = random.Random(seed)
    made = 0
    while made < count and texts:
        row = rng.choices(texts, cum_weights=ends)[0]
        gap = random_gap(row["text"], rng)
        lesson = writer.gap(row["path"], row["text"], *gap, rng) if gap else None
        if lesson:
            made += 1
            yield lesson


def case_lessons(path: Path, writer: LessonWriter, count: int, seed: int) -> Iterator[Lesson]:
    rng = random.Random(seed)
    made = 0
    for row in read_rows(path):
        for lesson in writer.case(row, rng):
            made += 1
            yield lesson
        if made >= count:
            return


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as lines:
        for line in lines:
            yield json.loads(line)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="what `redraft data build` wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder of shards")
    parser.add_argument("--model", type=Path, default=EMBEDDED, help="whose tokenizer and prompts")
    parser.add_argument("--split", choices=("train", "dev"), default="train")
    parser.add_argument("--gaps", type=int, default=200_000, help="lessons in filling in")
    parser.add_argument("--cases", type=int, default=50_000, help="lessons from next-edit cases")
    parser.add_argument("--gap-room", type=int, default=1024, help="tokens of a gap at most")
    parser.add_argument("--case-room", type=int, default=2048, help="tokens of a case at most")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    """Carry `redraft pack` out; returns the exit code."""
    config = ModelConfig.load(args.model)
    tokenizer = Tokenizer(args.model / "tokenizer.json", control_ids(config))
    counts: dict[str, dict[str, int]] = {}
    parts = {
        "gaps": (gap_lessons, f"texts-{args.split}.jsonl", args.gaps, args.gap_room),
        "cases": (case_lessons, f"cases-{args.split}.jsonl", args.cases, args.case_room),
    }
    for name, (write, file, count, room) in parts.items():
        path = args.data / file
        if not count or not path.exists():
            print(f"no {name}: {path}", file=sys.stderr)
            continue
        lessons = write(path, LessonWriter(tokenizer, config, room), count, args.seed)
        counts[name] = write_shard(lessons, args.out / name)
    print(json.dumps(counts, indent=1))
    return 0 if counts else 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
