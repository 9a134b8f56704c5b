"""Training sequences: what the model reads and what it is asked, as token ids.

Responsible for turning texts with a gap and next-edit cases into sequences that look exactly like the prompts that
serve. Three lessons are written: fill in at the cursor and stop (`infill`), write what a recent edit makes of a place
(`rewrite`), and point at the line of the next edit or at nowhere (with every `infill`). Knows nothing of tensors,
storage or losses.

Where the text after the cursor is read first, every token of the text before it is a lesson in filling in too; the
tokens near the gap weigh more than those far away.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from diffing.hunks import change_groups
from model.config import ModelConfig
from model.context import ContextBuilder, RegionTooLargeError
from model.local import settled_history
from model.locate import LINES_AFTER, LINES_BEFORE
from model.prompt import PromptWriter, present_lines
from model.protocol import Request
from model.tokenizer import Tokenizer

NEAR_TOKENS = 64
NEAR, FAR, AFTERWARDS = 0.5, 0.15, 0.3
HISTORY = 3
MOST_REWRITTEN = 96


@dataclass(frozen=True, slots=True)
class Lesson:
    """`weights[i]` is what predicting token `i` from those before it counts; 0 for what is only read.

    `answer` is the first token of the answer, and `desirable` what a user thought of it, if one was asked. `lines` are
    places in `tokens`, the ends of the lines that may be pointed at; the last of them is the cursor. `targets` index
    `lines`; `len(lines)` stands for nowhere, none means that the question is not asked.
    """

    kind: str
    tokens: tuple[int, ...]
    weights: tuple[float, ...]
    answer: int
    lines: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    desirable: bool | None = None

    def __len__(self) -> int:
        return len(self.tokens)


class LessonWriter:
    """Writes lessons of at most `room` tokens for one model's tokenizer and prompt format.

    With `infill` they teach to read the text after the cursor first and to end the answer, whether the model does so or
    not yet.
    """

    def __init__(
        self, tokenizer: Tokenizer, config: ModelConfig, room: int, *, infill: bool = True
    ) -> None:
        self.writer = PromptWriter(tokenizer, replace(config, infill=infill))
        self.tokenizer, self.room = tokenizer, room
        self.end = [config.special["endoftext"]] if infill else []

    def gap(self, path: str, text: str, start: int, end: int, rng: random.Random) -> Lesson | None:
        """Fill in `text[start:end]`, whose place is the cursor; None when the answer takes over half of the room."""
        request = Request("fim", path, text[:start] + text[end:], start)
        return self.infill("gap", request, text[start:end], rng)

    def infill(
        self,
        kind: str,
        request: Request,
        middle: str,
        rng: random.Random,
        target: int | None = None,
    ) -> Lesson | None:
        """Write `middle` at the cursor and stop; point at line `target` (-1: nowhere) if one is given.

        The room left for context varies, since editors ask with all sorts of it.
        """
        settled = replace(request, history=settled_history(request))
        answer_room = self.room // 2
        if len(middle) > answer_room * 8:
            return None
        budget = self.room - min(answer_room, self.writer.count(middle) + 8)
        budget = max(32, int(budget * rng.choice((1.0, 1.0, 1.0, 0.7, 0.4))))
        try:
            context = ContextBuilder(self.writer.count, budget).build(settled)
        except RegionTooLargeError:
            return None
        prompt = self.writer.fim(request.path, context)
        before = prompt.required.decode("utf-8", "replace")
        answer = [*self.tokenizer.encode(before + middle), *self.end]
        tokens = [*prompt.tokens, *answer]
        if len(tokens) > self.room or not prompt.tokens:
            return None
        first = len(prompt.tokens)
        head = first - len(self.writer.encode(f"{request.path}\n{context.prefix}")) + 1
        weights = [0.0] * len(tokens)
        for i in range(max(1, head), len(tokens)):
            weights[i] = 1.0 if i >= first else NEAR if i >= first - NEAR_TOKENS else FAR
        lines: list[int] = []
        targets: list[int] = []
        if target is not None:
            ends = self.writer.line_ends(request.path, context, prompt)
            numbers, lines = [line for line, _ in ends], [at for _, at in ends]
            cursor = request.text.count("\n", 0, request.cursor)
            lines.append(first - 1)
            numbers.append(cursor)
            seen = min(numbers) <= target <= max(numbers)
            nearest = min((n for n in numbers if n >= target), default=cursor)
            targets = [numbers.index(nearest) if seen else len(lines)]
        return Lesson(kind, tuple(tokens), tuple(weights), first, tuple(lines), tuple(targets))

    def case(self, row: Mapping[str, Any], rng: random.Random) -> Iterator[Lesson]:
        """The lessons of one next-edit case (the headless contract with `expected` and `meta.kind`)."""
        lines = row["text"].split("\n")
        cursor = row["cursor"]
        at = sum(len(line) + 1 for line in lines[: cursor["line"]]) + cursor["character"]
        request = Request(
            row["mode"], row["path"], row["text"], at, history=tuple(row["history"])[-HISTORY:]
        )
        kind, wanted = row["meta"]["kind"], row["expected"][0]
        linked = row["meta"].get("linked")
        middle = inserted(request, wanted)
        groups = change_groups(request.text, wanted)
        target = groups[0].old_start if groups and linked is not False else -1
        if middle is not None:
            lesson = self.infill(kind, request, middle, rng, target)
        elif linked is False:
            lesson = None
        else:
            lesson = self.infill(kind, request, "", rng, target)
        if lesson:
            yield lesson
        if kind == "jump" and linked and groups:
            written = self.rewrite(request, wanted)
            if written:
                yield written

    def rewrite(self, request: Request, wanted: str) -> Lesson | None:
        """The first changed place of `wanted`, read as the judge of drafts reads it: recent edits, the lines before it,
        the new lines and the two after them."""
        group = change_groups(request.text, wanted)[0]
        lines = wanted.split("\n")
        first, last = group.new_start, group.new_start + len(group.new_lines)
        context = ContextBuilder(self.writer.count, self.room).build(
            replace(request, text="", cursor=0)
        )
        head = [*self.writer.preamble(context), *self.writer.file(request.path, "")[:-1]]
        before = self.writer.encode(present_lines(lines, max(0, first - LINES_BEFORE), first))
        new = self.writer.encode(present_lines(lines, first, last))
        after = self.writer.encode(present_lines(lines, last, last + LINES_AFTER))
        tokens = [*head, *before, *new, *after]
        if len(tokens) > self.room or len(new) > MOST_REWRITTEN or not new + after:
            return None
        weights = [0.0] * len(head) + [FAR] * len(before) + [1.0] * len(new)
        weights += [AFTERWARDS] * len(after)
        weights[0] = 0.0
        return Lesson("rewrite", tuple(tokens), tuple(weights), len(head) + len(before))


def inserted(request: Request, wanted: str) -> str | None:
    """What was typed at the cursor if that is all that `wanted` differs by, else None."""
    before, after = request.text[: request.cursor], request.text[request.cursor :]
    size = len(wanted) - len(request.text)
    if size < 0 or not wanted.startswith(before) or not wanted.endswith(after):
        return None
    return wanted[len(before) : len(before) + size]
