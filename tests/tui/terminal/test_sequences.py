"""Keys as they come from terminals that write them in the old way."""

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from codeloop.tui.commands import COMMANDS
from codeloop.tui.prompt.bindings import arrived
from codeloop.tui.settings.keys import Keymap
from codeloop.tui.terminal.sequences import learn_keys


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
    learn_keys()
    (key,) = (event for event in XTermParser().feed(written) if isinstance(event, events.Key))
    assert Keymap({row.id: row.keys for row in COMMANDS}, {}).press(key.key).commands == (command,)


def test_a_new_line_is_not_sent() -> None:
    learn_keys()
    for written, key in (("\x1b\r", "alt+enter"), ("\x1b[27;2;13~", "shift+enter"), ("\x1b[27;5;13~", "ctrl+enter")):
        assert [arrived(event.key) for event in XTermParser().feed(written) if isinstance(event, events.Key)] == [key]
