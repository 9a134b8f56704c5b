"""Measures a server process as an editor sees it: over its pipes, from a key to the answer.

Responsible for replaying traces, for typing through suggestions, for starting servers and for watching the memory of
one. Knows nothing of models; what a prediction cost is what `redraft/status` tells.

A time runs from the moment the editor sends the change (the key) until it has the answer to the request that follows,
sent as an automatic trigger. The server's pause before it asks the model is set to 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from diffing.edits import Edit, apply
from diffing.positions import LineIndex
from lsp_server import next_edit, status
from lsp_server.outcomes import DID_MOVE_CURSOR
from lsp_server.process_client import ProcessClient, ServerGone
from model.evaluation.bench import excerpt, source_lines
from model.evaluation.traces import Hands, Trace, every_kind
from model.protocol import Mode

INLINE = "textDocument/inlineCompletion"
INVOKED, AUTOMATIC = 1, 2
THROUGH_KEYS = 8
LEAST_THROUGH = 3
PATIENT_MS = 60_000
SETTINGS: Mapping[str, Any] = {
    "debounceMs": 0,
    "deadlineMs": PATIENT_MS,
    "feedback.enable": False,
    "watchFiles": "off",
    "gitHistory": False,
}


@dataclass(frozen=True)
class Sample:
    """One key and its answer. `source` is `model`, `live` (the suggestion that is being typed), or the reason why
    the model was not asked; what follows is of the model. Times in milliseconds."""

    mode: Mode
    lines: int
    kind: str
    latency_ms: float
    source: str
    shown: bool
    forwards: int = 0
    tokens: int = 0
    prompt_tokens: float | None = None
    cached_tokens: float | None = None
    model_ms: float | None = None


class BenchEditor:
    """One editor with one server; documents live in memory only, named below `folder`."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self.client = ProcessClient()
        try:
            answered = self.client.initialize(folder, {**SETTINGS, **settings})
        except BaseException:
            self.client.close()
            raise
        self.initialized_ms = 1000 * (answered - self.client.begun)
        self._texts: dict[str, str] = {}
        self._versions: dict[str, int] = {}

    def __enter__(self) -> BenchEditor:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    @property
    def age_ms(self) -> float:
        """Since the process was started."""
        return 1000 * (time.perf_counter() - self.client.begun)

    def wait_until_ready(self) -> None:
        """Raises `ServerGone` when the model can't be loaded."""
        while (report := self.status())["state"] == "loading":
            self.client.wait_for(status.NOTIFICATION)
        if report["state"] != "ready":
            raise ServerGone(report["message"])

    def status(self) -> dict[str, Any]:
        report: dict[str, Any] = self.client.request(status.REQUEST)
        return report

    def open(self, name: str, text: str) -> str:
        uri = (self.folder / name).as_uri()
        self._texts[uri], self._versions[uri] = text, 1
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def close(self, uri: str) -> None:
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        del self._texts[uri], self._versions[uri]

    def text(self, uri: str) -> str:
        return self._texts[uri]

    def key(
        self, uri: str, mode: Mode, edit: Edit | None, cursor: int, kind: int = AUTOMATIC
    ) -> tuple[list[str], float]:
        """Make a change and ask at the cursor behind it; the suggested texts and the milliseconds they took."""
        found, took_ms = self.suggested(uri, mode, edit, cursor, kind)
        return [item["insertText"] if mode == "fim" else item["text"] for item in found], took_ms

    def suggested(
        self, uri: str, mode: Mode, edit: Edit | None, cursor: int, kind: int
    ) -> tuple[list[dict[str, Any]], float]:
        """The same, with the suggestions as they came."""
        changes = [] if edit is None else [_change(self._texts[uri], edit)]
        if edit is not None:
            self._texts[uri] = apply(self._texts[uri], [edit])
            self._versions[uri] += 1
        document = {"uri": uri, "version": self._versions[uri]}
        question = {
            "textDocument": document if mode == "next_edit" else {"uri": uri},
            "position": self._position(uri, cursor),
            "context": {"triggerKind": kind},
        }
        started = time.perf_counter()
        if changes:
            self.client.notify(
                "textDocument/didChange", {"textDocument": document, "contentChanges": changes}
            )
        method = INLINE if mode == "fim" else next_edit.METHOD
        answer, arrived = self.client.timed(method, question)
        found = answer["items"] if mode == "fim" else answer["edits"]
        return found, 1000 * (arrived - started)

    def moved(self, uri: str, cursor: int) -> None:
        """Tell the server where the cursor has come to."""
        place = {"textDocument": {"uri": uri}, "position": self._position(uri, cursor)}
        self.client.notify(DID_MOVE_CURSOR, place)

    def _position(self, uri: str, cursor: int) -> dict[str, int]:
        line, character = LineIndex(self._texts[uri]).position_at(cursor, "utf-16")
        return {"line": line, "character": character}

    def memory(self) -> tuple[int, int] | None:
        """Resident set of the server, now and at most, in bytes; None where the system does not tell."""
        path = Path(f"/proc/{self.client.process.pid}/status")
        if not path.exists():
            return None
        rows = dict(row.split(":", 1) for row in path.read_text().splitlines() if ":" in row)
        now, most = (int(rows[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
        return now, most


def _change(text: str, edit: Edit) -> dict[str, Any]:
    lines = LineIndex(text)
    ends = [lines.position_at(offset, "utf-16") for offset in (edit.start, edit.end)]
    start, end = ({"line": line, "character": character} for line, character in ends)
    return {"range": {"start": start, "end": end}, "text": edit.new_text}


def replay(
    editor: BenchEditor, sizes: Sequence[int], modes: Sequence[Mode], keys: int, repeats: int
) -> Iterator[Sample]:
    """Every kind of trace at every size, `repeats` times at different places."""
    lines = source_lines()
    for repeat in range(repeats):
        for size in sizes:
            for mode in modes:
                place = (repeat + 1) / (repeats + 1)
                label = f"trace_{repeat}_{size}_{mode}"
                trace = every_kind(excerpt(lines, size), label, keys, place)
                yield from play(editor, trace, mode, size)


def play(editor: BenchEditor, trace: Trace, mode: Mode, size: int) -> Iterator[Sample]:
    uri = editor.open(f"{trace.label}.py", trace.opened)
    before = editor.status()
    for step in trace.steps:
        texts, latency_ms = editor.key(uri, mode, step.edit, step.cursor)
        after = editor.status()
        yield sample(mode, size, step.kind, latency_ms, bool(texts), before, after)
        before = after
    editor.close(uri)


def sample(
    mode: Mode,
    size: int,
    kind: str,
    latency_ms: float,
    shown: bool,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Sample:
    """What two statuses, around one request, tell of it."""
    if after["predictions"] == before["predictions"]:
        source = after["lastReason"] or "live"
        return Sample(mode, size, kind, latency_ms, source, shown)
    last = after["lastPrediction"] or {}
    return Sample(
        mode,
        size,
        kind,
        latency_ms,
        "model",
        shown,
        last.get("forwards", 0),
        last.get("tokens", 0),
        last.get("promptTokens"),
        last.get("cachedTokens"),
        last.get("latencyMs"),
    )


def type_through(editor: BenchEditor, size: int, wanted: int) -> Iterator[Sample]:
    """Type what live suggestions say, key by key, until `wanted` keys were typed or no more suggestions come."""
    text = "".join(excerpt(source_lines(), size))
    uri = editor.open(f"through_{size}.py", text)
    places = 4 * wanted
    for number in range(places):
        if wanted <= 0:
            break
        hands = Hands(editor.text(uri))
        end = hands.line_end(0.05 + 0.9 * number / places, 2 * THROUGH_KEYS)
        cut = Edit(end - THROUGH_KEYS, end, "")
        cursor = end - THROUGH_KEYS
        texts, _ = editor.key(uri, "fim", cut, cursor, INVOKED)
        first = texts[0].partition("\n")[0] if texts else ""
        if len(first) < LEAST_THROUGH:
            continue
        before = editor.status()
        for key in first[: min(THROUGH_KEYS, len(first) - 1)]:
            shown, latency_ms = editor.key(uri, "fim", Edit(cursor, cursor, key), cursor + 1)
            cursor, wanted = cursor + 1, wanted - 1
            after = editor.status()
            yield sample("fim", size, "through", latency_ms, bool(shown), before, after)
            before = after
    editor.close(uri)


def start_up(folder: Path, settings: Mapping[str, Any], size: int, times: int) -> dict[str, Any]:
    """Milliseconds from the start of a process until `initialize` was answered, until the model was loaded and until
    it had answered for the first time in a file of `size` lines; medians, and each."""
    lines = excerpt(source_lines(), size)
    trace = every_kind(lines, "start", 2)
    runs = []
    for _ in range(times):
        with BenchEditor(folder, settings) as editor:
            uri = editor.open("start.py", trace.opened)
            editor.wait_until_ready()
            ready_ms = editor.age_ms
            step = trace.steps[0]
            editor.key(uri, "fim", step.edit, step.cursor, INVOKED)
            runs.append((editor.initialized_ms, ready_ms, editor.age_ms))
    names = ("initialized_ms", "ready_ms", "first_answer_ms")
    medians = {
        name: median(values) for name, values in zip(names, zip(*runs, strict=True), strict=True)
    }
    return {"lines": size, **medians, "runs": [dict(zip(names, run, strict=True)) for run in runs]}


def soak(editor: BenchEditor, requests: int, every: int) -> Iterator[tuple[int, int, int]]:
    """(requests so far, resident bytes, most resident bytes) every so many requests, of both modes in two documents."""
    lines = source_lines()
    kinds: tuple[tuple[Mode, int], ...] = (("fim", 500), ("next_edit", 300))
    asked = round_ = 0
    while asked < requests:
        place = 0.2 + round_ % 7 / 10
        traces = [
            every_kind(excerpt(lines, size), f"soak_{round_}_{mode}", 8, place)
            for mode, size in kinds
        ]
        uris = [editor.open(trace.label + ".py", trace.opened) for trace in traces]
        for steps in zip(*(trace.steps for trace in traces), strict=True):
            for (mode, _), uri, step in zip(kinds, uris, steps, strict=True):
                editor.key(uri, mode, step.edit, step.cursor)
                asked += 1
                if asked % every == 0 and (memory := editor.memory()) is not None:
                    yield asked, *memory
        for uri in uris:
            editor.close(uri)
        round_ += 1
