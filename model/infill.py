"""FIM by a model that was trained to fill in: it reads the text after the cursor first and says where to stop.

Responsible for one continuation and for how much of it to offer. Every place where the continuation might have stopped
is a candidate, as likely as its tokens and the end behind them; "nothing" is one of them. Knows nothing of drafts, next
edits or thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from model.bundle import Bundle
from model.cache import Slot
from model.complete import Completion, before_a_line, write_on, written
from model.denoise import Generation
from model.judge import Branch, log_probabilities
from model.protocol import Request, Stop

MAX_BLANK_LINES = "\n\n\n\n"

Scores = dict[str, tuple[float, int]]


def offered(scores: Scores, prefix: str, suffix: str) -> Scores:
    """The texts that may be offered: white space alone is no suggestion, and what is put before an indented line ends
    with a line end of its own."""
    whole_lines = before_a_line(prefix, suffix)
    found: Scores = {}
    for text, score in scores.items():
        if text and not text.strip():
            continue
        whole = text + "\n" if whole_lines and text and not text.endswith("\n") else text
        if whole not in found or score > found[whole]:
            found[whole] = score
    return found


class Infiller:
    """Completions by one loaded model whose `config.infill` is set."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle

    def complete(
        self,
        context: Sequence[int],
        required: bytes,
        request: Request,
        stop: Stop,
        reference: Sequence[int] = (),
    ) -> tuple[list[Completion], Generation]:
        """Candidates for the cursor, the likeliest first, and what the generation took.

        `context` ends where `required` begins: together they are the prompt up to the cursor.
        """
        prefix, suffix = request.text[: request.cursor], request.text[request.cursor :]

        def done(_: Slot, made: Generation) -> bool:
            text = written(made, required)
            return text.count("\n") > request.max_lines or text.endswith(MAX_BLANK_LINES)

        slot, made = write_on(self.bundle, context, required, request, stop, reference, done)
        if not made.tokens:
            return [], made
        scores = offered(self._cuts(made, required), prefix, suffix)
        if "" not in scores:
            tokens = (*self.bundle.tokenizer.encode(required.decode("utf-8", "replace")),)
            nothing = Branch(len(context), (*tokens, self.bundle.config.special["endoftext"]))
            stop.check()
            scores[""] = (float(log_probabilities(self.bundle.trunk, slot, [nothing])[0].sum()), 0)
            made.forwards += 1
        return self._ranked(scores, made), made

    def _cuts(self, made: Generation, required: bytes) -> Scores:
        """For each text that the continuation might have stopped with: its log-probability, and how many tokens."""
        found: Scores = {}
        size, total = 0, 0.0
        lengths = [len(self.bundle.tokenizer.token_bytes(token)) for token in made.tokens]
        for count, end in enumerate(made.ends):
            text = made.bytes[:size].decode("utf-8", "ignore")
            if size >= len(required) and len(text.encode()) == size:
                found[text[len(required.decode("utf-8", "ignore")) :]] = (total + end, count)
            if count < len(lengths):
                size += lengths[count]
                total += made.log_probs[count]
        return found

    def _ranked(self, scores: Scores, made: Generation) -> list[Completion]:
        best = max(score for score, _ in scores.values())
        whole = sum(math.exp(score - best) for score, _ in scores.values())
        nothing = scores[""][0]
        found = []
        for text, (score, count) in sorted(scores.items(), key=lambda item: -item[1][0]):
            log_probs = made.log_probs[:count] or [0.0]
            entropies = made.entropies[:count] or [0.0]
            found.append(
                Completion(
                    text=text,
                    log_odds=score - nothing,
                    share=math.exp(score - best) / whole,
                    mean=sum(log_probs) / len(log_probs),
                    least=min(log_probs),
                    tokens=count,
                    lines=text.count("\n") + 1,
                    ended=made.ended,
                    entropy=sum(entropies) / len(entropies),
                )
            )
        return found
