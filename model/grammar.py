"""What an answer must look like: a JSON schema, as the tokens that may come next.

Responsible for turning a schema into a constraint on the vocabulary of one model, and for how far an answer has come in
it. The parser is llguidance's, an optional library. Knows nothing of decoding loops, of networks or of HTTP.

JSON is written on one line with a blank behind each comma and colon, so that no model can fill its answer with blanks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from model.tokenizer import Tokenizer

Schema = Mapping[str, Any]

ANY_OBJECT: Schema = {"type": "object"}
STYLE: Any = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "lenient": False,
    "coerce_one_of": True,
}
MISSING = (
    "the shape of an answer is enforced with the library llguidance, which is not installed: "
    "pip install 'redraft[serve]'"
)


class SchemaError(ValueError):
    """A schema that cannot be enforced; the message says why."""


class Constraint:
    """One answer on its way through a grammar."""

    def __init__(self, matcher: Any, tokenizer: Tokenizer) -> None:
        self._matcher, self._tokenizer = matcher, tokenizer

    @property
    def complete(self) -> bool:
        """Whether the answer may end here."""
        return bool(self._matcher.is_accepting())

    @property
    def closed(self) -> bool:
        """Whether the answer must end here."""
        return bool(self._matcher.is_stopped())

    def only(self, logits: Tensor, ends: Collection[int] = ()) -> Tensor:
        """`logits [..., vocab]` with minus infinity for all that may not come next. `ends` may where the answer is
        complete."""
        allowed = np.zeros(logits.shape[-1], dtype=bool)
        if not self.closed:
            bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
            words = np.unpackbits(bits, bitorder="little")[: self._tokenizer.size].astype(bool)
            allowed[: len(words)] = words
        allowed[list(self._tokenizer.control_ids)] = False
        if self.complete:
            allowed[list(ends)] = True
        mask = torch.from_numpy(allowed).to(logits.device)
        return logits.masked_fill(~mask, float("-inf"))

    def take(self, token: int) -> None:
        """The answer goes on with `token`, which must be allowed."""
        if not self._matcher.consume_token(token):
            raise SchemaError(f"the schema is too involved: {self._matcher.get_error()}")

    def forced(self) -> list[int]:
        """Tokens of what can only follow, but the last, which may merge with what comes behind."""
        text = self._matcher.compute_ff_bytes().decode("utf-8", "ignore")
        tokens = self._tokenizer.encode(text)[:-1]
        return tokens[: self._matcher.validate_tokens(tokens)]


class Grammars:
    """Makes constraints for the vocabulary of one model. Building one takes a fraction of a second."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Raises `SchemaError` where the library is missing."""
        try:
            import llguidance
        except ModuleNotFoundError:
            raise SchemaError(MISSING) from None
        self._library, self._tokenizer = llguidance, tokenizer
        self._vocabulary = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_Vocabulary(tokenizer)),
            slices=llguidance.LLTokenizer.json_slices(),
        )

    def json(self, schema: Schema) -> Constraint:
        """An answer that is JSON of this schema. Raises `SchemaError`, for keywords that are not known, too."""
        matching = self._library.LLMatcher
        try:
            grammar = matching.grammar_from_json_schema(json.dumps(schema), overrides=STYLE)
        except ValueError as error:
            raise SchemaError(str(error)) from None
        wrong, told = matching.validate_grammar_with_warnings(grammar, self._vocabulary)
        if wrong:
            raise SchemaError(told[0])
        return Constraint(matching(self._vocabulary, grammar, log_level=0), self._tokenizer)


class _Vocabulary:
    """A tokenizer as llguidance wants to see it."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._encode = tokenizer.encode
        self.special_token_ids = sorted(tokenizer.control_ids)
        self.eos_token_id = self.special_token_ids[0] if self.special_token_ids else 0
        self.tokens = [
            f"<{token}>".encode()
            if token in tokenizer.control_ids
            else tokenizer.token_bytes(token)
            for token in range(tokenizer.size)
        ]

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode("utf-8", "replace"))
