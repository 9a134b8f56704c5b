"""Conversations with DiffusionGemma.

Responsible for its chat alone: the whole canvas is decided at once, by transformers' own loop, so an answer comes in
one piece and no schema can be enforced on it. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence

from model.gemma import GemmaPredictor
from model.grammar import SchemaError
from model.protocol import Stop
from model.serving.author import (
    Conversation,
    PredictorAuthor,
    Step,
    TooLong,
    Watch,
    Written,
    before_stop,
    refuse_hopeless,
)

NOT_ENFORCED = (
    "DiffusionGemma decides all of its canvas at once, so JSON of a schema and calls of functions cannot be enforced "
    "with it; ask for JSON in a message"
)


class GemmaAuthor:
    """Answers conversations with a loaded DiffusionGemma; equal ones get equal answers."""

    chats = True

    def __init__(self, predictor: GemmaPredictor) -> None:
        self._model = predictor
        self.complete = PredictorAuthor(predictor).complete

    @property
    def takes_tools(self) -> bool:
        return self._model.template.takes_tools

    def chat(
        self,
        asked: Conversation,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None = None,
    ) -> Written:
        """Answer a conversation. Raises `SchemaError` for any schema, `TooLong`, `Expired` at the deadline, and
        ValueError where the template refuses it."""
        if asked.schema is not None:
            raise SchemaError(NOT_ENFORCED)
        said = (turn.text for turn in asked.turns)
        refuse_hopeless(said, self._model.tokenizer.longest, self._model.places)
        context = self._model.template.tokens(self._model.tokenizer, asked.turns, asked.tools)
        most = min(max_tokens, self._model.places - len(context))
        if most < 1:
            raise TooLong(
                f"the prompt has {len(context)} tokens, and the model reads {self._model.places} with its answer"
            )
        tokens, _ = self._model.generate(context, most, stop)
        whole = self._model.tokenizer.decode(tokens)
        text = before_stop(whole, stops)
        if watch is not None:
            watch(Step(text, len(text), 1.0))
        cut = text == whole and len(tokens) >= most
        return Written(text, "length" if cut else "stop", len(context), 0, len(tokens))
