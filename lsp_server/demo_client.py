"""The client of `redraft demo`: an editor without a screen.

Responsible for starting a server as a child process, for opening, editing and typing as a case says
and for asking. Knows nothing of how results are shown.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from diffing.edits import Edit, apply
from diffing.positions import LineIndex
from lsp_server import next_edit, outcomes, status
from lsp_server.demo_cases import Case
from lsp_server.protocol import make_converter

LOADING_S = 300.0
ANSWER_S = 120.0
GATE = "eager"
"""Shows more than the default does; the first model is seldom sure of itself."""
_NOT_RUN = frozenset({"loading", "model-error", "model-failed", "backing-off", "deadline", "stale"})


class DemoError(Exception):
    """The demonstration can't go on."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the server said to one case. `text` is the buffer, `after` the buffer with the edits."""

    case: Case
    text: str
    cursor: int
    after: str
    reason: str | None
    status: dict[str, Any]
    asked: bool
    seconds: float

    @property
    def ran(self) -> bool:
        return self.reason not in _NOT_RUN

    @property
    def right(self) -> bool | None:
        """Whether it is what the file holds; None where nothing is known to compare with."""
        if self.case.silent:
            return self.after == self.text
        if self.case.cut:
            wanted = self.text[: self.cursor] + self.case.cut + self.text[self.cursor :]
            return self.after == wanted
        if self.case.then:
            return self.after in self._wanted()
        return None

    def _wanted(self) -> list[str]:
        """The texts after one or more of the edits that follow."""
        edits = sorted(
            (_replacement(self.text, old, new) for old, new in self.case.then),
            key=lambda edit: edit.start,
        )
        counts = range(1, len(edits) + 1)
        return [apply(self.text, chosen) for n in counts for chosen in combinations(edits, n)]


class _Item(NamedTuple):
    """One replacement of a suggestion, as it came over the wire."""

    range: lsp.Range
    text: str
    id: str


