"""Feedback, by a real server: what it leaves on disk."""

from __future__ import annotations

from pathlib import Path

from lsp_editor import Editor

from model.feedback import Life, Store

TEXT = "foo = 1\nprint(foo)\nprint(foo)\n"
RULES = [{"mode": "next_edit", "replace": {"old": "foo", "new": "bar"}, "confidence": 0.8}]


async def session(editor: Editor, home: Path, **options: bool) -> list[Life]:
    """One suggestion is accepted, one rejected; the editor leaves at once."""
    settings = {f"feedback.{name}": value for name, value in options.items()}
    await editor.start(RULES, options=settings, environment={"REDRAFT_HOME": str(home)})
    editor.open("a.py", TEXT)
    editor.change("a.py", (0, 0, 0, 3, "bar"))
    (edit,) = (await editor.next_edit("a.py", 1, 0))["edits"]
    await editor.command("redraft.shown", edit["command"]["arguments"][0])
    editor.change("a.py", (1, 6, 1, 9, "bar"))
    (edit,) = (await editor.next_edit("a.py", 2, 0))["edits"]
    await editor.command("redraft.reject", edit["command"]["arguments"][0])
    assert (await editor.status())["feedback"] == ("off" if options else "on")
    await editor.stop()
    editor.started = False
    path = home / "feedback.sqlite3"
    if not path.exists():
        return []
    with Store(path) as store:
        return list(store.lives())


async def test_outcomes_are_on_disk_when_the_server_has_gone(editor: Editor, tmp_path) -> None:
    first, second = await session(editor, tmp_path / "home")
    assert [event.state for event in first.events] == ["shown", "accepted", "settled"]
    assert [event.state for event in second.events] == ["rejected"]
    assert first.suggested.confidence == 0.8
    for file in (tmp_path / "home").iterdir():
        data = file.read_bytes()
        assert b"foo" not in data
        assert b"a.py" not in data


async def test_nothing_is_kept_when_switched_off(editor: Editor, tmp_path) -> None:
    assert await session(editor, tmp_path / "home", enable=False) == []
    assert not (tmp_path / "home").exists()


async def test_what_was_too_unsure_to_show_and_typed_all_the_same_was_missed(
    editor: Editor, tmp_path
) -> None:
    home = tmp_path / "home"
    rules = [{"mode": "fim", "when": {"regex": "x = $"}, "insert": "value", "confidence": 0.2}]
    await editor.start(rules, environment={"REDRAFT_HOME": str(home)})
    editor.open("a.py", "x = \n")
    assert (await editor.inline("a.py", 0, 4)) is None
    assert await editor.reason() == "low-confidence"
    for number, char in enumerate("value"):
        editor.type("a.py", 0, 4 + number, char)
    await editor.stop()
    editor.started = False
    with Store(home / "feedback.sqlite3") as store:
        (life,) = store.lives()
    assert [event.state for event in life.events] == ["missed"]
    assert (life.suggested.mode, life.suggested.confidence) == ("fim", 0.2)
