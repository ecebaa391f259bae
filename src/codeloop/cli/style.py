"""Colour for terminals, and the few ways in which numbers are shown to people."""

import os
from datetime import datetime
from typing import Literal, TextIO

Look = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
CODES: dict[Look, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


def has_colour(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal that wants colour (NO_COLOR, TERM=dumb and FORCE_COLOR are honoured)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def paint(text: str, look: Look, *, colour: bool) -> str:
    """Give the text in a look, or as it is."""
    return f"\x1b[{CODES[look]}m{text}\x1b[0m" if colour and text else text


def duration(ms: float) -> str:
    """Give a duration as people read it: 12 ms, 1.4 s, 3 min 5 s."""
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000:.0f} min {ms % 60_000 / 1000:.0f} s"


def count(number: int) -> str:
    """Give a count as people read it: 950, 12.3k, 1.2M."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def dollars(cost: float) -> str:
    """Give a cost: four digits after the point under a dollar, else two."""
    return f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"


def when(ms: int) -> str:
    """Give a time as people read it; `ms` since the epoch."""
    return f"{datetime.fromtimestamp(ms / 1000).astimezone():%Y-%m-%d %H:%M}"
