"""Which files are not worth learning from, and which must not be learnt.

Responsible for the verdict on one file: vendored, generated, minified, a table of data, a secret. It knows nothing of
packages, registries or edits.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from diffing.secret_files import is_secret

MIN_CHARS = 200
MAX_CHARS = 200_000
MAX_LINE = 2000
LONG_LINE = 300
MAX_LONG_SHARE = 0.2
MAX_MEAN_LINE = 100
MAX_DIGITS = 0.15
TABLE_LINES = 60
TABLE_SHARE = 0.6
MIN_ENTROPY = 3.5

VENDORED = frozenset(
    [
        "_vendor",
        "vendor",
        "vendored",
        "_vendored",
        "extern",
        "_click",
        "locale",
        "locales",
        "node_modules",
        "third_party",
        "thirdparty",
    ]
)
BUILT = frozenset(
    [
        "dist",
        "build",
        "out",
        "esm",
        "cjs",
        "umd",
        "bundle",
        "bundles",
        "min",
        "es5",
        "es6",
        "esm5",
        "esm2015",
    ]
)
GENERATED_NAME = re.compile(
    r"(_pb2|_pb2_grpc|parsetab|lextab|(^|/)_version)\.pyi?$|\.min\.[cm]?js$|[.-]bundle\.js$"
)
GENERATED = re.compile(
    r"(?m)^\s*(?:#+|//+|/?\*+|<!--)\s*(?i:(?:this )?(?:(?:file|code|module) )?(?:(?:is|was|has been) )?)"
    r"(?i:auto(?:matically)?[ -]*)?(?i:generated) (?i:by|from|with|using)\b"
    r"|^\W*(?:This (?:file|code|module) (?:is|was|has been) (?:auto[a-z]*[ -]*)?generated|Generated (?:by|from|with))\b"
    r"|(?i:\bdo not (?:edit|modify)\b(?:[\W_]|$)(?! [a-z]))|@generated\b|(?i:\bauto-?generated\b)"
)
COMPILED = re.compile(
    r"sourceMappingURL=|\b__importDefault\b|\b__importStar\b|\b__awaiter\b|\b__webpack_require__\b"
    r"|^Object\.defineProperty\(exports, [\"']__esModule[\"']",
    re.M,
)
# How well-known keys and tokens begin, and what they look like; to look for the beginning first is much faster.
SECRETS = {
    "-----BEGIN": r"-----BEGIN [A-Z ]*PRIVATE KEY",
    "AKIA": r"\bAKIA[0-9A-Z]{16}\b",
    "ASIA": r"\bASIA[0-9A-Z]{16}\b",
    **{f"gh{kind}_": rf"\bgh{kind}_[A-Za-z0-9]{{36}}\b" for kind in "pousr"},
    "github_pat_": r"\bgithub_pat_[A-Za-z0-9_]{50,}",
    "xox": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "AIza": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "sk-": r"\bsk-[A-Za-z0-9_-]{32,}",
    "sk_live_": r"\bsk_live_[A-Za-z0-9]{20,}",
    "npm_": r"\bnpm_[A-Za-z0-9]{36}\b",
    "pypi-": r"\bpypi-[A-Za-z0-9_-]{60,}",
    "glpat-": r"\bglpat-[A-Za-z0-9_-]{20}",
    "eyJ": r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.",
}
ASSIGNED = re.compile(
    r"(?i)(?:secret|token|passw(?:or)?d|api_?key|access_?key|private_?key|auth|credential)[\w-]{0,20}"
    r"[\"']?\s*(?:=>|[:=])\s*[a-z]{0,2}[\"']([A-Za-z0-9+/=_.~-]{20,})[\"']"
)
LITERAL_LINE = re.compile(
    r"""\s*(?:[bru]{0,2}(["'])[^"'\n]*\1\s*:\s*)?\[?\(?(?:[bru]{0,2}(["'])[^"'\n]*\2|-?[\d.xXa-fA-F]+)\)?\]?,?\s*"""
)


def reject_source(path: str, text: str) -> str | None:
    """Why a file is no training text, as a short reason; None if it is one.

    `path` is relative to the release, with forward slashes.
    """
    if reason := reject_path(path):
        return reason
    if not MIN_CHARS <= len(text) <= MAX_CHARS:
        return "size"
    if "\0" in text or "\r" in text:
        return "unusual characters"
    script = path.endswith((".js", ".mjs", ".cjs"))
    if GENERATED.search(text[:1500]) or (script and COMPILED.search(text)):
        return "generated"
    if has_secret(text):
        return "secret"
    lines = text.splitlines()
    if is_minified(text, lines):
        return "minified"
    if len(text) - len(re.sub(r"[0-9]+", "", text)) > MAX_DIGITS * len(text) or is_table(lines):
        return "data"
    return None


def reject_path(path: str) -> str | None:
    """The part of the verdict that needs no content."""
    *folders, name = path.split("/")
    if any(part in VENDORED or part.endswith((".dist-info", ".data")) for part in folders):
        return "vendored"
    built = not name.endswith((".py", ".pyi")) and any(part in BUILT for part in folders)
    if built or GENERATED_NAME.search(path):
        return "generated"
    if is_secret(Path("/", name), None):
        return "secret"
    return None


def has_secret(text: str) -> bool:
    """Whether a text has a key or a token: by its well-known form, or random-looking after a telling name."""
    known = any(mark in text and re.search(form, text) for mark, form in SECRETS.items())
    return known or any(looks_random(match[1]) for match in ASSIGNED.finditer(text))


def looks_random(value: str) -> bool:
    """Whether a string has the letters, digits and spread (at least `MIN_ENTROPY` bits a character) of a key."""
    if not (re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value)):
        return False
    if re.search(r"[a-z]{6,}[_.-]|[_.-][a-z]{6,}", value):
        return False  # words joined together: a name
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= MIN_ENTROPY


