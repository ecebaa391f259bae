"""How things look to a person: colour, widths, columns, numbers; and JSON for programs."""

import os
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TextIO

import click
import msgspec

from codeloop.kit.terminal_text import inert_json
from codeloop.schema.message import Tokens

Look = Literal["bold", "dim", "italic", "underline", "red", "green", "yellow", "cyan"]
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


def duration(ms: float) -> str:
    """Return a duration as people read it: 12 ms, 1.4 s, 3 min 5 s."""
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000:.0f} min {ms % 60_000 / 1000:.0f} s"


def count(number: int) -> str:
    """Return a count as people read it: 950, 12.3k, 1.2M."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def dollars(cost: float, tokens: Tokens | None = None) -> str:
    """Return a cost: four digits after the point under a dollar, else two; `~` where `tokens` are estimated."""
    return f"{_about(tokens)}${cost:.4f}" if cost < 1 else f"{_about(tokens)}${cost:.2f}"


def spent(tokens: Tokens, cost: float) -> tuple[str, str]:
    """Return tokens and dollars as people read them: `12.3k in (2.0k cached), 500 out` and `$0.0100`."""
    whole = tokens.input + tokens.cache.read + tokens.cache.write
    cached = f" ({count(tokens.cache.read)} cached)" if tokens.cache.read else ""
    return f"{_about(tokens)}{count(whole)} in{cached}, {count(tokens.output)} out", dollars(cost, tokens)


def _about(tokens: Tokens | None) -> str:
    return "~" if tokens and tokens.estimated else ""


def when(ms: int) -> str:
    """Return a time as people read it; `ms` since the epoch."""
    return f"{datetime.fromtimestamp(ms / 1000).astimezone():%Y-%m-%d %H:%M}"


def width_of(text: str) -> int:
    """Return how many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(char) in {"Mn", "Me", "Cf"}
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
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


def columns(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Return the rows as lines of aligned columns; those of `right` are aligned on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)


def print_json(value: object) -> None:
    """Print a value as JSON that is safe to show in a terminal."""
    click.echo(inert_json(msgspec.json.encode(value).decode()))
