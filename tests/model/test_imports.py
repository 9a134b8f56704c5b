from __future__ import annotations

from model.imports import Import, bound_name, read_imports, render

TEXT = """\
from __future__ import annotations

import os
import numpy as np
from typing import Any, cast  # noqa
from app.models import (
    Account,
    User as Person,  # kept
)
import { a, b as c } from './x';

def f():
    from json import dumps
"""
SOURCE = TEXT.splitlines()


def test_statements_are_read_with_their_lines_and_items() -> None:
    found = {s.first: (s.last, s.module, s.items, s.style) for s in read_imports(SOURCE)}
    assert found == {
        0: (1, "__future__", ("annotations",), "from"),
        2: (3, "", ("os",), "plain"),
        3: (4, "", ("numpy as np",), "plain"),
        4: (5, "typing", ("Any", "cast"), "from"),
        5: (9, "app.models", ("Account", "User as Person"), "block"),
        9: (10, "'./x'", ("a", "b as c"), "script"),
        12: (13, "json", ("dumps",), "from"),
    }


def statement(first: int) -> Import:
    return next(s for s in read_imports(SOURCE) if s.first == first)


def test_items_are_written_in_the_statement_s_style() -> None:
    assert render(statement(4), ("Any",), SOURCE) == ("from typing import Any  # noqa",)
    assert render(statement(9), ("a", "d"), SOURCE) == ("import { a, d } from './x';",)
    assert render(statement(5), ("Account", "Role", "User as Person"), SOURCE) == (
        "from app.models import (",
        "    Account,",
        "    Role,",
        "    User as Person,  # kept",
        ")",
    )


def test_a_statement_without_items_goes() -> None:
    assert render(statement(5), (), SOURCE) == ()


def test_what_an_item_binds() -> None:
    assert [bound_name(item) for item in ("a", "a as b", "os.path")] == ["a", "b", "os"]


def test_an_open_bracket_is_no_endless_import() -> None:
    assert read_imports(["from a import (", "    b,", "x = 1"]) == []
