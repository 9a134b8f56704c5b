"""Files of JSON rows, written so that a half-written one is never taken for a whole one.

Knows nothing of what the rows say.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing under another name; move it into place when the block ends well."""
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as file:
        yield file
    os.replace(temporary, path)


def encode(row: dict[str, Any]) -> bytes:
    """One row as a line of ASCII with its line end."""
    return json.dumps(row).encode() + b"\n"


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for line in lines:
            yield json.loads(line)


def digest(*parts: object) -> str:
    """A hash of values that JSON can write; the same in every run."""
    return hashlib.sha1(json.dumps(parts).encode()).hexdigest()


def stable_hash(text: str) -> int:
    """32 bits of a text, the same in every run."""
    return int.from_bytes(hashlib.sha1(text.encode()).digest()[:4], "big")
