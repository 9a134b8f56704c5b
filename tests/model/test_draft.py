from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffing.edits import apply
from diffing.hunks import unified_diff
from model.draft import Draft, drafts
from model.protocol import Request, Snippet


def diff(old: str, new: str, path: str = "app.py", context: int = 3) -> str:
    return unified_diff(old, new, path, context=context)


def after(text: str, draft: Draft) -> str:
    edit = draft.edit
    return text[: edit.start] + edit.new_text + text[edit.end :]


def made(
    *states: str,
    cursor: int | None = None,
    path: str = "app.py",
    related: tuple[Snippet, ...] = (),
    limit: int = 24,
) -> list[Draft]:
    """Drafts after the user went through `states`; the cursor is at the end of the last change."""
    now = states[-1]
    if cursor is None:
        before = states[-2]
        tail = 0
        while tail < min(len(before), len(now)) and before[-1 - tail] == now[-1 - tail]:
            tail += 1
        cursor = len(now) - tail
    history = tuple(diff(a, b, path) for a, b in pairwise(states))
    request = Request("next_edit", path, now, cursor, history=history, related=related)
    return drafts(request, limit)


def texts(*states: str, **options: object) -> list[str]:
    return [after(states[-1], draft) for draft in made(*states, **options)]  # type: ignore[arg-type]


SHOP = """\
def total(price, amount):
    if price < 0:
        raise ValueError(price)
    return price * amount


def label(item):
    return f"{item.price} EUR"
"""


def test_a_renamed_parameter_is_renamed_where_it_still_stands() -> None:
    now = SHOP.replace("total(price", "total(unit_price")
    found = made(SHOP, now)
    first = after(now, found[0])
    assert first == now.replace(
        "    if price < 0:\n        raise ValueError(price)\n    return price * amount",
        "    if unit_price < 0:\n        raise ValueError(unit_price)\n    return unit_price * amount",
    )
    assert found[0].link == ("price", "unit_price")
    assert found[0].distance == 1
    one_line = now.replace("if price < 0", "if unit_price < 0")
    assert one_line in [after(now, draft) for draft in found]


def test_whole_words_only() -> None:
    old = "rate = 1\nrates = [rate]\noperate = 2\n"
    now = "speed = 1\nrates = [rate]\noperate = 2\n"
    assert "operspeed" not in "".join(texts(old, now))
    assert "speed = 1\nrates = [speed]\noperate = 2\n" in texts(old, now)


def test_half_renamed_lines_are_completed() -> None:
    old = "area = width * height + width\nprint(area)\n"
    now = "area = breadth * height + width\nprint(area)\n"
    assert "area = breadth * height + breadth\nprint(area)\n" in texts(old, now)


def test_no_repeat_where_the_new_token_contains_the_old() -> None:
    old = "use(name)\nshow(name)\n"
    now = "use(self.name)\nshow(name)\n"
    found = texts(old, now)
    assert "use(self.name)\nshow(self.name)\n" in found
    assert not any("self.self" in text for text in found)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("UserName = 1", "AccountName = 1"),
        ("USER_NAME = 1", "ACCOUNT_NAME = 1"),
        ("userName = 1", "accountName = 1"),
        ("for user_names in rows:", "for account_names in rows:"),
        ("def get_user_name():", "def get_account_name():"),
        ("userNames.map(f)", "accountNames.map(f)"),
    ],
)
def test_variants_of_a_renamed_name(line: str, expected: str) -> None:
    old = f"user_name = read()\n\n{line}\n"
    now = f"account_name = read()\n\n{line}\n"
    assert f"account_name = read()\n\n{expected}\n" in texts(old, now)


def test_identical_lines_change_alike_and_keep_their_own_indent() -> None:
    old = "if a:\n    log.warn('late')\n    go()\nfor b in c:\n        log.warn('late')\n"
    now = old.replace("    log.warn('late')\n    go", "    log.warning('late', b)\n    go", 1)
    found = texts(old, now)
    assert now.replace("        log.warn('late')", "        log.warning('late', b)") in found


def test_lines_inserted_after_a_line_are_inserted_after_its_twin() -> None:
    old = "open(a)\nread(a)\n\nopen(b)\nopen(a)\nread(c)\n"
    now = "open(a)\ncheck(a)\nread(a)\n\nopen(b)\nopen(a)\nread(c)\n"
    assert now.replace("open(b)\nopen(a)\n", "open(b)\nopen(a)\ncheck(a)\n") in texts(old, now)


def test_a_deleted_line_is_deleted_elsewhere() -> None:
    old = "start()\ndebug_dump(state)\nwork()\ndebug_dump(state)\nstop()\n"
    now = "start()\nwork()\ndebug_dump(state)\nstop()\n"
    assert "start()\nwork()\nstop()\n" in texts(old, now, cursor=8)


def test_an_edit_is_carried_to_the_next_line_of_its_shape() -> None:
    old = "host = config.host\nport = config.port\n"
    now = 'host = config["host"]\nport = config.port\n'
    assert 'host = config["host"]\nport = config["port"]\n' in texts(old, now)


