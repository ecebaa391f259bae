"""Formats durations, counts, costs, times and exit codes for display."""

import signal
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from codeloop.schema.message import Tokens

Look = Literal["bold", "dim", "italic", "underline", "red", "green", "yellow", "cyan"]
"""How a text stands out in a plain terminal."""


def format_duration(ms: float) -> str:
    """Return a duration as people read it: 12 ms, 1.4 s, 3 min 5 s."""
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000:.0f} min {ms % 60_000 / 1000:.0f} s"


def elapsed_ms(start: int, end: int) -> int:
    """Return the milliseconds between two times (ms since the epoch); 0 if one of them is not known."""
    return max(end - start, 0) if start > 0 and end > 0 else 0


def format_count(number: int) -> str:
    """Return a count as people read it: 950, 12.3k, 128k, 1.2M."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.0f}k" if number >= 100_000 else f"{number / 1_000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def format_cost(cost: float, tokens: Tokens | None = None) -> str:
    """Return a cost: four digits after the point under a dollar, else two; `~` where `tokens` are estimated."""
    return f"{_estimate_mark(tokens)}${cost:.4f}" if cost < 1 else f"{_estimate_mark(tokens)}${cost:.2f}"


def describe_spending(tokens: Tokens, cost: float) -> tuple[str, ...]:
    """Return tokens and dollars as people read them: `12.3k in (2.0k cached), 500 out` and `$0.0100`.

    Empty when nothing was counted: a turn that was refused or killed, whose use no service has reported.
    """
    if not tokens.all and not cost:
        return ()
    total = tokens.input + tokens.cache.read + tokens.cache.write
    cached = f" ({format_count(tokens.cache.read)} cached)" if tokens.cache.read else ""
    return f"{_estimate_mark(tokens)}{format_count(total)} in{cached}, {format_count(tokens.output)} out", format_cost(
        cost, tokens
    )


def _estimate_mark(tokens: Tokens | None) -> str:
    return "~" if tokens and tokens.estimated else ""


def format_time(ms: int) -> str:
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
    prefix = ""
    room -= 1
    for char in text:
        room -= width_of(char)
        if room < 0:
            break
        prefix += char
    return prefix + "…"


def describe_command_end(metadata: Mapping[str, Any]) -> str:
    """Return how a `bash` command went wrong, by the metadata of its call; "": it did not, or runs on."""
    code, name = metadata.get("exit"), metadata.get("signal")
    if metadata.get("interrupted"):
        return "stopped"
    if metadata.get("timedOut"):
        return "timed out"
    if isinstance(name, str) and name:
        return f"ended by {name}"
    if not isinstance(code, int) or code == 0:
        return ""
    if code < 0:
        return f"ended by {_signal(-code) or f'signal {-code}'}"
    signal_name = _signal(code - 128)
    return f"exit {code} ({signal_name})" if signal_name else f"exit {code}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
