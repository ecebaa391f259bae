"""Keys as they come from terminals that write them in the old way."""

import pytest
from textual import events

from codeloop.tui.commands import COMMANDS
from codeloop.tui.keys.key_names import normalise_key
from codeloop.tui.keys.keymap import Keymap
from codeloop.tui.terminal.input.key_parser import KeyParser, register_keys
from codeloop.tui.terminal.sequences import needs_visible_cursor


@pytest.mark.parametrize(
    ("written", "command"),
    [
        ("\x1b\x04", "messages_half_page_down"),
        ("\x1b\x15", "messages_half_page_up"),
        ("\x1b\x07", "messages_last"),
        ("\x1b\x19", "messages_line_up"),
        ("\x1b\x05", "messages_line_down"),
        ("\x1b[1;7B", "session_child_cycle"),
        ("\x1b[1;7C", "tab_next"),
    ],
)
def test_a_key_held_with_control_and_alt_is_one_key(written: str, command: str) -> None:
    register_keys()
    (key,) = (event for event in KeyParser().feed(written) if isinstance(event, events.Key))
    assert Keymap({row.id: row.keys for row in COMMANDS}, {}).press(key.key).commands == (command,)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("\x1b\r", "alt+enter"),
        ("\x1b[27;2;13~", "shift+enter"),
        ("\x1b[27;5;13~", "ctrl+enter"),
        ("\x1b[27;3;13~", "alt+enter"),
        ("\x1b[27;5;45~", "ctrl+minus"),
        ("\x1b[27;5;46~", "ctrl+full_stop"),
        ("\x1b[27;6;65~", "ctrl+shift+a"),
        ("\x1b[27;5;9~", "ctrl+tab"),
        ("\x1bb", "alt+b"),
        ("\x1bf", "alt+f"),
        ("\x1b[91;5u", "escape"),
        ("\x1b[105;5u", "tab"),
        ("\x1b[109;5u", "enter"),
    ],
)
def test_a_key_that_is_held_with_others_is_told_from_the_key(written: str, key: str) -> None:
    register_keys()
    assert [
        normalise_key(event.key)
        for event in KeyParser().feed(written)
        if isinstance(event, events.Key)
    ] == [key]


def test_a_terminal_shows_its_cursor_where_an_input_method_needs_it() -> None:
    assert needs_visible_cursor({"VTE_VERSION": "7006"})
    assert not needs_visible_cursor({"VTE_VERSION": "7006", "STY": "1.pts"})
    assert not needs_visible_cursor({"TERM": "xterm-256color"})
