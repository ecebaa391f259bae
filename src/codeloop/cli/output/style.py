"""How things look to a user: colour, widths, columns, numbers; and JSON for programs."""

import os
from collections.abc import Sequence
from typing import TextIO

import click
import msgspec

from codeloop.client.numbers import Look
from codeloop.kit.terminal_text import escape_json_controls

CODES = {"bold": 1, "dim": 2, "italic": 3, "underline": 4, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


def has_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colour (NO_COLOR, TERM=dumb and FORCE_COLOR are honoured)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def has_redraw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which a line can be redrawn."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def paint(text: str, look: Look, *, colour: bool) -> str:
    """Return the text in a look, or as it is."""
    return f"\x1b[{CODES[look]}m{text}\x1b[0m" if colour and text else text


def columns(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Return the rows as lines of aligned columns; those of `right` are aligned on the right."""
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
