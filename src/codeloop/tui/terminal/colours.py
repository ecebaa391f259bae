"""Detects a terminal's colours: how many, and whether the background is dark."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

Depth = Literal["none", "standard", "256", "truecolor"]
"""Colour depths: none wanted; the terminal's sixteen; 256; any."""


class TerminalColours(Struct, frozen=True):
    """A terminal's colour depth and background."""

    depth: Depth = "truecolor"
    is_dark: bool = True


_TRUE_COLOUR_NAMES = frozenset({"truecolor", "24bit"})
_TRUE_COLOUR = ("alacritty", "contour", "foot", "ghostty", "iterm", "kitty", "mlterm", "rio", "wezterm")
"""Prefixes of `TERM` of terminals that show any colour."""
_RGB = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")


def count_colours(term: str) -> int:
    """Return a terminal's number of colours in terminfo; 0: unknown."""
    import curses

    try:
        curses.setupterm(term, 1)
        return curses.tigetnum("colors")
    except curses.error:
        return 0


def find_depth(environment: Mapping[str, str], ask_terminal: Callable[[str], int] = count_colours) -> Depth:
    """Return the colour depth by the environment; `ask_terminal` looks `TERM` up in terminfo."""
    if environment.get("NO_COLOR"):
        return "none"
    term = environment.get("TERM", "")
    if environment.get("COLORTERM", "").lower() in _TRUE_COLOUR_NAMES or term.endswith("-direct"):
        return "truecolor"
    if term.removeprefix("xterm-").startswith(_TRUE_COLOUR):
        return "truecolor"
    if environment.get("XTERM_VERSION") and term == "xterm":  # the name alone means eight
        return "truecolor"
    if term.endswith("-256color"):
        return "256"
    return "256" if ask_terminal(term) >= 256 else "standard"


def read_colours(environment: Mapping[str, str]) -> TerminalColours:
    """Read the terminal's colours from the environment."""
    return TerminalColours(find_depth(environment), has_dark_background(environment))


def has_dark_background(environment: Mapping[str, str]) -> bool:
    """Return whether the environment indicates a dark background, which is the default."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return background not in {"7", "15"}


def is_dark_background(answer: str) -> bool | None:
    """Return whether the background colour in a terminal's answer is dark; None: no colour in it."""
    match = _RGB.match(answer)
    if match is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
