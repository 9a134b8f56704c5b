"""What `redraft demo` shows: situations in a file of the standard library, as data.

Responsible for the situations only. They name places in the file by text that has stood there for
many Python versions. Knows nothing of the server.
"""

from __future__ import annotations

from dataclasses import dataclass

from model.protocol import Mode

FILE = "textwrap.py"
"""The module of the running interpreter's standard library that most cases copy."""


@dataclass(frozen=True, slots=True)
class Case:
    """One situation.

    The user edits the file as `edits` say (old text, new text; each where old first stands) and then
    types `typed`, key by key, at the end of the text `before`. `cut` is what the file holds there
    and the user has not written yet: it is taken out first, and the answer is compared with it.
    `then` are the edits that follow from the user's own: the answer is right when it makes at least
    one of them and nothing else. `silent` says that no suggestion is the right answer. `invoked`
    asks explicitly, and is content with less. `file` is another module of the standard library, or
    any file whose `text` is given.
    """

    title: str
    mode: Mode
    before: str
    typed: str = ""
    cut: str = ""
    edits: tuple[tuple[str, str], ...] = ()
    then: tuple[tuple[str, str], ...] = ()
    invoked: bool = False
    silent: bool = False
    file: str = FILE
    text: str | None = None


CASES = (
    Case(
        "FIM: a completion in the middle of a line",
        "fim",
        before='\'Hello [...]\'\n    """\n    w = TextWrapper(width',
        typed="=",
        cut="width",
    ),
    Case(
        "FIM: a completion of several lines",
        "fim",
        before="            if lines:\n                indent = self.subsequent_indent\n            else",
        typed=":",
        cut="\n                indent = self.initial_indent",
        invoked=True,
    ),
    Case(
        "next edit: a rename, its next occurrence is proposed",
        "next_edit",
        file="cmd.py",
        edits=(
            (
                "            origline = readline.get_line_buffer()",
                "            original = readline.get_line_buffer()",
            ),
        ),
        before="            original",
        then=(
            ("            line = origline.lstrip()", "            line = original.lstrip()"),
            ("            stripped = len(origline)", "            stripped = len(original)"),
        ),
    ),
    Case(
        "next edit: an edit repeated on the following line",
        "next_edit",
        file="types.py",
        edits=(
            ("        self.fget = fget", "        self._fget = fget"),
            ("        self.fset = fset", "        self._fset = fset"),
        ),
        before="        self._fset",
        then=(("        self.fdel = fdel", "        self._fdel = fdel"),),
    ),
    Case(
        "silence: an edit that leads to no other",
        "next_edit",
        edits=(("# Written by Greg Ward", "# Written by Gregory Ward"),),
        before="# Written by Gregory Ward",
        silent=True,
    ),
    Case(
        "silence: a file with secrets is never read",
        "fim",
        file=".env",
        text="API_TOKEN=\n",
        before="API_TOKEN",
        typed="=",
        silent=True,
    ),
)
