"""Where the time of one keystroke goes, in the project's own terms.

    python -m model.evaluation.flame --out docs/flame.svg

Responsible for sampling the thread that answers, for folding stacks into a tree of named parts, and for the table. It
knows what the parts are called (`PARTS`), not what they do. A sample counts for all the time since the one before it,
so that work which keeps the interpreter's lock is seen late, but not lost.
"""

from __future__ import annotations

import argparse
import linecache
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

from model.answer import answer
from model.evaluation import bench, flame_picture
from model.evaluation.report import table
from model.protocol import Mode, Predictor, Request, Stop

ROOT = Path(__file__).parents[2]
EVERY_S = 0.002
LARGE = 0.05
TITLES = {"fim": "completion", "next_edit": "next edit"}


@dataclass(frozen=True, slots=True)
class Part:
    """A name for functions whose `module:qualname` matches `where`.

    With `doing` only while the expression that is evaluated begins so. `own` names what the function does itself,
    where its calls have names of their own. `name` may refer to groups of `where`.
    """

    where: str
    name: str
    doing: str = ""
    own: str = ""


PARTS = (
    Part(r"model\.linear:(Packed|Unpacked)\.__call__", "int8 products"),
    Part(r"model\.linear:Int8Linear\.__call__", "", r"self\.product\("),
    Part(r"model\.linear:Int8Linear\.__call__", "scales of rows"),
    Part(r"model\.linear:(\w+)Linear\.__call__", r"\1 products"),
    Part(r"model\.transformer:attend", "attention"),
    Part(r"model\.transformer:rms_norm", "norms"),
    Part(r"model\.transformer:rotate", "rotary positions"),
    Part(r"model\.transformer:Layer\.project", "", own="heads taken apart"),
    Part(r"model\.transformer:Layer\.run", "", own="cache writes and sums"),
    Part(r"model\.transformer:Layer\.feed_forward", "", own="gate of the feed-forward"),
    Part(r"model\.transformer:Transformer\.forward", "trunk", own="cache writes and sums"),
    Part(r"model\.transformer:Transformer\.head", "head"),
    Part(r"model\.denoiser:Denoiser\.forward", "block denoiser", own="canvas"),
    Part(r"model\.denoise:Decoder\._record", "", r"done\("),
    Part(r"model\.denoise:(entropy|Decoder\._record)", "entropies"),
    Part(r"model\.denoise:(Decoder\._draft|ngram_draft)", "n-gram drafts"),
    Part(r"model\.denoise:prefill", "encoding the context"),
    Part(r"model\.denoise:Decoder\.generate", "continuation"),
    Part(r"model\.word:likely_rest", "word at the cursor"),
    Part(r"model\.complete:Completer\._posterior", "judge of endings"),
    Part(r"model\.complete:Completer\._others", "other beginnings"),
    Part(r"model\.locate:DraftJudge\.judge", "judge of drafts"),
    Part(r"model\.judge:Aside\.read", "reading the newest edit"),
    Part(r"model\.judge:", "one pass over branches"),
    Part(r"model\.draft(_\w+)?:", "drafts by rules"),
    Part(r"model\.(context|excerpts):", "choice of context"),
    Part(r"model\.(prompt|tokenizer):", "tokenize"),
    Part(r"model\.cache:", "prefix cache"),
    Part(r"model\.(gate|features|candidate):", "gate"),
    Part(r"model\.(filters:|answer:(?!answer$))", "filters and edits"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A function at work, and the beginning of the expression that it evaluates."""

    where: str
    doing: str = ""


@dataclass
class Node:
    """A part, the seconds in it, and the parts in it. What no child has is its own."""

    name: str
    seconds: float = 0.0
    children: dict[str, Node] = field(default_factory=dict)

    def add(self, names: Sequence[str], seconds: float) -> None:
        self.seconds += seconds
        if names:
            child = self.children.setdefault(names[0], Node(names[0]))
            child.add(names[1:], seconds)

    @property
    def own(self) -> float:
        return max(0.0, self.seconds - sum(child.seconds for child in self.children.values()))

    def ordered(self) -> list[Node]:
        """The children, the largest first."""
        return sorted(self.children.values(), key=lambda node: -node.seconds)

    def leaves(self) -> dict[str, float]:
        """The seconds that belong to each name itself, wherever it stands."""
        found = {self.name: self.own}
        for child in self.children.values():
            for name, seconds in child.leaves().items():
                found[name] = found.get(name, 0.0) + seconds
        return found


def names_of(stack: Sequence[Place], parts: Sequence[Part] = PARTS) -> list[str]:
    """The named parts of a stack, from the outermost; functions without a name belong to who called them."""
    names: list[str] = []
    for depth, place in enumerate(stack):
        for part in parts:
            match = re.match(part.where, place.where)
            if match is None or not re.match(part.doing, place.doing):
                continue
            name = match.expand(part.name)
            name = name[:1].lower() + name[1:]
            if name and name not in names[-1:]:
                names.append(name)
            if part.own and depth == len(stack) - 1:
                names.append(part.own)
            break
    return names


@cache
def place(code: CodeType, instruction: int) -> Place | None:
    """Where a frame of this project is; None for one of somebody else."""
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT) or ".venv" in path.parts:
        return None
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    line, _, column, _ = list(code.co_positions())[instruction // 2]
    source = linecache.getline(code.co_filename, line) if line else ""
    doing = source.encode()[column or 0 :].decode("utf-8", "ignore").strip()
    return Place(f"{module}:{code.co_qualname}", doing)


Frames = tuple[tuple[CodeType, int], ...]
"""Code and instruction of every frame, from the innermost."""


def frames_below(frame: FrameType | None, top: CodeType) -> Frames:
    """What `top` has called; empty where `top` does not run."""
    found: list[tuple[CodeType, int]] = []
    while frame is not None:
        if frame.f_code is top:
            return tuple(found)
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return ()


def places(frames: Frames) -> list[Place]:
    """This project's part of a stack, from the outermost."""
    found = (place(code, instruction) for code, instruction in reversed(frames))
    return [one for one in found if one is not None]


class Sampler:
    """Looks at the thread that made it, every two milliseconds while `watching`."""

    def __init__(self, every: float = EVERY_S, clock: Callable[[], float] = time.perf_counter):
        self.every, self.clock = every, clock
        self.thread = threading.get_ident()

    @contextmanager
    def watching(self, top: CodeType, root: Node) -> Iterator[None]:
        """Add what passes meanwhile, below the function `top`, to `root`; names are found afterwards."""
        seen: dict[Frames, float] = {}
        ended = threading.Event()
        began = self.clock()
        watcher = threading.Thread(target=self._watch, args=(top, seen, began, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            passed = self.clock() - began
            ended.set()
            watcher.join()
            for frames, seconds in seen.items():
                root.add(names_of(places(frames)), seconds)
            root.add([], max(0.0, passed - sum(seen.values())))

    def _watch(
        self, top: CodeType, seen: dict[Frames, float], last: float, ended: threading.Event
    ) -> None:
        while not ended.wait(self.every):
            frames = frames_below(sys._current_frames().get(self.thread), top)
            now = self.clock()
            if frames:
                seen[frames] = seen.get(frames, 0.0) + now - last
                last = now


def press(predictor: Predictor, requests: Iterable[Request]) -> None:
    """Answer requests of a trace, one after another."""
    for request in requests:
        answer(predictor, request, Stop(), threshold=0.0)


def profile(
    predictor: Predictor,
    mode: Mode,
    lines: int,
    keys: int,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Node, int]:
    """The tree of one mode over the warm keys of its traces, and how many keys these were."""
    sampler, total, pressed = Sampler(clock=clock), Node(TITLES[mode]), 0
    for trace in bench.typed([lines], [mode], keys, repeats):
        first, *warm = trace.requests
        press(predictor, [first])
        one = Node(TITLES[mode])
        with sampler.watching(press.__code__, one):
            press(predictor, warm)
        merge(total, one)
        pressed += len(warm)
    return total, pressed


def merge(into: Node, other: Node) -> None:
    into.seconds += other.seconds
    for name, child in other.children.items():
        merge(into.children.setdefault(name, Node(name)), child)


def tree_table(root: Node, keys: int, least: float = 0.01) -> str:
    """The tree as plain text: milliseconds a key and the share of all, of parts of at least `least`."""
    rows: list[list[str]] = []

    def add(node: Node, depth: int) -> None:
        share = node.seconds / root.seconds if root.seconds else 0.0
        if share < least:
            return
        ms = 1000 * node.seconds / max(1, keys)
        rows.append(["  " * depth + node.name, f"{ms:.1f}", f"{share:.1%}"])
        for child in node.ordered():
            add(child, depth + 1)
        if node.children and node.own >= least * root.seconds:
            own = node.own / root.seconds
            rows.append(
                [
                    "  " * (depth + 1) + "(itself)",
                    f"{1000 * node.own / max(1, keys):.1f}",
                    f"{own:.1%}",
                ]
            )

    add(root, 0)
    return table(["part", "ms a key", "share"], rows)


def parts_table(roots: Sequence[Node], least: float = 0.01) -> str:
    """Each part's own time wherever it stands, in percent of each root."""
    leaves = [
        {name: s / root.seconds for name, s in root.leaves().items()}
        for root in roots
        if root.seconds
    ]
    largest = {name: max(one.get(name, 0.0) for one in leaves) for one in leaves for name in one}
    names = sorted((n for n in largest if largest[n] >= least), key=lambda n: -largest[n])
    rows = [[name, *(f"{one.get(name, 0.0):.1%}" for one in leaves)] for name in names]
    return table(["time of its own", *(root.name for root in roots if root.seconds)], rows)


def unnamed(root: Node) -> float:
    """The share of the time for which no part has a name."""
    return root.own / root.seconds if root.seconds else 0.0


def main(argv: Sequence[str] | None = None) -> int:
    from model.library import load

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="draw it (.svg)")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lines", type=int, default=500, help="size of the edited file")
    parser.add_argument(
        "--keys", type=int, default=12, help="keys of each trace; the first is cold"
    )
    parser.add_argument("--limit", type=int, default=6, help="traces of each kind")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count the processor's time, of all threads, for a machine that does other work",
    )
    args = parser.parse_args(argv)
    clock = time.process_time if args.processor_time else time.perf_counter
    predictor = load(args.model, threads=args.threads)
    roots = []
    for mode in bench.MODES:
        root, keys = profile(predictor, mode, args.lines, args.keys, args.limit, clock)
        roots.append((root, keys))
        print(f"{tree_table(root, keys)}\n")
        if unnamed(root) > LARGE:
            print(f"{unnamed(root):.0%} of {root.name} has no name: add to PARTS\n")
    print(parts_table([root for root, _ in roots]))
    if args.out:
        what = f"{args.lines} lines, {args.threads} thread{'s' * (args.threads > 1)}, context warm"
        what += ", processor time" * args.processor_time
        args.out.write_text(flame_picture.draw(roots, what), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
