"""Colours, aligned columns and JSON for what the commands print; used by every command that prints."""

import os
from collections.abc import Sequence
from typing import TextIO

import click
import msgspec

from codeloop.client.formatting import TextStyle
from codeloop.kit.text.terminal_text import escape_json_controls

# The numbers of colours and styles in the terminal's control sequence for them (SGR).
SGR_CODES = {"bold": 1, "dim": 2, "italic": 3, "underline": 4, "red": 31, "green": 32, "yellow": 33, "cyan": 36}

# The style of a line of a patch, by its first character.
PATCH_STYLES: dict[str, TextStyle] = {"+": "green", "-": "red", "@": "cyan"}


def has_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colour (NO_COLOR, TERM=dumb and FORCE_COLOR are honoured)."""
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


def align_columns(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Return the rows as lines of aligned columns; `right`: the indexes of the columns to align on the right."""
    # All rows have the same number of cells.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)


def print_json(value: object) -> None:
    """Print a value as JSON that is safe to show in a terminal."""
    click.echo(escape_json_controls(msgspec.json.encode(value).decode()))
