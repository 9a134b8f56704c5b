"""From the built data to shards of lessons for one model.

    redraft pack --data DATA --out SHARDS

Responsible for choosing which raw examples become lessons and how many. Knows nothing of training.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from model.bundle import EMBEDDED, control_ids
from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.training.data.jsonl import read_rows
from model.training.lessons import Lesson, LessonWriter
from model.training.shards import write_shard


def gap_lessons(
    data: Path, split: str, writer: LessonWriter, count: int, seed: int
) -> Iterator[Lesson]:
    """`count` of the gaps in `fim-SPLIT.jsonl`, drawn evenly over all of them."""
    texts = list(read_rows(data / f"texts-{split}.jsonl"))
    gaps = list(read_rows(data / f"fim-{split}.jsonl"))
    rng = random.Random(seed)
    rng.shuffle(gaps)
    made = 0
    for gap in gaps:
        if made == count:
            return
        text = texts[gap["text"]]
        lesson = writer.gap(text["path"], text["text"], gap["start"], gap["end"], rng)
        if lesson:
            made += 1
            yield lesson


def case_lessons(
    data: Path, split: str, writer: LessonWriter, count: int, seed: int
) -> Iterator[Lesson]:
    """About `count` lessons of the first rows in `cases-SPLIT.jsonl`, which stand in a drawn order."""
    rng = random.Random(seed)
    made = 0
    for row in read_rows(data / f"cases-{split}.jsonl"):
        for lesson in writer.case(row, rng):
            made += 1
            yield lesson
        if made >= count:
            return


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
        "gaps": (gap_lessons, args.gaps, args.gap_room),
        "cases": (case_lessons, args.cases, args.case_room),
    }
    try:
        for name, (write, count, room) in parts.items():
            writer = LessonWriter(tokenizer, config, room)
            lessons = write(args.data, args.split, writer, count, args.seed)
            counts[name] = write_shard(lessons, args.out / name)
    except FileNotFoundError as error:
        print(f"redraft pack: {error}; `redraft data build` writes it", file=sys.stderr)
        return 2
    print(json.dumps(counts, indent=1))
    return 0
