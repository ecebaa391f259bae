"""How many columns of a terminal text takes."""

import os
import unicodedata

from codeloop.cli.output.streams import Output

COLUMNS = 80
"""Where a terminal does not say how wide it is."""


def width_of(text: str) -> int:
    """Return how many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut_to(text: str, room: int) -> str:
    """Return the text on at most `room` columns, with an ellipsis where it was cut."""
    if width_of(text) <= room:
        return text
    kept = ""
    room -= 1
    for char in text:
        room -= width_of(char)
        if room < 0:
            break
        kept += char
    return kept + "…"


def columns_of(output: Output) -> int:
    """Return how wide a terminal is."""
    try:
        return os.get_terminal_size(output.descriptor or 0).columns or COLUMNS
    except OSError:
        return COLUMNS