def test_a_template_fits_other_names() -> None:
    old = "def f(a: Optional[str]) -> None: ...\n\n\ndef g(b: Optional[Row]) -> None: ...\n"
    now = old.replace("Optional[str]", "str | None")
    assert now.replace("Optional[Row]", "Row | None") in texts(old, now)


def test_a_migration_is_carried_on_with_all_its_parts() -> None:
    old = "a: Optional[List[str]]\nb: Union[int, Dict[str, int]]\n"
    now = "a: list[str] | None\nb: Union[int, Dict[str, int]]\n"
    assert "a: list[str] | None\nb: int | dict[str, int]\n" in texts(old, now)


def test_other_quotes_are_swapped_too() -> None:
    old = "a = 'x'\nb = get('y', f'{z}', \"it's\")\n"
    now = "a = \"x\"\nb = get('y', f'{z}', \"it's\")\n"
    assert 'a = "x"\nb = get("y", f"{z}", "it\'s")\n' in texts(old, now)


def test_a_new_parameter_is_stored_and_passed_like_its_neighbour() -> None:
    old = (
        "def __init__(self, host, port=80):\n"
        "    self.host = host\n"
        "    self.port = port\n"
        "    connect(host=host, port=port)\n"
    )
    now = old.replace("port=80)", "port=80, timeout=None)")
    found = texts(old, now)
    stored = "    self.port = port\n    self.timeout = timeout\n"
    assert now.replace("    self.port = port\n", stored) in found
    assert now.replace("port=port)", "port=port, timeout=timeout)") in found


def test_moved_lines_go_from_where_they_were() -> None:
    old = "def f():\n    session = open_session(url)\n    return 1\n\n\ndef g():\n    return 2\n"
    now = old.replace("    return 2", "    session = open_session(url)\n    return 2")
    assert now.replace("    session = open_session(url)\n", "", 1) in texts(old, now)


def test_the_import_goes_with_the_last_use() -> None:
    old = "from typing import Any, Iterable\n\n\ndef f(x: Iterable) -> Any:\n    return x\n"
    now = old.replace("(x: Iterable)", "(x)")
    assert now.replace("Any, Iterable", "Any") in texts(old, now)


def test_a_missing_import_is_taken_from_a_related_file() -> None:
    old = "import os\n\n\ndef f():\n    return os.name\n"
    now = old.replace("return os.name", "return slugify(os.name)")
    related = (Snippet("b.py", "from app.text import slugify\n"),)
    found = texts(old, now, related=related)
    assert any("from app.text import slugify\n" in text for text in found)


def test_a_known_import_gets_the_name_in_its_place() -> None:
    old = "from typing import Any, Union\n\n\nx: Any = 1\n"
    now = old.replace("x: Any = 1", "x: Any = cast(Any, 1)")
    assert now.replace("Any, Union", "Any, Union, cast") in texts(old, now)


def test_the_line_being_typed_is_finished_as_earlier_lines_were() -> None:
    first = "a = load(x)\nb = load(y)\n"
    second = "a = fetch(x)\nb = load(y)\n"
    third = "a = fetch(x)\nb = fe\n"
    found = made(first, second, third, cursor=len(third) - 1)
    assert after(third, found[0]) == "a = fetch(x)\nb = fetch(y)\n"
    assert found[0].rule == "half-done"


def test_changes_in_another_file_count() -> None:
    text = "from shop import total\n\nprint(total(1))\n"
    change = diff("def total(a):\n", "def grand_total(a):\n", "shop.py")
    found = drafts(Request("next_edit", "app.py", text, 0, history=(change,)))
    wanted = "from shop import grand_total\n\nprint(total(1))\n"
    assert wanted in [after(text, draft) for draft in found]


def test_no_draft_takes_back_what_the_user_did() -> None:
    one, two = "x = alpha\ny = alpha\n", "x = beta\ny = alpha\n"
    found = texts(one, two)
    assert one not in found
    back = texts(one, two, one, cursor=9)
    assert two not in back
    assert one not in back


def test_without_history_there_is_nothing_to_repeat() -> None:
    assert drafts(Request("next_edit", "app.py", SHOP, 10)) == []


def test_a_damaged_diff_is_no_error() -> None:
    history = ("not a diff", "@@ -1,9 +1 @@\n-a\n+b", "--- a\n+++ b\n@@ nonsense @@\n")
    assert isinstance(drafts(Request("next_edit", "app.py", SHOP, 10, history=history)), list)


def test_a_diff_without_final_newline_is_read() -> None:
    change = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n-old_name = 1\n+new_name = 1\n print(old_name)\n\\ No newline at end of file\n"  # noqa: E501
    text = "new_name = 1\nprint(old_name)"
    found = drafts(Request("next_edit", "app.py", text, 8, history=(change,)))
    assert "new_name = 1\nprint(new_name)" in [after(text, draft) for draft in found]


