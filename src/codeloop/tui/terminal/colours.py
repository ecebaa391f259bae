"""Detects a terminal's colours: how many, and whether the background is dark."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

Depth = Literal["none", "standard", "256", "truecolor"]
"""Colour depths: no colours wanted, the terminal's sixteen, its 256, or all RGB colours."""


class TerminalColours(Struct, frozen=True):
    """A terminal's colour depth and background."""

    depth: Depth = "truecolor"
    is_dark: bool = True


_TRUE_COLOUR_NAMES = frozenset({"truecolor", "24bit"})
_TRUE_COLOUR = ("alacritty", "contour", "foot", "ghostty", "iterm", "kitty", "mlterm", "rio", "wezterm")
"""Prefixes of `TERM` of terminals that show all RGB colours."""
_RGB = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")


def count_colours(term: str) -> int:
    """Return how many colours a terminal has by its entry in terminfo; 0: unknown."""
    import curses

    try:
        curses.setupterm(term, 1)
        return curses.tigetnum("colors")
    except curses.error:
        return 0


def find_depth(environment: Mapping[str, str], count: Callable[[str], int] = count_colours) -> Depth:
    """Return the colour depth by the environment; `count` returns the number of colours of a `TERM`."""
    if environment.get("NO_COLOR"):
        return "none"
    term = environment.get("TERM", "")
    if environment.get("COLORTERM", "").lower() in _TRUE_COLOUR_NAMES or term.endswith("-direct"):
        return "truecolor"
    if term.removeprefix("xterm-").startswith(_TRUE_COLOUR):
        return "truecolor"
    if environment.get("XTERM_VERSION") and term == "xterm":  # terminfo says eight for this name
        return "truecolor"
    if term.endswith("-256color"):
        return "256"
    return "256" if count(term) >= 256 else "standard"


def read_colours(environment: Mapping[str, str]) -> TerminalColours:
    """Return the terminal's colours by the environment."""
    return TerminalColours(find_depth(environment), has_dark_background(environment))


def has_dark_background(environment: Mapping[str, str]) -> bool:
    """Return whether the background is dark by the environment; True if that does not say."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return background not in {"7", "15"}


def is_dark_background(answer: str) -> bool | None:
    """Return whether the background colour in a terminal's answer is dark; None: the answer has no colour."""
    match = _RGB.match(answer)
    if match is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
