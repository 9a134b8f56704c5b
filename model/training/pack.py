"""From the built data to shards of lessons for one model.

    redraft pack --data DATA --out SHARDS
    redraft pack --simulated CASES RECORD --feedback EXPORTED --out SHARDS     (labelled, for a recipe with KTO)

Responsible for choosing which raw examples become lessons and how many. Knows nothing of training.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from model import bounds
from model.bundle import EMBEDDED, control_ids
from model.config import ModelConfig
from model.evaluation.simulate_command import read_traces
from model.feedback import FeedbackError, read_lives
from model.targets import check_folder
from model.tokenizer import Tokenizer
from model.training.data.jsonl import read_rows
from model.training.lessons import Lesson, LessonWriter
from model.training.preference_lessons import kept, read_record, simulated
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
    parser.add_argument("--data", type=Path, help="what `redraft data build` wrote")
    parser.add_argument(
        "--simulated",
        nargs=2,
        type=Path,
        metavar=("CASES", "RECORD"),
        help="what the simulated user makes of a record of `redraft simulate`",
    )
    parser.add_argument(
        "--feedback",
        type=Path,
        metavar="FILE",
        help="what `redraft feedback export` wrote; only suggestions that are kept with text",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of shards")
    parser.add_argument("--model", type=Path, default=EMBEDDED, help="whose tokenizer and prompts")
    parser.add_argument("--split", choices=("train", "dev"), default="train")
    parser.add_argument(
        "--gaps", type=bounds.whole(0), default=200_000, help="lessons in filling in"
    )
    parser.add_argument(
        "--cases", type=bounds.whole(0), default=50_000, help="lessons from next-edit cases"
    )
    parser.add_argument(
        "--gap-room", type=bounds.count, default=1024, help="tokens of a gap at most"
    )
    parser.add_argument(
        "--case-room", type=bounds.count, default=2048, help="tokens of a case at most"
    )
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    """Carry `redraft pack` out; returns the exit code."""
    if bool(args.data) == bool(args.simulated or args.feedback):
        print("redraft pack: name --data, or --simulated and --feedback", file=sys.stderr)
        return 2
    check_folder(args.out)
    config = ModelConfig.load(args.model)
    tokenizer = Tokenizer(args.model / "tokenizer.json", control_ids(config))
    try:
        if args.data:
            counts = pack_data(args, tokenizer, config)
        else:
            writer = LessonWriter(tokenizer, config, args.case_room, infill=config.infill)
            counts = {
                name: write_shard(lessons, args.out / name)
                for name, lessons in labelled(args, writer).items()
            }
    except (FileNotFoundError, FeedbackError, ValueError) as error:
        print(f"redraft pack: {error}", file=sys.stderr)
        return 2
    print(json.dumps(counts, indent=1))
    return 0


def pack_data(
    args: argparse.Namespace, tokenizer: Tokenizer, config: ModelConfig
) -> dict[str, dict[str, int]]:
    """Gaps and next-edit cases of the built data. Raises FileNotFoundError."""
    parts = {
        "gaps": (gap_lessons, args.gaps, args.gap_room),
        "cases": (case_lessons, args.cases, args.case_room),
    }
    counts = {}
    for name, (write, count, room) in parts.items():
        writer = LessonWriter(tokenizer, config, room)
        try:
            lessons = write(args.data, args.split, writer, count, args.seed)
            counts[name] = write_shard(lessons, args.out / name)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error}; `redraft data build` writes it") from error
    return counts


def labelled(args: argparse.Namespace, writer: LessonWriter) -> dict[str, Iterator[Lesson]]:
    """Lessons with a label, by where they come from. Raises FileNotFoundError, FeedbackError and ValueError."""
    found: dict[str, Iterator[Lesson]] = {}
    if args.simulated:
        cases, record = args.simulated
        found["simulated"] = simulated(read_traces(cases, None, 3), read_record(record), writer)
    if args.feedback:
        found["feedback"] = kept(read_lives(args.feedback), writer)
    return found
