"""Draws the rows that dialogs have in common: the title, the keys, and texts."""

from rich.segment import Segment
from rich.style import Style

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import justify_row, wrap_text
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.rows_view import KEY_META_ENTRY


def draw_title(title: str, styles: Styles, width: int) -> Row:
    """Return the first row of a dialog: its title, and the key that closes it."""
    close_style = styles.of("text_muted") + _style_as_key("escape")
    return justify_row(
        [Segment(title, styles.of("text", "bold"))], [Segment("esc", close_style)], width
    )


def draw_keys(keys: list[tuple[str, str]], styles: Styles, width: int) -> list[Row]:
    """Return rows that list the keys and their meaning. A click on one presses it."""
    rows: list[Row] = [[]]
    used = 0
    for key, title in keys:
        # With the blank between key and title, and three behind them,
        # which the last key of a row may do without.
        size = len(key) + len(title) + 4
        if used and used + size - 3 > width:
            rows.append([])
            used = 0
        # A name such as `↑↓` stands for several keys, so that a click can't press it.
        button = _style_as_key("escape" if key == "esc" else key) if key.isascii() else Style()
        rows[-1] += [
            Segment(key, styles.of("text") + button),
            Segment(f" {title}", styles.of("text_muted") + button),
        ]
        rows[-1].append(Segment("   ", styles.of("text_muted")))
        used += size
    return rows


def draw_text(text: str, styles: Styles, width: int, colour: str = "text") -> list[Row]:
    """Return a text in wrapped rows. The control characters of an untrusted text must
    have been escaped before.
    """
    return [[Segment(line, styles.of(colour))] for line in wrap_text(text, width)]


def _style_as_key(key: str) -> Style:
    """Return a style for words that act as a key when clicked."""
    return Style(meta={KEY_META_ENTRY: key})
