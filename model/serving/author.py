"""Free text: the continuation of a prompt, and the next turn of a conversation.

Responsible for prompts of tokens, for stop strings, and for what can be seen of a text while it is being made. Knows
nothing of HTTP, of files or of edits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch

from model.bundle import Bundle
from model.chat import Turn, load_template
from model.grammar import Constraint, Grammars, Schema
from model.protocol import Predictor, Request, Stop
from model.serving.tokens import Meter
from model.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Step:
    """What there is of a text. `text` is all of it, `decided` how much of it will not change, in characters;
    `progress` goes from 0 to 1."""

    text: str
    decided: int
    progress: float


@dataclass(frozen=True, slots=True)
class Written:
    """A text, how it ended (`stop` or `length`), and what it took."""

    text: str
    finish: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said, and what the next turn has to be: JSON of `schema` if one is given, `tools` being offered.

    `told` is one more instruction of the system.
    """

    turns: Sequence[Turn]
    schema: Schema | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    told: str = ""


class TooLong(ValueError):
    """The prompt leaves no room for an answer."""


def refuse_hopeless(texts: Iterable[str], longest: int, places: int) -> None:
    """Raise `TooLong` for a prompt that cannot fit even if all its tokens have the `longest` number of bytes. To find
    the tokens of megabytes takes seconds in which nobody else is served."""
    least = -(-sum(map(len, texts)) // longest)
    if least > places:
        raise TooLong(
            f"the prompt has {least} tokens or more, and the model reads {places} with its answer"
        )


class NoChat(ValueError):
    """The model was not made for chat."""


Watch = Callable[[Step], None]


class Author(Protocol):
    """Writes free text. `watch` is called from the thread that writes."""

    @property
    def chats(self) -> bool: ...

    @property
    def takes_tools(self) -> bool:
        """Whether the model's chat template has a place for tools."""

    def complete(
        self,
        prompt: str,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None = None,
    ) -> Written: ...

    def chat(
        self,
        asked: Conversation,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None = None,
    ) -> Written: ...


class PredictorAuthor:
    """Continues a prompt with what a predictor puts at its end; holds no conversations."""

    chats = False
    takes_tools = False

    def __init__(self, predictor: Predictor) -> None:
        self._predictor, self._meter = predictor, Meter(predictor)

    def complete(
        self,
        prompt: str,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None = None,
    ) -> Written:
        request = Request("fim", "", prompt, len(prompt), max_tokens=max_tokens)
        made = self._predictor.predict(request, stop)
        whole = "".join(edit.new_text for edit in made.edits if edit.start == len(prompt))
        text = before_stop(whole, stops)
        short = self._meter.first(text, max_tokens)
        cut = short != text or (made.truncated and text == whole)
        if watch is not None:
            watch(Step(short, len(short), 1.0))
        counts = self._meter.count(prompt), 0, self._meter.count(short)
        return Written(short, "length" if cut else "stop", *counts)

    def chat(
        self,
        asked: Conversation,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None = None,
    ) -> Written:
        raise NoChat(f"the model {self._predictor.name} was not made for chat")


class Conversing:
    """What authors that hold conversations share: the model's chat template, and constraints on its answers."""

    def __init__(self, name: str, folder: Path, tokenizer: Tokenizer, places: int) -> None:
        self._name, self._tokenizer, self._places = name, tokenizer, places
        self._template = load_template(folder)

    @cached_property
    def _grammars(self) -> Grammars:
        return Grammars(self._tokenizer)

    @property
    def chats(self) -> bool:
        return self._template is not None

    @property
    def takes_tools(self) -> bool:
        return self._template is not None and self._template.takes_tools

    def _prompt(self, asked: Conversation) -> list[int]:
        """Raises `NoChat`, `TooLong`, and ValueError where the template refuses the conversation."""
        if self._template is None:
            raise NoChat(f"the model {self._name} was not made for chat")
        said = (turn.text for turn in asked.turns)
        refuse_hopeless((asked.told, *said), self._tokenizer.longest, self._places)
        turns = asked.turns
        if asked.told:
            turns = self._template.instructed(self._tokenizer, turns, asked.told)
        return self._template.tokens(self._tokenizer, turns, asked.tools)

    def _constraint(self, schema: Schema | None) -> Constraint | None:
        """What an answer in JSON of a schema must keep to. Raises `SchemaError`."""
        return None if schema is None else self._grammars.json(schema)


class BundleAuthor(Conversing):
    """Writes with the model of a bundle; greedy, so that equal prompts give equal texts."""

    def __init__(self, bundle: Bundle) -> None:
        places = bundle.prefixes.max_tokens
        super().__init__(bundle.config.name, bundle.folder, bundle.tokenizer, places)
        self.bundle = bundle

    def complete(
        self,
        prompt: str,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None = None,
    ) -> Written:
        """Continue a text. Raises `TooLong`, and `Expired` when not even the prompt could be read in time."""
        refuse_hopeless([prompt], self._tokenizer.longest, self._places)
        head, required = self.bundle.tokenizer.heal(prompt)
        start = self.bundle.config.special.get("endoftext")
        context = self.bundle.tokenizer.encode(head)
        if not context:
            context = [start if start is not None else 0]
        return self._write(context, required, max_tokens, stops, stop, watch)

    def chat(
        self,
        asked: Conversation,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None = None,
    ) -> Written:
        """The next turn. Raises `NoChat`, `TooLong`, `SchemaError`, and ValueError where the template refuses it."""
        context = self._prompt(asked)
        constraint = self._constraint(asked.schema)
        return self._write(context, b"", max_tokens, stops, stop, watch, constraint)

    @torch.inference_mode()
    def _write(
        self,
        context: list[int],
        required: bytes,
        max_tokens: int,
        stops: Sequence[str],
        stop: Stop,
        watch: Watch | None,
        constraint: Constraint | None = None,
    ) -> Written:
        room = self._places - len(context) - len(required)
        if room < 1:
            raise TooLong(
                f"the prompt has {len(context)} tokens, and the model reads {self._places} with its answer"
            )
        most = min(max_tokens, room)
        cached = self.bundle.prefixes.shared(context)
        slot = self.bundle.prefixes.acquire(context)
        screen = Screen(self.bundle.tokenizer, len(required), stops, most, watch)
        made = self.bundle.decoder.generate(
            slot,
            context,
            required=required,
            max_tokens=most + _spent(self.bundle, required),
            done=lambda made: screen.stopped(made.bytes),
            constraint=constraint,
            stop=stop,
            watch=screen.show,
        )
        text = screen.final(made.bytes)
        ended = made.ended
        if watch is not None:
            watch(Step(text, len(text), 1.0))
        return Written(
            text,
            "stop" if ended else "length",
            len(context),
            cached,
            len(made.tokens),
        )


def _spent(bundle: Bundle, required: bytes) -> int:
    """Tokens that go to what the text must begin with, which is the prompt's."""
    return len(bundle.tokenizer.forced(required)) + bool(required)


class Screen:
    """Turns the states of an answer into texts for whoever watches.

    `skip` bytes of it are the prompt's; it has at most `most` tokens.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        skip: int,
        stops: Sequence[str],
        most: int,
        watch: Watch | None,
    ) -> None:
        self._bytes = tokenizer.token_bytes
        self._skip, self._stops, self._most, self._watch = skip, stops, most, watch

    def stopped(self, data: bytes) -> bool:
        """Whether a stop string stands in the text."""
        if not self._stops:
            return False
        text = self._text(data)
        return before_stop(text, self._stops) != text

    def show(self, decided: Sequence[int], drafted: Sequence[int]) -> None:
        if self._watch is None:
            return
        sure = b"".join(map(self._bytes, decided))
        text = self._text(sure + b"".join(map(self._bytes, drafted)))
        text = before_stop(text, self._stops)
        settled = _settled(self._text(sure), self._stops)
        common = min(settled, len(text))
        self._watch(Step(text, common, min(len(decided) / self._most, 0.99)))

    def final(self, data: bytes) -> str:
        return before_stop(self._text(data), self._stops)

    def _text(self, data: bytes) -> str:
        """What is written behind the required bytes, a character that is not complete left out."""
        rest = data[self._skip :]
        try:
            return rest.decode("utf-8")
        except UnicodeDecodeError as error:
            cut = len(rest) - error.start < 4 and error.end == len(rest)
            return rest[: error.start].decode("utf-8") if cut else rest.decode("utf-8", "replace")


def before_stop(text: str, stops: Sequence[str]) -> str:
    """The text before the first stop string in it."""
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(found)] if found else text


def _settled(text: str, stops: Sequence[str]) -> int:
    """How much of a decided text cannot be cut any more: all before a stop string or the beginning of one."""
    whole = before_stop(text, stops)
    if whole != text:
        return len(whole)
    open_end = 0
    for stop in stops:
        for size in range(min(len(stop) - 1, len(text)), open_end, -1):
            if text.endswith(stop[:size]):
                open_end = size
                break
    return len(text) - open_end
