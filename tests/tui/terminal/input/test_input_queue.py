"""What Escape and Ctrl-C drop of the input that waits, and what stays."""

import pytest

from codeloop.tui.terminal.input.input_parser import TerminalInput
from codeloop.tui.terminal.input.input_queue import count_flood_keys


@pytest.mark.parametrize(
    ("item", "count"),
    [
        (TerminalInput("keys", "abc"), 3),
        (TerminalInput("keys", "\x1bb"), 1),
        (TerminalInput("keys", "\x1bOM"), 1),
        (TerminalInput("keys", "\x1b[<35;40;12M"), 0),
        (TerminalInput("paste", "two\nlines"), 9),
        (TerminalInput("paste", "\x1b[31mred"), 8),
    ],
)
def test_text_pastes_and_alt_keys_are_part_of_a_flood_and_moves_of_the_mouse_are_not(
    item: TerminalInput, count: int
) -> None:
    assert count_flood_keys(item) == count
