"""A predictor that answers from a JSON script: deterministic, as slow as told, no weights.

Responsible for matching a request against rules and for behaving like a real predictor while it
"works": it looks at `stop` every few milliseconds, ends early at the deadline, can fail, and can be
deaf to `stop` when a test wants that. Knows nothing of models, LSP or documents.

A script is an object (or just the list of its rules):

    {"name": "scripted", "load_ms": 0, "load_error": "...", "trace": "calls.jsonl",
     "rules": [{"mode": "fim", "when": {"contains": "def ", "regex": "return $", "path": "*.py"},
                "insert": "value", "confidence": 0.9, "delay_ms": 50}]}

`when`: `contains` and `regex` look at the text before the cursor, `text` at the whole text,
`history` at the joined diffs, `path` is a glob. The action is one of `insert` (at the cursor),
`replace` (`{"old", "new", "all"?}`, nearest to the cursor unless `all`), `edits` (a list of
`{"start", "end", "new_text"}` in code points, or with `range` instead of the offsets), `raise`
(a message), or nothing: no edit. `times` ends a rule after that many matches. `"ahead": true` beside the rules
lets the server ask before it is asked, and note where the cursor rests.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from diffing.edits import Edit
from diffing.positions import LineIndex, Position
from model.protocol import Cancelled, Prediction, Request, Stop

_TICK_S = 0.005


class ScriptError(ValueError):
    """The script can't be read or is not of the documented shape."""


class ScriptedPredictor:
    """Answers from rules; the first that matches wins, none means "no edit"."""

    device = "none"

    def __init__(self, script: Mapping[str, Any] | Sequence[Any]) -> None:
        options: Mapping[str, Any] = script if isinstance(script, Mapping) else {"rules": script}
        rules = options.get("rules", [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise ScriptError("`rules` must be a list of objects")
        self.name = str(options.get("name", "scripted"))
        self._rules: list[dict[str, Any]] = rules
        self._left = [rule.get("times", -1) for rule in rules]
        self._trace = options.get("trace")
        self._lock = threading.Lock()
        time.sleep(options.get("load_ms", 0) / 1000)
        if error := options.get("load_error"):
            raise ScriptError(str(error))

    @classmethod
    def load(cls, path: Path) -> ScriptedPredictor:
        """Read a script file. Raises `ScriptError` when it can't be read."""
        try:
            script = json.loads(path.read_text(encoding="utf-8"))
            ahead = isinstance(script, dict) and bool(script.get("ahead"))
            return (PreparingScript if ahead else cls)(script)
        except (OSError, ValueError) as error:
            raise ScriptError(f"script {path}: {error}") from error

    def predict(self, request: Request, stop: Stop) -> Prediction:
        """The answer of the first matching rule. Raises `Cancelled` and what `raise` says."""
        rule = self._match(request)
        self._note("start", request)
        try:
            finished = _work(rule, stop)
        except Cancelled:
            self._note("cancelled", request)
            raise
        self._note("end" if finished else "expired", request)
        if message := rule.get("raise"):
            raise RuntimeError(message)
        edits = _edits(rule, request) if finished else ()
        return Prediction(
            edits=edits,
            confidence=float(rule.get("confidence", 0.9)) if edits else 0.0,
            truncated=bool(rule.get("truncated", False)),
            forwards=int(rule.get("forwards", 1)),
            tokens=sum(len(edit.new_text) for edit in edits),
            model=self.name,
        )

    def _match(self, request: Request) -> dict[str, Any]:
        with self._lock:
            for number, rule in enumerate(self._rules):
                if self._left[number] != 0 and _applies(rule, request):
                    self._left[number] -= 1
                    return rule
        return {}

    def _note(self, event: str, request: Request) -> None:
        if self._trace:
            note = {
                "event": event,
                "mode": request.mode,
                "path": request.path,
                "cursor": request.cursor,
                "history": list(request.history),
                "related": [snippet.path for snippet in request.related],
            }
            with self._lock, Path(self._trace).open("a", encoding="utf-8") as trace:
                trace.write(json.dumps(note) + "\n")


class PreparingScript(ScriptedPredictor):
    """One that may be asked ahead."""

    def prepare(self, request: Request, stop: Stop) -> None:
        self._note("prepare", request)


def _applies(rule: Mapping[str, Any], request: Request) -> bool:
    if rule.get("mode", request.mode) not in (request.mode, "any"):
        return False
    when = rule.get("when", {})
    before = request.text[: request.cursor]
    return (
        when.get("contains", "") in before
        and ("regex" not in when or re.search(_at_cursor(when["regex"]), before) is not None)
        and when.get("text", "") in request.text
        and when.get("history", "") in "\n".join(request.history)
        and fnmatch(request.path, when.get("path", "*"))
    )


def _at_cursor(pattern: str) -> str:
    r"""A final `$` means the cursor, and not also the place before a last `\n`."""
    return re.sub(r"(?<!\\)\$\Z", r"\\Z", pattern)


def _work(rule: Mapping[str, Any], stop: Stop) -> bool:
    """Take `delay_ms`; False when the deadline passed before that."""
    if words := rule.get("print"):
        print(words, flush=True)
    ends = time.monotonic() + rule.get("delay_ms", 0) / 1000
    deaf = rule.get("ignore_stop", False)
    while True:
        if not deaf:
            stop.check()
            if stop.expired:
                return False
        left = ends - time.monotonic()
        if left <= 0:
            return True
        time.sleep(min(left, _TICK_S))


def _edits(rule: Mapping[str, Any], request: Request) -> tuple[Edit, ...]:
    if "insert" in rule:
        return (Edit(request.cursor, request.cursor, rule["insert"]),)
    if "replace" in rule:
        return _replacements(request, **rule["replace"])
    return tuple(_edit(entry, request.text) for entry in rule.get("edits", []))


def _replacements(
    request: Request, old: str, new: str, all: bool = False, word: bool = True
) -> tuple[Edit, ...]:
    pattern = rf"(?<!\w){re.escape(old)}(?!\w)" if word else re.escape(old)
    found = [Edit(m.start(), m.end(), new) for m in re.finditer(pattern, request.text)]
    if all or not found:
        return tuple(found)
    return (min(found, key=lambda edit: abs(edit.start - request.cursor)),)


def _edit(entry: Mapping[str, Any], text: str) -> Edit:
    if "range" not in entry:
        return Edit(entry["start"], entry["end"], entry["new_text"])
    lines = LineIndex(text)
    start, end = (
        lines.offset_at(Position(entry["range"][side]["line"], entry["range"][side]["character"]))
        for side in ("start", "end")
    )
    return Edit(start, end, entry["new_text"])
