"""Lessons on disk: packed, memory-mapped, read in any order.

Responsible for storing lessons as flat arrays and for packing batches of few lengths from them. Knows nothing of how
lessons are written or what is learned from them.

A shard is a folder of `.npy` files: `tokens` and `weights` (a weight is stored in 1/100) of all lessons one after
another, `lines` likewise, and for each lesson its offsets, kind, answer, target and label (-1: none; shards of before
have no such column). Nothing of it is read before it is asked for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from model.training.lessons import Lesson

FILES = ("tokens", "weights", "lines", "index")
WEIGHT_UNIT = 100


class ShardError(Exception):
    """A folder of shards that cannot be read, with the reason."""


def write_shard(lessons: Iterable[Lesson], folder: Path) -> dict[str, int]:
    """Store `lessons`; returns how many there are of each kind."""
    tokens: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    lines: list[np.ndarray] = []
    index: list[tuple[int, int, int, int, int, int]] = []
    kinds: dict[str, int] = {}
    counts: Counter[str] = Counter()
    at = line_at = 0
    for lesson in lessons:
        kind = kinds.setdefault(lesson.kind, len(kinds))
        counts[lesson.kind] += 1
        target = lesson.targets[0] if lesson.targets else -1
        label = -1 if lesson.desirable is None else int(lesson.desirable)
        index.append((at, line_at, kind, lesson.answer, target, label))
        tokens.append(np.array(lesson.tokens, dtype=np.uint32))
        weights.append(np.round(np.array(lesson.weights) * WEIGHT_UNIT).astype(np.uint8))
        lines.append(np.array(lesson.lines, dtype=np.uint16))
        at += len(lesson)
        line_at += len(lesson.lines)
    index.append((at, line_at, -1, 0, -1, -1))
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        "tokens": np.concatenate(tokens or [np.zeros(0, np.uint32)]),
        "weights": np.concatenate(weights or [np.zeros(0, np.uint8)]),
        "lines": np.concatenate(lines or [np.zeros(0, np.uint16)]),
        "index": np.array(index, dtype=np.int64),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    about = {"kinds": list(kinds), "counts": dict(counts), "tokens": at}
    (folder / "shard.json").write_text(json.dumps(about, indent=1) + "\n")
    return dict(counts)


class Shards:
    """The lessons of every shard below a folder, by number. Raises `ShardError` where there are none."""

    def __init__(self, folder: Path) -> None:
        found = sorted(path.parent for path in folder.rglob("shard.json"))
        if not found:
            raise ShardError(f"no shards in {folder}; `redraft pack` writes them")
        try:
            self._shards = [
                {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in FILES}
                for path in found
            ]
            self._kinds = [json.loads((p / "shard.json").read_text())["kinds"] for p in found]
        except (OSError, ValueError, KeyError) as error:
            raise ShardError(f"a shard in {folder} is damaged: {error}") from error
        sizes = [len(shard["index"]) - 1 for shard in self._shards]
        self._ends = np.cumsum(sizes)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _place(self, number: int) -> tuple[int, int]:
        shard = int(np.searchsorted(self._ends, number, side="right"))
        return shard, number - (int(self._ends[shard - 1]) if shard else 0)

    def size(self, number: int) -> int:
        """Tokens of a lesson."""
        shard, row = self._place(number)
        index = self._shards[shard]["index"]
        return int(index[row + 1][0] - index[row][0])

    def __getitem__(self, number: int) -> Lesson:
        shard, row = self._place(number)
        files = self._shards[shard]
        about, following = files["index"][row], files["index"][row + 1]
        at, line_at, kind, answer, target = about[:5]
        label = about[5] if len(about) > 5 else -1
        return Lesson(
            self._kinds[shard][kind],
            tuple(files["tokens"][at : following[0]].tolist()),
            tuple((files["weights"][at : following[0]] / WEIGHT_UNIT).tolist()),
            int(answer),
            tuple(files["lines"][line_at : following[1]].tolist()),
            (int(target),) if target >= 0 else (),
            None if label < 0 else bool(label),
        )

    def labels(self) -> tuple[int, int]:
        """How many lessons are desirable, and how many undesirable."""
        found = [shard["index"][:-1, 5] for shard in self._shards if shard["index"].shape[1] > 5]
        desirable, undesirable = (
            sum(int((part == sort).sum()) for part in found) for sort in (1, 0)
        )
        return desirable, undesirable

    def order(self, seed: int) -> Iterator[int]:
        """Numbers without end: every lesson once in a drawn order, then in another."""
        epoch = 0
        while True:
            yield from np.random.default_rng((seed, epoch)).permutation(len(self)).tolist()
            epoch += 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Lessons laid side by side: `tokens`, `weights` and the number of the lesson `owner` (-1 for padding), `[b, n]`.

    A row holds one lesson or several, one after another; positions count from the lesson's own start. `lessons` are
    (row, offset, lesson).
    """

    tokens: Tensor
    weights: Tensor
    owner: Tensor
    positions: Tensor
    lessons: tuple[tuple[int, int, Lesson], ...]

    def causal_mask(self) -> Tensor:
        """`[b, 1, n, n] bool`: a token sees the earlier ones of its own lesson, and itself."""
        n = self.tokens.shape[1]
        same = self.owner[:, :, None] == self.owner[:, None, :]
        return (same & torch.ones(n, n, dtype=torch.bool).tril())[:, None]

    @property
    def weight(self) -> float:
        return float(self.weights.sum())


def pack(lessons: Sequence[Lesson], length: int) -> Batch:
    """First-fit packing, longest first, into rows of `length` tokens; none of `lessons` may be longer."""
    rows: list[int] = []
    places: list[tuple[int, int, Lesson]] = []
    for lesson in sorted(lessons, key=len, reverse=True):
        row = next((r for r, used in enumerate(rows) if used + len(lesson) <= length), len(rows))
        if row == len(rows):
            rows.append(0)
        places.append((row, rows[row], lesson))
        rows[row] += len(lesson)
    width = max(rows)
    shape = (len(rows), width)
    tokens, positions = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    owner, weights = torch.full(shape, -1), torch.zeros(shape)
    for number, (row, at, lesson) in enumerate(places):
        span = slice(at, at + len(lesson))
        tokens[row, span] = torch.tensor(lesson.tokens)
        weights[row, span] = torch.tensor(lesson.weights)
        owner[row, span] = number
        positions[row, span] = torch.arange(len(lesson))
    return Batch(tokens, weights, owner, positions, tuple(places))
