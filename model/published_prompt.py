"""How a request is shown to an open diffusion model: a hole between two texts, or an instruction.

Responsible for the published prompt formats, a canvas where the hole is and fill-in-the-middle tags, and for the
message that asks in a chat for what a model was not trained to do. Knows nothing of decoding or of chat templates.
"""

from __future__ import annotations

from dataclasses import dataclass

from diffing.edits import Edit, shrink
from model.context import (
    Context,
    ContextBuilder,
    RegionTooLargeError,
    line_offset,
    region_around,
)
from model.families import Published
from model.protocol import Request

FENCE = "```"
INSTRUCTION = """\
You predict how a programmer goes on in {path}. {history}Here is the file. The lines between {open} and {close} may be \
rewritten; {cursor} is the cursor.

{fence}
{prefix}{open}
{region}{close}
{suffix}
{fence}

{task} Answer with the new text of these lines in one fenced block, and nothing else.
"""
TASKS = {
    "fim": "Write what belongs at the cursor and leave all else as it is.",
    "next_edit": "Make the edit that follows from the recent ones; if none does, repeat the lines as they are.",
}
OPEN, CLOSE, CURSOR = "<rewrite>", "</rewrite>", "<cursor>"


@dataclass(frozen=True, slots=True)
class Hole:
    """Token ids before the answer and after it, and the bytes that the answer must begin with."""

    before: list[int]
    after: list[int]
    required: bytes = b""


def infill_prompt(published: Published, context: Context) -> Hole:
    """The text around the cursor, as the family was trained to see it."""
    family, tokenizer = published.family, published.tokenizer
    if family.infill == "tags":
        suffix, prefix, middle = (tokenizer.control[tag] for tag in family.tags)
        before = [
            *(suffix, *tokenizer.encode(context.suffix)),
            *(prefix, *tokenizer.encode(context.prefix), middle),
        ]
        return Hole(before, [])
    text, required = tokenizer.heal(context.prefix)
    begin = [published.begin] if family.framed and published.begin is not None else []
    end = [published.end] if family.framed and published.end is not None else []
    return Hole(
        [*begin, *tokenizer.encode(text)], [*tokenizer.encode(context.suffix), *end], required
    )


def missing_tags(published: Published) -> list[str]:
    """Tags that the family fills in with and this checkpoint lacks."""
    return [tag for tag in published.family.tags if tag not in published.tokenizer.control]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Lines that a chat is asked to write anew: the message, the lines, and their offsets in the file."""

    message: str
    region: str
    start: int
    end: int

    def edit(self, text: str, answer: str) -> Edit | None:
        """What an answer changes in the file's text; None where it has no whole block, or nothing changes."""
        new = fenced(answer, self.region)
        return None if new is None else shrink(text, Edit(self.start, self.end, new))


def rewriting(request: Request, contexts: ContextBuilder) -> Rewriting | None:
    """Ask for the lines around the cursor anew; None where they are too long."""
    lines = region_around(request.text, request.cursor, request.max_lines)
    try:
        context = contexts.build(request, lines)
    except RegionTooLargeError:
        return None
    start, end = (line_offset(request.text, at) for at in (lines.start, lines.stop))
    message = instruction(request.path, request.mode, context, request.cursor - start)
    return Rewriting(message, context.region, start, end)


def instruction(path: str, mode: str, context: Context, cursor: int) -> str:
    """The message that asks for the region of `context` anew; `cursor` is its offset in the region."""
    region = context.region[:cursor] + CURSOR + context.region[cursor:]
    diffs = "\n".join(context.history)
    return INSTRUCTION.format(
        path=path,
        history=f"The recent edits were:\n\n{FENCE}diff\n{diffs}\n{FENCE}\n\n" if diffs else "",
        open=OPEN,
        close=CLOSE,
        cursor=CURSOR,
        fence=FENCE,
        prefix=context.prefix,
        region=region if region.endswith("\n") else region + "\n",
        suffix=context.suffix.rstrip("\n"),
        task=TASKS[mode],
    )


def fenced(text: str, region: str) -> str | None:
    """The new region in an answer, with a line end where the old one has it; None where there is no whole block."""
    opened, fence, rest = text.partition(FENCE)
    if not fence or opened.strip():
        return None
    body, closed, _ = rest.partition("\n")[2].rpartition(FENCE)
    if not closed:
        return None
    lines = body.removesuffix("\n").replace(CURSOR, "")
    return lines + "\n" if region.endswith("\n") and lines else lines
