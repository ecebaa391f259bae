"""Settings are written into a file of the user, whose comments stay, and taken out of it."""

from pathlib import Path

import pytest

from codeloop.kit.jsonc import parse_jsonc
from codeloop.schema.errors import CodeloopError
from codeloop.tui.commands import COMMANDS
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.settings.ui_settings import read_settings, unset_setting, write_setting


def test_a_setting_is_added_and_replaced_beside_comments(tmp_path: Path) -> None:
    file = tmp_path / "tui.json"
    write_setting(file, "vim", True)
    assert file.read_text() == '{\n  "vim": true\n}\n'
    file.write_text('{\n  // mine\n  "theme": "nord", // cold\n  "vim": true\n}\n')
    write_setting(file, "theme", "dracula")
    assert file.read_text() == '{\n  // mine\n  "theme": "dracula", // cold\n  "vim": true\n}\n'


def test_neither_comments_nor_strange_characters_are_taken_for_settings(tmp_path: Path) -> None:
    file = tmp_path / "tui.json"
    for text in (
        '// {mine}\n{ /* "vim": 1 } */ }',
        '// {\n{\n  "theme": "a\u2028b",\n  "vim": false\n}',
        '{"vim": {}}',
    ):
        file.write_text(text)
        write_setting(file, "vim", True)
        assert '"vim": true' in file.read_text()
        assert parse_jsonc(file.read_text()).value["vim"] is True
        assert file.read_text().count("{") == text.count("{") - text.count("{}")
    file.write_bytes(b'{"theme": "\xff"}')
    with pytest.raises(CodeloopError, match="is not UTF-8 text"):
        write_setting(file, "vim", True)


@pytest.mark.parametrize(
    ("key", "text", "left"),
    [
        ("vim", '{\n  "vim": true\n}\n', {}),
        ("vim", '{"vim": true, "theme": "nord"}', {"theme": "nord"}),
        ("vim", '{"theme": "nord", "vim": true}', {"theme": "nord"}),
        ("theme", '{\n  // mine\n  "theme": "a, b",\n  "vim": true // yes\n}', {"vim": True}),
        ("theme", '{"theme": "nord" // mine\n, "vim": true}', {"vim": True}),
        ("mouse", '{"theme": "nord"}', {"theme": "nord"}),
    ],
)
def test_a_setting_is_taken_out(
    tmp_path: Path, key: str, text: str, left: dict[str, object]
) -> None:
    file = tmp_path / "tui.json"
    file.write_text(text)
    unset_setting(file, key)
    sources = read_settings([file])
    assert sources.problems == ()
    assert {name: getattr(sources.settings, name) for name in sources.origins} == left
    assert ("// mine" in file.read_text()) == ("// mine" in text)


def test_other_names_of_the_reference_for_a_command_are_known(tmp_path: Path) -> None:
    file = tmp_path / "tui.json"
    file.write_text(
        '{"keybinds": {"prompt_stash": "f9", "diff_open": "f10", "which_key_home": "f11"}}'
    )
    keys = Keymap({row.id: row.keys for row in COMMANDS}, read_settings([file]).settings.keybinds)
    assert [keys.press(key).commands for key in ("f9", "f10", "f11")] == [
        ("stash_push",),
        ("session_changes",),
        (),
    ]
