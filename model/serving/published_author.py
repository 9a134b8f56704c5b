"""Free text by an open diffusion model of someone else.

Responsible for conversations, whose answers are canvases behind the rendered template; a prompt is continued with what
the model puts at its end. Knows nothing of HTTP or of how a canvas is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import torch

from model.canvas import Asked
from model.chat import TAGS
from model.protocol import Stop
from model.published_predictor import PublishedPredictor
from model.serving.author import (
    Conversation,
    Conversing,
    PredictorAuthor,
    Screen,
    Step,
    TooLong,
    Watch,
    Written,
)


class PublishedAuthor(Conversing):
    """Writes with the model of a published checkpoint."""

    def __init__(self, predictor: PublishedPredictor) -> None:
        published = predictor.published
        places = published.config.max_positions
        super().__init__(predictor.name, published.folder, published.tokenizer, places)
        self._model = predictor
        self.complete = PredictorAuthor(predictor).complete

    @cached_property
    def _tags(self) -> Mapping[int, bytes]:
        """The tags around a call that are control tokens of this model."""
        control = self._model.published.tokenizer.control
        return {control[tag]: tag.encode() for tag in TAGS if tag in control}

    @torch.inference_mode()
    def chat(
        self,
        asked: Conversation,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None = None,
    ) -> Written:
        """The next turn. With tools the tags around a call are text.

        Raises `NoChat`, `TooLong`, `SchemaError`, and ValueError where the template refuses it.
        """
        published = self._model.published
        context = self._prompt(asked)
        room = self._model.room(context)
        if room < 1:
            raise TooLong(
                f"the prompt has {len(context)} tokens, and the model reads "
                f"{published.config.max_positions} with its answer"
            )
        most = min(max_tokens, room)
        screen = Screen(published.tokenizer, 0, stops, most, watch)
        tags = self._tags if asked.tools and asked.schema is None else {}

        def text_of(tokens: Sequence[int]) -> bytes:
            known = published.tokenizer.token_bytes
            return b"".join(tags.get(token) or known(token) for token in tokens)

        wanted = Asked(
            most,
            also=frozenset(tags),
            constraint=self._constraint(asked.schema),
            done=lambda answer: screen.stopped(text_of(answer.tokens)),
            watch=screen.show,
        )
        cached = self._model.windows.prefixes.shared(context)
        made = self._model.decoder.answer(self._model.windows.open(context, [], stop), stop, wanted)
        text = screen.final(text_of(made.tokens))
        if watch is not None:
            watch(Step(text, len(text), 1.0))
        ended = made.ended or screen.stopped(text_of(made.tokens))
        return Written(text, "stop" if ended else "length", len(context), cached, len(made.tokens))
