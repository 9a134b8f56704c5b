"""Reading settings, and saying what is wrong with them."""

from __future__ import annotations

import pytest

from lsp_server.settings import Settings, parse_settings, problems_message, settings_markdown


def test_nothing_gives_the_defaults() -> None:
    assert parse_settings(None) == (Settings(), [])
    assert parse_settings({}) == (Settings(), [])


def test_nested_dotted_and_wrapped_settings_are_the_same() -> None:
    for raw in (
        {"inline": {"enable": False}, "debounceMs": 5},
        {"inline.enable": False, "debounceMs": 5},
        {"redraft": {"inline": {"enable": False}, "debounceMs": 5}, "other": 1},
    ):
        settings, problems = parse_settings(raw)
        assert problems == []
        assert (settings.inline_enable, settings.debounce_ms) == (False, 5)
        assert settings.next_edit_enable is True


def test_null_leaves_a_setting_as_it_is() -> None:
    base = Settings(gate="quiet")
    assert parse_settings({"gate": None}, base) == (base, [])


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"enable": 1}, "`enable` must be true or false, not 1"),
        ({"enable": "yes"}, '`enable` must be true or false, not "yes"'),
        ({"debounceMs": True}, "`debounceMs` must be a whole number from 0 to 5000, not true"),
        ({"debounceMs": 1.5}, "`debounceMs` must be a whole number from 0 to 5000, not 1.5"),
        ({"debounceMs": float("nan")}, "`debounceMs` must be a whole number"),
        ({"gate": "loud"}, '`gate` must be one of eager, balanced, quiet, not "loud"'),
        ({"exclude": "*.py"}, '`exclude` must be a list of strings, not "*.py"'),
        ({"exclude": ["a", 1]}, "`exclude` must be a list of strings"),
        ({"model": {}}, "`model` must be a string, not {}"),
        ({"debounce": 1}, "`debounce` is not a setting (did you mean `debounceMs`?)"),
        ({"inline": {"on": 1}}, "`inline.on` is not a setting"),
        ({"inline": True}, "`inline` is not a setting"),
        ([], "the settings must be an object, not a list"),
    ],
)
def test_a_bad_value_is_named_and_the_default_kept(raw: object, words: str) -> None:
    settings, problems = parse_settings(raw)
    assert settings == Settings()
    assert len(problems) == 1
    assert problems[0].startswith(words) or words in problems[0]


def test_good_values_count_beside_bad_ones() -> None:
    settings, problems = parse_settings({"gate": "eager", "threads": -1, "deadlineMs": 100.0})
    assert (settings.gate, settings.deadline_ms) == ("eager", 100)
    message = problems_message(problems)
    assert "`threads`" in message
    assert "gate" not in message


def test_keys_of_other_clients_are_no_mistake() -> None:
    assert parse_settings({"editorInfo": {"name": "Neovim"}, "editorPluginInfo": {}})[1] == []


def test_the_table_has_every_setting_once() -> None:
    table = settings_markdown()
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) == len(Settings.__dataclass_fields__)
    assert "| `debounceMs` | 0 to 5000 | `60` |" in table
    assert '| `gate` | `eager`, `balanced`, `quiet` | `"balanced"` |' in table
    assert "| `exclude` | list of text | `[]` |" in table
