"""Colours and styles of what is printed: whether a stream shows them,
and the control sequences for them.
"""

import os
from typing import TextIO

from codeloop.client.formatting import TextStyle

# The numbers of colours and styles in the terminal's control sequence for them (SGR).
SGR_CODES = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "underline": 4,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "cyan": 36,
}

# The style of a line of a patch, by its first character.
PATCH_STYLES: dict[str, TextStyle] = {"+": "green", "-": "red", "@": "cyan"}


def has_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colour (NO_COLOR,
    TERM=dumb and FORCE_COLOR are honoured).
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def can_redraw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which a line can be redrawn."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def paint(text: str, style: TextStyle, *, colour: bool) -> str:
    """Return the text with the control sequences of a style, or unchanged without `colour`."""
    return f"\x1b[{SGR_CODES[style]}m{text}\x1b[0m" if colour and text else text


def paint_patch_line(line: str, *, colour: bool) -> str:
    """Return a line of a patch, coloured if it adds, removes or locates lines."""
    style = PATCH_STYLES.get(line[:1])
    return paint(line, style, colour=colour) if style is not None else line