def is_minified(text: str, lines: Collection[str]) -> bool:
    """Whether a text has a huge line, lines that are long on average, or much of itself in long ones."""
    lengths = [len(line) for line in lines]
    in_long = sum(length for length in lengths if length > LONG_LINE)
    too_long = max(lengths) > MAX_LINE or len(text) / len(lines) > MAX_MEAN_LINE
    return too_long or in_long > MAX_LONG_SHARE * len(text)


def is_table(lines: Collection[str]) -> bool:
    """Whether most lines of a text are nothing but a literal."""
    full = [line for line in lines if line.strip()]
    literal = sum(LITERAL_LINE.fullmatch(line) is not None for line in full)
    return literal >= TABLE_LINES and literal > TABLE_SHARE * len(full)


def foreign_folders(names: Iterable[str]) -> tuple[str, ...]:
    """Folders (with a final slash) inside a release that carry a licence of their own: somebody else's code."""
    folders = set()
    for name in names:
        folder, _, file = name.rpartition("/")
        if folder and ".dist-info" not in folder and re.match(r"(?i)(licen[sc]e|copying)", file):
            folders.add(folder + "/")
    return tuple(sorted(folders))


def compiled_twins(names: Collection[str]) -> set[str]:
    """Paths of JavaScript and declaration files beside the source that they were compiled from."""
    present = set(names)
    twins = set()
    for name in present:
        stem, suffix = re.fullmatch(r"(.*?)((?:\.d)?\.[^./]*)?", name, re.S).groups()  # type: ignore[union-attr]
        sources = {
            ".js": (".ts", ".tsx", ".mts", ".mjs"),
            ".cjs": (".ts", ".cts", ".mjs", ".mts"),
            ".mjs": (".mts", ".ts"),
            ".d.ts": (".ts", ".tsx"),
            ".d.mts": (".mts",),
            ".d.cts": (".cts", ".d.mts"),
        }
        if any(stem + source in present for source in sources.get(suffix or "", ())):
            twins.add(name)
    return twins
