"""What is asked of a service and what its answer says, as plain texts.

Responsible for the requests of two protocols, Inception's (fill-in-the-middle and edits) and the completions of
OpenAI's (fill-in-the-middle only), for how much of a file is told, and for turning an answer into edits of the text
that was asked about. Knows nothing of connections, of failures or of settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal

from diffing.edits import Edit, apply, minimal_edits
from diffing.hunks import change_groups
from diffing.positions import split_lines
from model.context import ContextBuilder, RegionTooLargeError, region_around
from model.protocol import Request, Snippet
from model.related import split_diff
from model.remote.place import place_to_edit
from model.remote.tags import Document, Escape, edit_prompt, rewritten

Protocol = Literal["inception", "openai"]

BYTES_PER_TOKEN = 3
REGION_LINES = 15
LEAST_TOKENS = 150
"""Inception's models answer nothing at all when they may write less."""
MOST_TOKENS = 8192
_UNFIT = re.compile("[\x00\ud800-\udfff]")
_ABSOLUTE = re.compile(
    r"""^((?:---|\+\+\+)\ "?(?:[ab]/)?)(?!/dev/null)((?:/|[A-Za-z]:[\\/]).*)$""", re.M
)


class AnswerError(Exception):
    """The answer is not of the documented shape."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request on its way: where to, the body, and what is needed to read the answer."""

    path: str
    body: Mapping[str, Any]
    request: Request
    document: Document | None
    start: int
    escape: Escape


@dataclass(frozen=True, slots=True)
class Read:
    """What an answer says: edits of `Request.text`, and whether a token limit cut it."""

    edits: tuple[Edit, ...]
    truncated: bool
    tokens: int


def approximate_tokens(text: str) -> int:
    """Tokens of a text for a tokenizer that is not known: a third of its bytes."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


class Wire:
    """Writes requests for one service within a budget of prompt tokens, and reads its answers."""

    def __init__(self, protocol: Protocol, model: str, budget: int, template: str = "") -> None:
        self.protocol, self.model, self.template = protocol, model, template
        self.contexts = ContextBuilder(approximate_tokens, budget)

    def ask(self, request: Request) -> Asked | None:
        """The request for the service; None where the protocol has none for this mode or the region is too large."""
        request = without_folders(request)
        if request.mode == "fim":
            return self._fim(request)
        return self._edit(request) if self.protocol == "inception" else None

    def _fim(self, request: Request) -> Asked:
        context = self.contexts.build(replace(request, history=(), related=()))
        body: dict[str, Any] = {"model": self.model, "stream": False}
        if self.protocol == "inception":
            body |= {"prompt": context.prefix, "suffix": context.suffix}
            body["max_tokens"] = max(LEAST_TOKENS, request.max_tokens)
            path = "/fim/completions"
        else:
            body |= self._prompt(context.prefix, context.suffix)
            body |= {"max_tokens": request.max_tokens, "temperature": 0, "stop": ["\n\n"]}
            path = "/completions"
        return Asked(path, body, request, None, request.cursor, Escape(""))

    def _prompt(self, prefix: str, suffix: str) -> dict[str, str]:
        if not self.template:
            return {"prompt": prefix, "suffix": suffix}
        head, _, rest = self.template.partition("{prefix}")
        middle, _, tail = rest.partition("{suffix}")
        return {"prompt": f"{head}{prefix}{middle}{suffix}{tail}"}

    def _edit(self, request: Request) -> Asked | None:
        place = place_to_edit(request, REGION_LINES)
        region = region_around(request.text, place, REGION_LINES)
        try:
            context = self.contexts.build(request, region)
        except RegionTooLargeError:
            return None
        document = Document(
            request.path,
            context.prefix,
            context.region,
            place - context.region_start,
            context.suffix,
        )
        texts = (request.path, context.prefix, context.region, context.suffix, *context.history)
        escape = Escape.of((*texts, *request.diagnostics, *(one.text for one in context.related)))
        prompt = edit_prompt(
            document, (*context.related, *_diagnostics(request)), context.history, escape
        )
        room = approximate_tokens(context.region) * 2 + LEAST_TOKENS
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": min(MOST_TOKENS, max(512, room)),
        }
        return Asked("/edit/completions", body, request, document, context.region_start, escape)

    def read(self, asked: Asked, answer: object) -> Read:
        """The edits that an answer asks for, none outside of what may be rewritten. Raises `AnswerError`."""
        content, cut, tokens = _choice(answer)
        if asked.document is None:
            text, truncated = completion(content, asked.request, cut)
            edit = (Edit(asked.start, asked.start, text),) if text else ()
            return Read(edit, truncated, tokens)
        old = asked.document.region
        new = rewritten(content, old, asked.escape)
        if new is None:
            return Read((), cut, tokens)
        new = _with_line_ends_of(old, _without_surroundings(new, asked.document))
        if cut:
            new = _settled(old, new)
        edits = minimal_edits(old, new)
        moved = tuple(Edit(e.start + asked.start, e.end + asked.start, e.new_text) for e in edits)
        return Read(moved, cut and not moved, tokens)


def completion(content: str, request: Request, cut: bool) -> tuple[str, bool]:
    """The text for the cursor: whole lines where a limit cut it, as many as are wanted; and whether it is a torso."""
    lines = content.replace("\r\n", "\n").split("\n")
    if cut and len(lines) > 1:
        lines, cut = lines[:-1], False
    text = "\n".join(lines[: request.max_lines]).rstrip()
    return text, cut


def without_folders(request: Request) -> Request:
    """The request without absolute paths, which tell whose machine it is: of those only the file's name is left."""
    return replace(
        request,
        path=_bare(request.path),
        history=tuple(map(_bare_diff, request.history)),
        related=tuple(Snippet(_bare(one.path), one.text) for one in request.related),
    )


