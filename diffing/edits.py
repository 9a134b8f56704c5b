"""Edits of a text: apply, invert, compose, shrink, and follow what the user types meanwhile.

Responsible for changes as code point offsets. Knows nothing of lines, files, LSP encodings or models.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `text[start:end]` by `new_text`. Offsets count code points of the text before; `end` is exclusive."""

    start: int
    end: int
    new_text: str
