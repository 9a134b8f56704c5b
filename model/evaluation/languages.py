"""Which language a path is written in, by its extension.

Responsible for the language identifiers that editors use. Knows nothing of contents.
"""

from __future__ import annotations

from pathlib import PurePosixPath

BY_EXTENSION = {
    "bash": "shellscript",
    "c": "c",
    "cc": "cpp",
    "cpp": "cpp",
    "cs": "csharp",
    "css": "css",
    "cxx": "cpp",
    "dart": "dart",
    "ex": "elixir",
    "go": "go",
    "h": "c",
    "hh": "cpp",
    "hpp": "cpp",
    "hs": "haskell",
    "html": "html",
    "java": "java",
    "js": "javascript",
    "json": "json",
    "jsx": "javascriptreact",
    "kt": "kotlin",
    "lua": "lua",
    "md": "markdown",
    "mjs": "javascript",
    "php": "php",
    "pl": "perl",
    "py": "python",
    "pyi": "python",
    "r": "r",
    "rb": "ruby",
    "rs": "rust",
    "scala": "scala",
    "sh": "shellscript",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "ts": "typescript",
    "tsx": "typescriptreact",
    "xml": "xml",
    "yaml": "yaml",
    "yml": "yaml",
    "zig": "zig",
}


def language_of(path: str) -> str:
    """The language identifier for a path, empty when unknown."""
    return BY_EXTENSION.get(PurePosixPath(path).suffix[1:].lower(), "")