def _bare(path: str) -> str:
    absolute = path.startswith(("/", "\\")) or path[1:3] in (":\\", ":/")
    return PurePath(path.replace("\\", "/")).name if absolute else path


def _bare_diff(diff: str) -> str:
    head, hunks = split_diff(diff)
    return _ABSOLUTE.sub(lambda found: found[1] + _bare(found[2]), head) + "".join(hunks)


def _diagnostics(request: Request) -> tuple[Snippet, ...]:
    """What the editor complains of in this file, in the shape of a snippet, as other clients of this wire send it."""
    lines = "\n".join(request.diagnostics)
    return (Snippet("diagnostics", lines),) if lines else ()


def _choice(answer: object) -> tuple[str, bool, int]:
    """(text, whether a limit cut it, tokens) of the first choice."""
    if not isinstance(answer, Mapping):
        raise AnswerError("the answer is not an object")
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, Mapping):
        raise AnswerError("the answer has no `choices`")
    message = first.get("message")
    content = message.get("content") if isinstance(message, Mapping) else first.get("text")
    if content is not None and not isinstance(content, str):
        raise AnswerError("the first choice has no text")
    if content and _UNFIT.search(content):
        raise AnswerError("the first choice holds characters that no text file has")
    usage = answer.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    count = tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else 0
    return content or "", first.get("finish_reason") == "length", count


def _without_surroundings(new: str, document: Document) -> str:
    """The region alone where the answer repeats the whole file that it was shown."""
    before, after = document.before, document.after.rstrip("\n")
    if before.strip() and new.startswith(before) and new.rstrip("\n").endswith(after):
        new = new[len(before) :].rstrip("\n")
        new = new[: len(new) - len(after)]
    return new


def _with_line_ends_of(old: str, new: str) -> str:
    """`new` with as many line ends behind its last line as `old` has: models lose or add them."""
    return new.rstrip("\n") + old[len(old.rstrip("\n")) :]


def _settled(old: str, new: str) -> str:
    """`old` with those changes of a cut answer that are followed by a line which it leaves alone."""
    size = len(split_lines(old))
    offsets = [0]
    for line in split_lines(old):
        offsets.append(offsets[-1] + len(line))
    groups = [
        group for group in change_groups(old, new) if group.old_start + len(group.old_lines) < size
    ]
    edits = [
        Edit(
            offsets[g.old_start],
            offsets[g.old_start + len(g.old_lines)],
            "".join(g.new_lines),
        )
        for g in groups
    ]
    return apply(old, edits)
