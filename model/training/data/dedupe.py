"""Near duplicates, and overlap with test data, by runs of 13 tokens.

Responsible for the runs of a text (words and single marks, white space does not count) and for what has been seen of
them. Runs of 13 tokens are the customary measure of contamination (GPT-3, appendix C). It knows nothing of files,
packages or models; texts and rows come in, verdicts go out.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.training.data.jsonl import digest

RUN = 13
MIN_WORDS = 5
NEAR = 0.5
NEAR_CHANGE = 0.8
MAX_REPEATS = 3

HEADER = re.compile(r"\s*(?:(?:#|//|/?\*).*(?:\n|$)\s*)+")
LICENCE = re.compile(r"(?i)licen[cs]e|copyright|warrant")
TOKEN = re.compile(r"\w+|[^\w\s]")
Runs = NDArray[np.uint64]


class _Tokens(dict[str, int]):
    """Token -> 64 random-looking bits, the same in every run."""

    def __missing__(self, token: str) -> int:
        raw = hashlib.blake2b(token.encode("utf-8", "replace"), digest_size=8).digest()
        self[token] = value = int.from_bytes(raw, "little")
        return value


_TOKENS = _Tokens()
_POWERS = np.array([pow(0x9E3779B97F4A7C15, k, 1 << 64) for k in range(RUN)], np.uint64)


def run_hashes(tokens: list[str]) -> Runs:
    """Hashes of each run of `RUN` tokens, in order: `[len(tokens) - RUN + 1]`, none when there are too few."""
    count = len(tokens) - RUN + 1
    if count <= 0:
        return np.zeros(0, np.uint64)
    ids = np.fromiter((_TOKENS[token] for token in tokens), np.uint64, len(tokens))
    total = np.zeros(count, np.uint64)
    for offset, power in enumerate(_POWERS):
        total += ids[offset : offset + count] * power
    return total


def tokens_of(text: str) -> list[str]:
    """The tokens of a text, without a licence at its head: the same words stand in half of all files."""
    header = HEADER.match(text)
    return TOKEN.findall(text, header.end() if header and LICENCE.search(header[0]) else 0)


def runs(text: str) -> Runs:
    """The different runs of a text, sorted."""
    return np.unique(run_hashes(tokens_of(text)))


class Seen:
    """The runs that were seen so far."""

    def __init__(self) -> None:
        self._runs: set[int] = set()

    def __len__(self) -> int:
        return len(self._runs)

    def share(self, some: Runs) -> float:
        """The share of `some` that was seen; 0 when there are none."""
        return self.count(some) / len(some) if len(some) else 0.0

    def count(self, some: Runs) -> int:
        return sum(run in self._runs for run in some.tolist())

    def add(self, some: Runs) -> None:
        self._runs.update(some.tolist())


def is_telling(tokens: list[str]) -> bool:
    """Whether a run says enough to be known again: at least `MIN_WORDS` different words in it."""
    return len({token for token in tokens if token[0].isalpha() and len(token) > 1}) >= MIN_WORDS


def forbidden_runs(folder: Path) -> Seen:
    """The telling runs of every text field in the `.jsonl(.gz)` files under `folder` (public test data)."""
    values: set[str] = set()
    for path in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.jsonl.gz")]):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", newline="") as lines:
            for line in lines:
                values.update(v for v in json.loads(line).values() if isinstance(v, str))
    seen = Seen()
    for value in values:
        tokens = tokens_of(value)
        telling = [is_telling(tokens[i : i + RUN]) for i in range(len(tokens) - RUN + 1)]
        seen.add(run_hashes(tokens)[np.array(telling, bool)])
    return seen


class Deduplicator:
    """Lets each text and case through once.

    What it has let through stays known between calls: with the training part first, nothing of the development part
    is near it. `dropped` counts what it held back, by reason.
    """

    def __init__(self, forbidden: Seen) -> None:
        self.forbidden = forbidden
        self.texts = Seen()
        self.changes = Seen()
        self.rows: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def new_text(self, text: str) -> bool:
        """Whether a text has no telling run of the test data and at most `NEAR` of its runs were seen."""
        some = runs(text)
        if self.forbidden.count(some):
            return self._drop("texts: overlap with test data")
        if self.texts.share(some) > NEAR:
            return self._drop("texts: near duplicate")
        self.texts.add(some)
        return True

    def new_episode(self, before: str, after: str) -> bool:
        """The same for a sitting, by all runs against the test data and by those that it changes otherwise."""
        old, new = runs(before), runs(after)
        if self.forbidden.count(old) or self.forbidden.count(new):
            return self._drop("episodes: overlap with test data")
        changed = np.setxor1d(old, new, assume_unique=True)
        if self.changes.share(changed) > NEAR_CHANGE:
            return self._drop("episodes: near duplicate")
        self.changes.add(changed)
        return True

    def new_case(self, row: dict[str, Any]) -> bool:
        """Whether a case asks a new question, and its answer was not given `MAX_REPEATS` times already."""
        kind = row["meta"]["kind"]
        question = digest("question", row["text"], row["cursor"], row["mode"])
        change = digest("change", kind, changed_part(row["text"], row["expected"][0]))
        if self.rows[question]:
            return self._drop("cases: same question")
        if kind not in ("done", "idle") and self.rows[change] >= MAX_REPEATS:
            return self._drop("cases: same change")
        self.rows[question] += 1
        self.rows[change] += 1
        return True

    def _drop(self, reason: str) -> bool:
        self.dropped[reason] += 1
        return False


def changed_part(old: str, new: str) -> tuple[str, str]:
    """The two texts without their common first and last lines."""
    left, right = old.split("\n"), new.split("\n")
    room = min(len(left), len(right))
    head = next((i for i in range(room) if left[i] != right[i]), room)
    room -= head
    tail = next((i for i in range(room) if left[-1 - i] != right[-1 - i]), room)
    return "\n".join(left[head : len(left) - tail]), "\n".join(right[head : len(right) - tail])