def test_other_languages() -> None:
    old = "const userId = read();\nsend(userId);\nlog(`id ${userId}`);\n"
    now = old.replace("const userId", "const accountId")
    wanted = now.replace("send(userId)", "send(accountId)").replace("${userId}", "${accountId}")
    assert wanted in texts(old, now, path="app.ts")


def test_only_lines_in_reach_of_a_huge_file() -> None:
    filler = "".join(f"line_{n} = {n}\n" for n in range(4000))
    old = "needle(1)\n" + filler + "needle(1)\n" + filler
    now = "needle(1)\n" + filler + "pin(1)\n" + filler
    assert made(old, now) == []


lines = st.lists(
    st.sampled_from(
        ["a = b", "b = foo(a)", "", "    c.d(a, b=1)", "def foo(a, b):", "x", "return a", "}"]
    ),
    max_size=14,
)


@settings(max_examples=200, deadline=None)
@given(first=lines, second=lines, third=lines, where=st.floats(0, 1), final=st.booleans())
def test_drafts_are_real_ordered_and_distinct(
    first: list[str], second: list[str], third: list[str], where: float, final: bool
) -> None:
    end = "\n" if final else ""
    states = ["\n".join(rows) + end for rows in (first, second, third)]
    now = states[-1]
    history = tuple(diff(a, b) for a, b in pairwise(states))
    request = Request("next_edit", "app.py", now, int(where * len(now)), history=history)
    found = drafts(request, 12)
    assert found == drafts(request, 12)
    assert len(found) <= 12
    results = []
    for draft in found:
        assert 0 <= draft.edit.start <= draft.edit.end <= len(now)
        results.append(after(now, draft))
    assert now not in results
    assert len({draft.edit for draft in found}) == len(found)
    assert [draft.score for draft in found] == sorted((d.score for d in found), reverse=True)
    if states[0] != states[1] != states[2]:
        assert states[1] not in results


def test_a_line_put_beside_its_like_is_not_taken_back_at_its_like() -> None:
    for count in (2, 9):
        old = "def foo(a, b):\n" * count
        now = "def foo(a, b):\n" * (count + 1)
        history = (diff("", old), diff(old, now))
        for cursor in (0, len(now)):
            request = Request("next_edit", "app.py", now, cursor, history=history)
            assert old not in [after(now, draft) for draft in drafts(request, 12)]


def test_a_renamed_attribute_is_not_the_plain_word() -> None:
    old = (
        "class A:\n    def __init__(self, width):\n        self.width = width\n\n"
        "    def area(self, width):\n        return self.width * width\n"
    )
    new = old.replace("self.width = width", "self.max_width = width")
    request = Request(
        "next_edit", "a.py", new, new.index("max_width"), history=(unified_diff(old, new, "a.py"),)
    )
    made = {apply(new, [draft.edit]) for draft in drafts(request) if draft.rule == "substitution"}
    assert made == {new.replace("return self.width", "return self.max_width")}


def test_white_space_at_line_ends_stays_as_it_is() -> None:
    before = "def f(a, b):\n    size = 'q'; return a + \n    other = size\n"
    now = before.replace("size = 'q'", "name = 'q'")
    found = texts(before, now)
    assert now.replace("other = size", "other = name") in found
    assert all("return a + \n" in text for text in found)


@pytest.mark.parametrize(
    ("signature", "proposed"),
    [("def __init__(self, amount):", False), ("def __init__(self, balance):", True)],
)
def test_an_attribute_renamed_does_not_rename_the_parameter(signature: str, proposed: bool) -> None:
    before = f"class A:\n    {signature}\n        self.amount = amount\n        self.n = 0\n"
    now = before.replace("self.amount", "self.balance")
    rules = {draft.rule for draft in made(before, now, cursor=now.index("balance =") + 7)}
    assert ("half-done" in rules) is proposed


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("TIMEOUT = 30", "RETRIES = 30"),
        ("f(a, timeout=30)", "f(a, width=30)"),
        ('mode = "r"', 'kind = "r"'),
    ],
)
def test_equal_constants_that_mean_something_else_stay(line: str, kept: str) -> None:
    old = f"{line}\n{kept}\nself.read_{line}\n"
    now = old.replace("30", "60", 1).replace('"r"', '"w"', 1)
    found = texts(old, now)
    assert all(kept in text for text in found)


def test_a_changed_constant_of_the_same_name_is_repeated() -> None:
    old = "a = fetch(one, timeout=30)\nc = pad(two, width=30)\nb = send(two, timeout=30)\n"
    now = old.replace("timeout=30", "timeout=60", 1)
    assert now.replace("timeout=30", "timeout=60") in texts(old, now)


def test_what_is_carried_keeps_the_spaces_of_the_edit() -> None:
    old = (
        'class A {\n    int add(int a) {}\n    int sub(int b) {}\n}\na = data["a"]\nb = data["b"]\n'
    )
    now = old.replace("int add", "static int add")
    assert now.replace("int sub", "static int sub") in texts(old, now, path="A.java")
    now = old.replace('a = data["a"]', 'a = str(data["a"])')
    assert now.replace('b = data["b"]', 'b = str(data["b"])') in texts(old, now)
