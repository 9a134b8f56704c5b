"""`redraft feedback show | export | purge`: what the local store holds, and how to be rid of it.

Responsible for the command's arguments and for what it prints. Knows nothing of a running server.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from model.feedback import FILE, FeedbackError, Store, data_folder, purge, to_json
from model.targets import check_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "export", "purge"))
    parser.add_argument("--store", type=Path, metavar="FILE", help="another store than your own")
    parser.add_argument(
        "--out", default="-", metavar="FILE", help="where `export` writes JSON lines (- for stdout)"
    )


def run(options: argparse.Namespace) -> int:
    """Carry the action out; 1 when the store cannot be used."""
    path = options.store or data_folder() / FILE
    try:
        return {"show": show, "export": export, "purge": forget}[options.action](path, options)
    except (FeedbackError, OSError) as error:
        print(f"redraft feedback: {error}", file=sys.stderr)
        return 1


def show(path: Path, _: argparse.Namespace) -> int:
    """Where the store is, how large, and how often what happened."""
    if not path.exists():
        print(f"no feedback yet ({path})")
        return 0
    with Store(path) as store:
        lives = list(store.lives())
    print(f"store        {path}\nsuggestions  {len(lives)}\nbytes        {path.stat().st_size}")
    if lives:
        ends = (datetime.fromtimestamp(lives[i].suggested.made, UTC) for i in (0, -1))
        print("from, to     " + ", ".join(f"{end:%Y-%m-%d %H:%M} UTC" for end in ends))
    with_text = sum(life.suggested.text is not None for life in lives)
    print(f"with text    {with_text}")
    counts = Counter(
        (life.suggested.mode, life.suggested.source or "-", event.state)
        for life in lives
        for event in life.events
    )
    for (mode, source, state), count in sorted(counts.items()):
        print(f"  {mode:10} {source:11} {state:16} {count}")
    return 0


def export(path: Path, options: argparse.Namespace) -> int:
    """Every suggestion as one JSON object a line, oldest first."""
    if not path.exists():
        raise FeedbackError(f"there is no feedback at {path}")
    check_file(options.out)
    with Store(path) as store:
        lines = [json.dumps(to_json(life)) + "\n" for life in store.lives()]
    if options.out == "-":
        sys.stdout.writelines(lines)
    else:
        Path(options.out).write_text("".join(lines), encoding="utf-8")
        print(f"{len(lines)} suggestions written to {options.out}")
    return 0


def forget(path: Path, _: argparse.Namespace) -> int:
    count = purge(path)
    print(f"{count} suggestions deleted" if count else "there was nothing to delete")
    return 0
