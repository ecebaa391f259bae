"""What programs print: their colours are kept, everything else that steers a terminal is gone."""

import pytest

from codeloop.tui.render.ansi_text import AnsiText
from codeloop.tui.themes.styles import Styles
from tests.tui.drawing import PROBE, styled


def read(*lines: str) -> str:
    reader = AnsiText(Styles(PROBE), "text_muted")
    return styled(reader.draw_line(line) for line in lines)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain", "{text_muted}plain"),
        ("\x1b[31mred\x1b[0m no", "{error}red{text_muted} no"),
        ("\x1b[1;32mok\x1b[22m ok\x1b[39m no", "{success bold}ok{success} ok{text_muted} no"),
        ("\x1b[93mbright", "{warning}bright"),
        ("\x1b[37;41mon red", "{text on error}on red"),
        ("\x1b[7mrev\x1b[m", "{text_muted reverse}rev"),
        ("\x1b[38;5;196mcube", "{#ff0000}cube"),
        ("\x1b[38;2;1;2;300mtrue", "{#0102ff}true"),
        ("\x1b[38:5:196mcolons", "{#ff0000}colons"),
        ("\x1b[38;9mbroken", "{text_muted}broken"),
        ("\x1b[2J\x1b[Hclear", "{text_muted}clear"),
        ("\x1b]0;title\x07\x1b]8;;http://x\x1b\\link", "{text_muted}link"),
        ("\x1b]52;c;evil", ""),
        ("\x1bPdevice\x1b\\x\x1b(By\x1b=z", "{text_muted}xyz"),
        ("\x9b31mx\x9d0;t\x9cy", "{text_muted}xy"),
        ("10 %\r50 %\r100 %\r", "{text_muted}100 %"),
        ("N\x08NA\x08A", "{text_muted}NA"),
        ("a\tb", "{text_muted}a   b"),
        ("bell\x07\u202e\x1b", "{text_muted}bell␇<U+202E>"),
    ],
)
def test_lines(line: str, shown: str) -> None:
    assert read(line) == shown


def test_colours_go_on_in_the_next_line() -> None:
    assert read("\x1b[31mone", "two\x1b[0m", "three") == "{error}one\n{error}two\n{text_muted}three"
