"""Which files are related, and what of them is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from diffing.policy import FilePolicy
from lsp_server.related import MAX_FILES, Candidates, FileCache, imported_names, related_snippets

FILES = {
    "pkg/__init__.py": "",
    "pkg/util.py": "def util(): ...\n",
    "pkg/sub/deep.py": "x = 1\n",
    "pkg/sub/__init__.py": "",
    "top.py": "y = 2\n",
    "src/lib/code.py": "z = 3\n",
    "web/api.ts": "export const a = 1\n",
    "web/parts/index.ts": "export {}\n",
    "c/util.h": "int f(void);\n",
    ".env.py": "SECRET = 1\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("own", "text", "names"),
    [
        ("a.py", "import os\nimport top\n", ["top.py"]),
        ("a.py", "import pkg.util as u, top\n", ["pkg/util.py", "top.py"]),
        ("a.py", "from pkg import util\n", ["pkg/__init__.py", "pkg/util.py"]),
        ("a.py", "from pkg.util import x\n", ["pkg/util.py"]),
        ("pkg/a.py", "from . import util\n", ["pkg/util.py"]),
        (
            "pkg/a.py",
            "from .util import x\nfrom .sub.deep import y\n",
            ["pkg/util.py", "pkg/sub/deep.py"],
        ),
        ("pkg/sub/a.py", "from ..util import x\n", ["pkg/util.py"]),
        ("a.py", "import lib.code\n", ["src/lib/code.py"]),
        ("pkg/util.py", "from pkg import util\n", ["pkg/__init__.py"]),
        ("web/a.ts", "import {a} from './api'\n", ["web/api.ts"]),
        ("web/a.ts", "const p = require('./parts')\n", ["web/parts/index.ts"]),
        ("web/a.ts", "import x from '../../../../etc/passwd'\n", []),
        ("c/a.c", '#include "util.h"\n', ["c/util.h"]),
        ("a.py", "x = 'import nothing'\n", []),
    ],
)
def test_imported_names(root: Path, own: str, text: str, names: list[str]) -> None:
    assert imported_names(own, text, [root]) == names


def candidates(root: Path, *names: str, **open_texts: str) -> Candidates:
    texts = {name.replace("_", "."): text for name, text in open_texts.items()}
    return Candidates((root,), FilePolicy([root]), texts, names)


def test_the_present_text_is_taken_and_edited_files_come_first(root: Path) -> None:
    known = candidates(root, "pkg/util.py", "top.py", "a.py", top_py="y = 'in the editor'\n")
    found = related_snippets("a.py", "import web\nfrom pkg.sub import deep\n", known, FileCache())
    assert [(s.path, s.text) for s in found] == [
        ("pkg/util.py", "def util(): ...\n"),
        ("top.py", "y = 'in the editor'\n"),
        ("pkg/sub/deep.py", "x = 1\n"),
    ]


def test_secrets_and_missing_files_are_not_read(root: Path) -> None:
    known = candidates(root, ".env.py", "missing.py", "pkg/util.py")
    found = related_snippets("a.py", "", known, FileCache())
    assert [s.path for s in found] == ["pkg/util.py"]


def test_their_number_is_bounded(root: Path) -> None:
    names = []
    for number in range(MAX_FILES + 5):
        names.append(f"n{number}.py")
        (root / names[-1]).write_text("x\n")
    assert len(related_snippets("a.py", "", candidates(root, *names), FileCache())) == MAX_FILES


def test_the_cache_notices_a_new_text(root: Path) -> None:
    cache, policy = FileCache(capacity=2), FilePolicy([root])
    path = root / "top.py"
    assert cache.read(path, policy) == "y = 2\n"
    path.write_text("y = 2222\n")
    assert cache.read(path, policy) == "y = 2222\n"
    assert cache.read(path, FilePolicy([root], exclude=["top.py"])) is None
    assert cache.read(root / "gone.py", policy) is None
