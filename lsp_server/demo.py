"""`redraft demo`: the real server, a real source file, and what comes of a few keystrokes.

Responsible for driving a server process over stdio as an editor would, and for printing honestly
what it answered. Exit code 1 when a case could not be run; a wrong suggestion is no such failure.
The file is a copy of one of the standard library's; the original is only read.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from diffing.hunks import unified_diff
from diffing.positions import LineIndex
from lsp_server.demo_cases import CASES
from lsp_server.demo_client import GATE, DemoError, DemoSession, Result
from model import bounds

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="embedded", help="model to use, as in the settings")
    parser.add_argument(
        "--threads", type=bounds.threads, default=0, help="CPU threads; 0 leaves it open"
    )
    parser.add_argument("--no-color", action="store_true", help="plain text")


def run(options: argparse.Namespace) -> int:
    """Run all cases; 0 when each has run."""
    paint = Paint(sys.stdout.isatty() and not options.no_color and "NO_COLOR" not in os.environ)
    try:
        return asyncio.run(_demonstrate(options, paint))
    except (DemoError, TimeoutError, OSError) as error:
        print(f"redraft demo: {error or 'the server did not answer in time'}", file=sys.stderr)
        return 1


async def _demonstrate(options: argparse.Namespace, paint: Paint) -> int:
    with tempfile.TemporaryDirectory(prefix="redraft-demo-") as folder:
        async with DemoSession(Path(folder), options) as session:
            seconds = await session.wait_until_ready()
            report = await session.status()
            model, device = report["model"], report["device"]
            print(f"{paint('bold', model)} on {device}, loaded in {seconds:.1f} s", end="; ")
            print(f"gate: {GATE}\n", flush=True)
            results = []
            for number, case in enumerate(CASES, start=1):
                result = await session.play(case)
                results.append(result)
                print("\n".join(describe(number, result, paint)) + "\n", flush=True)
    return conclude(results, paint)


def conclude(results: Sequence[Result], paint: Paint) -> int:
    """One line about all cases; the exit code."""
    failed = [result.case.title for result in results if not result.ran]
    right = sum(result.right is True for result in results)
    compared = sum(result.right is not None for result in results)
    print(f"{len(results) - len(failed)} of {len(results)} cases ran; ", end="")
    print(f"{right} of the {compared} that can be compared were exactly right.")
    for title in failed:
        print(paint("red", f"did not run: {title}"))
    return 1 if failed else 0


class Paint:
    """Colours for a terminal, or none."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._on else text


def describe(number: int, result: Result, paint: Paint) -> list[str]:
    """One case as lines of text."""
    case = result.case
    line = LineIndex(result.text).position_at(result.cursor).line
    lines = [paint("bold", f"{number}. {case.title}") + paint("dim", f"  {case.file}:{line + 1}")]
    for old, new in case.edits:
        lines += [f"   you changed  {old.strip()}", f"            to  {new.strip()}"]
    start = result.text.rfind("\n", 0, result.cursor) + 1
    end = result.text.find("\n", result.cursor)
    here = result.text[start : result.cursor].lstrip() + paint("cyan", "|")
    rest = result.text[result.cursor : end if end >= 0 else len(result.text)]
    asked = ", and asked for a suggestion" if case.invoked else ""
    lines.append(f"   you {'typed' if case.typed else 'are at'}  {here}{rest}{asked}")
    if result.after == result.text:
        lines.append(f"   Redraft is silent: {paint('yellow', str(result.reason))}")
    else:
        lines += ["   " + row for row in _diff(result, paint)]
    lines.append("   " + paint("dim", _figures(result)))
    lines.append("   " + _verdict(result, paint))
    return lines


def _diff(result: Result, paint: Paint) -> list[str]:
    rows = unified_diff(result.text, result.after, result.case.file, context=1).splitlines()[2:]
    styles = {"-": "red", "+": "green", "@": "dim"}
    shown = [row.rstrip() for row in rows if row.strip()]
    return [paint(styles[row[0]], row) if row[0] in styles else row for row in shown]


def _figures(result: Result) -> str:
    made = result.status["lastPrediction"]
    if not result.asked:
        return "the model was not asked"
    return (
        f"confidence {made['confidence']:.2f}, {made['latencyMs']:.0f} ms in the model, "
        f"{result.seconds * 1000:.0f} ms in all, {made['forwards']} forward passes, {made['model']}"
    )


def _verdict(result: Result, paint: Paint) -> str:
    case = result.case
    if not result.ran:
        return paint("red", "this case did not run")
    if case.silent:
        return paint("green", "silence is right here") if result.right else "silence was right here"
    if result.right:
        return paint("green", "exactly what the file held" if case.cut else "exactly right")
    if case.cut:
        return f"the file held {case.cut!r}"
    return f"right would be {case.then[0][1].strip()!r}" if case.then else ""