@dataclass
class DemoSession:
    """A server process and its client; use it as an asynchronous context manager."""

    folder: Path
    options: argparse.Namespace
    client: LanguageClient = field(init=False)
    messages: list[str] = field(default_factory=list)
    _version: int = 0

    async def __aenter__(self) -> DemoSession:
        self.client = LanguageClient("redraft-demo", "1", converter_factory=make_converter)

        @self.client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def show_message(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

        @self.client.feature(status.NOTIFICATION)
        def did_change_status(params: Any) -> None:
            pass

        await self.client.start_io(sys.executable, "-m", "lsp_server", "lsp")
        settings = {
            "model": self.options.model,
            "threads": self.options.threads,
            "feedback.enable": False,
            "gate": GATE,
            "debounceMs": 0,
            "deadlineMs": 60_000,
            "watchFiles": "off",
            "gitHistory": False,
        }
        await self._within(
            20,
            self.client.initialize_async(
                lsp.InitializeParams(
                    capabilities=lsp.ClientCapabilities(),
                    process_id=os.getpid(),
                    root_uri=self.folder.as_uri(),
                    initialization_options=settings,
                )
            ),
        )
        self.client.initialized(lsp.InitializedParams())
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._within(5, self.client.shutdown_async(None))
            self.client.exit(None)
        except (TimeoutError, OSError):
            pass
        await self.client.stop()

    async def wait_until_ready(self) -> float:
        """Seconds that the model took to load. Raises `DemoError` when it can't be loaded."""
        started = time.monotonic()
        while (report := await self.status())["state"] == "loading":
            if time.monotonic() - started > LOADING_S:
                raise DemoError("the model takes too long to load")
            await asyncio.sleep(0.05)
        if report["state"] != "ready":
            raise DemoError(report["message"] or "; ".join(self.messages))
        return time.monotonic() - started

    async def status(self) -> dict[str, Any]:
        return await self._request(status.REQUEST, None)

    async def play(self, case: Case) -> Result:
        """Open a fresh copy, edit and type as the case says, ask."""
        uri, opened = self._open(case)
        text = opened
        for old, new in case.edits:
            text = self._change(uri, text, _replacement(text, old, new))
        cursor = _index(text, case.before) + len(case.before)
        if case.typed:  # what was there before the last key is in the model's cache then
            await self._ask(case, uri, text, cursor)
        for key in case.typed:
            text = self._change(uri, text, Edit(cursor, cursor, key))
            cursor += 1
        before = (await self.status())["predictions"]
        started = time.monotonic()
        edits, reason = await self._ask(case, uri, text, cursor)
        seconds = time.monotonic() - started
        report = await self.status()
        # Undone edits leave no history, so that each case stands for itself.
        self._change(uri, text, Edit(0, len(text), opened))
        self._close(uri)
        asked = report["predictions"] > before
        return Result(case, text, cursor, apply(text, edits), reason, report, asked, seconds)

    def _open(self, case: Case) -> tuple[str, str]:
        path = self.folder / case.file
        text = case.text
        if text is None:
            text = (Path(sysconfig.get_path("stdlib")) / case.file).read_text(encoding="utf-8")
        if case.cut:
            whole = case.before + case.typed + case.cut
            start = _index(text, whole) + len(case.before)
            text = text[:start] + text[start + len(case.typed) + len(case.cut) :]
        elif case.typed:
            start = _index(text, case.before + case.typed) + len(case.before)
            text = text[:start] + text[start + len(case.typed) :]
        path.write_text(text, encoding="utf-8")
        self._version = 1
        uri = path.as_uri()
        self.client.text_document_did_open(
            lsp.DidOpenTextDocumentParams(
                text_document=lsp.TextDocumentItem(
                    uri=uri, language_id="python", version=1, text=text
                )
            )
        )
        return uri, text

    def _change(self, uri: str, text: str, edit: Edit) -> str:
        self._version += 1
        lines = LineIndex(text)
        change = lsp.TextDocumentContentChangePartial(
            range=lsp.Range(start=_place(lines, edit.start), end=_place(lines, edit.end)),
            text=edit.new_text,
        )
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=self._version),
                content_changes=[change],
            )
        )
        return apply(text, [edit])

    async def _ask(
        self, case: Case, uri: str, text: str, cursor: int
    ) -> tuple[list[Edit], str | None]:
        """The edits, or none and the reason. A suggestion is told to be ignored."""
        lines = LineIndex(text)
        place = _place(lines, cursor)
        ask = self._inline if case.mode == "fim" else self._next_edit
        found = await ask(uri, place, case.invoked)
        if not found:
            return [], (await self.status())["lastReason"]
        ignore = lsp.ExecuteCommandParams(command=outcomes.IGNORE, arguments=[found[0].id])
        await self._within(ANSWER_S, self.client.workspace_execute_command_async(ignore))
        return [
            Edit(_offset(lines, item.range.start), _offset(lines, item.range.end), item.text)
            for item in found
        ], None

    async def _inline(self, uri: str, place: lsp.Position, invoked: bool) -> list[_Item]:
        kinds = lsp.InlineCompletionTriggerKind
        params = lsp.InlineCompletionParams(
            text_document=lsp.TextDocumentIdentifier(uri=uri),
            position=place,
            context=lsp.InlineCompletionContext(
                trigger_kind=kinds.Invoked if invoked else kinds.Automatic
            ),
        )
        answer = await self._request(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, params)
        items = answer.items if answer is not None else []
        return [_Item(i.range, i.insert_text, i.command.arguments[0]) for i in items]

    async def _next_edit(self, uri: str, place: lsp.Position, invoked: bool) -> list[_Item]:
        document = {"uri": uri, "version": self._version}
        answer = await self._request(
            next_edit.METHOD,
            {
                "textDocument": document,
                "position": place,
                "context": {"triggerKind": 1 if invoked else 2},
            },
        )
        structure = make_converter().structure
        return [
            _Item(
                structure(edit["range"], lsp.Range), edit["text"], edit["command"]["arguments"][0]
            )
            for edit in answer["edits"]
        ]

    def _close(self, uri: str) -> None:
        document = lsp.TextDocumentIdentifier(uri=uri)
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(text_document=document))

    async def _request(self, method: str, params: Any) -> Any:
        return await self._within(ANSWER_S, self.client.protocol.send_request_async(method, params))

    async def _within(self, seconds: float, answer: Any) -> Any:
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError:
            raise DemoError("the server did not answer in time") from None


def _replacement(text: str, old: str, new: str) -> Edit:
    start = _index(text, old)
    return Edit(start, start + len(old), new)


def _index(text: str, part: str) -> int:
    found = text.find(part)
    if found < 0:
        raise DemoError(f"the file of this Python version does not hold {part!r}")
    return found


def _place(lines: LineIndex, offset: int) -> lsp.Position:
    line, character = lines.position_at(offset, "utf-16")
    return lsp.Position(line=line, character=character)


def _offset(lines: LineIndex, place: lsp.Position) -> int:
    return lines.offset_at((place.line, place.character), "utf-16")
