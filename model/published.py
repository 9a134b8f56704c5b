"""The tokenizer of a published checkpoint: plain text, and the control tokens with their ids.

Responsible for reading `tokenizer.json`, or `vocab.json` with `merges.txt`, and for what the other files say of control
tokens. Text that looks like a control token is text; only `encode_template` reads control tokens. Knows nothing of what
a family uses them for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as _Tokenizer

from model.config import ModelError
from model.tokenizer import Tokenizer

QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TAIL = 256
ROLES = ("mask", "bos", "eos", "pad")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no such file. Raises `ModelError`."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    if not isinstance(raw, dict):
        raise ModelError(f"{path} is not a JSON object")
    return raw


def content(token: object) -> str | None:
    """The text of a token that is named as text or as an object."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def added_tokens(folder: Path) -> dict[str, int]:
    """Tokens beyond the vocabulary by their text, from every file that may name them."""
    found = {
        str(row["content"]): int(row["id"])
        for row in read_json(folder / "tokenizer.json").get("added_tokens", [])
    }
    found |= {text: int(id_) for text, id_ in read_json(folder / "added_tokens.json").items()}
    decoder = read_json(folder / "tokenizer_config.json").get("added_tokens_decoder", {})
    return found | {str(row["content"]): int(id_) for id_, row in decoder.items()}


def plain_tokenizer(folder: Path) -> _Tokenizer:
    """The tokenizer without its added tokens, so that no text is ever taken for one."""
    whole = read_json(folder / "tokenizer.json")
    try:
        if whole:
            return _Tokenizer.from_str(json.dumps({**whole, "added_tokens": []}))
        bpe = models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    except Exception as error:
        raise ModelError(
            f"no readable tokenizer in {folder} (tokenizer.json, or vocab.json and merges.txt): {error}"
        ) from error
    inner = _Tokenizer(bpe)
    inner.normalizer = normalizers.NFC()
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    return inner


class PublishedTokenizer(Tokenizer):
    """A byte-level tokenizer and the control tokens of its checkpoint: `control` by text, `roles` by role.

    Raises `ModelError` where the files are missing, damaged or of another kind.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.control = added_tokens(folder)
        inner = plain_tokenizer(folder)
        if inner.pre_tokenizer is None:
            raise ModelError(f"the tokenizer of {folder} is not a byte-level one")
        try:
            self._build(inner, self.control.values())
        except KeyError as error:
            raise ModelError(
                f"the tokenizer of {folder} is not a byte-level one: it has the character {error}"
            ) from error
        self._name(self.control)
        self.roles = self._roles()

    def cover(self, rows: int) -> None:
        """Count the rows of a model's embedding that no token has among the control tokens."""
        self.control_ids |= frozenset(range(self.size, rows))
        self._bytes += [b""] * (rows - self.size)
        self.size = max(self.size, rows)

    def _roles(self) -> Mapping[str, int]:
        """The ids of mask, begin, end and padding as far as the tokenizer's files name them."""
        found = {}
        files = [
            read_json(self.folder / name)
            for name in ("tokenizer_config.json", "special_tokens_map.json")
        ]
        for role in ROLES:
            for raw in files:
                text = content(raw.get(f"{role}_token"))
                if text is not None and (index := self.token_id(text)) is not None:
                    found[role] = index
        return found

    def token_id(self, text: str) -> int | None:
        """The id of a control token, or of a token of the vocabulary that is written so."""
        index = self.control.get(text)
        if index is None:
            index = self._inner.token_to_id(text)
        return index

    def like(self, part: str) -> list[int]:
        """Ids of the control tokens whose text contains `part`, in any case."""
        return sorted(id_ for text, id_ in self.control.items() if part in text.lower())

    def heal(self, text: str) -> tuple[str, bytes]:
        """Cut the last piece off `text`, so that what follows may merge with it.

        The last blank of several belongs to the word that follows; a line end stands for itself.
        """
        tail = text[-TAIL:]
        pieces = self._inner.pre_tokenizer.pre_tokenize_str(tail)
        if not pieces or tail[-1:] in "\r\n":
            return text, b""
        start = pieces[-1][1][0]
        if not tail[start:].strip():
            start = len(tail) - 1
        return text[: len(text) - len(tail) + start], tail[start:].encode("utf-8", "replace")
