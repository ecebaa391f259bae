"""Detects a terminal's colours, by the environment and its answers: how many,
and whether the background is dark.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

ColourDepth = Literal["none", "standard", "256", "truecolor"]
"""Colour depths: no colours wanted, the terminal's sixteen, its 256, or all RGB colours."""


class TerminalColours(Struct, frozen=True):
    """A terminal's colour depth and background."""

    depth: ColourDepth = "truecolor"
    is_dark: bool = True


_TRUE_COLOUR_VALUES = frozenset({"truecolor", "24bit"})
"""Values of `COLORTERM` of terminals that show all RGB colours."""
_TRUE_COLOUR_TERMS = (
    "alacritty",
    "contour",
    "foot",
    "ghostty",
    "iterm",
    "kitty",
    "mlterm",
    "rio",
    "wezterm",
)
"""Prefixes of `TERM` of terminals that show all RGB colours."""
# A channel has one to four hexadecimal digits, by the terminal.
_RGB_ANSWER = r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"


def count_colours(term: str) -> int:
    """Return how many colours a terminal has by its entry in terminfo; 0: unknown."""
    # Late, since curses loads a library, and most terminals are recognised without it.
    import curses

    try:
        curses.setupterm(term, 1)
        return curses.tigetnum("colors")
    except curses.error:
        return 0


def find_colour_depth(
    environment: Mapping[str, str], count: Callable[[str], int] = count_colours
) -> ColourDepth:
    """Return the colour depth by the environment; `count` returns how many colours a `TERM` has,
    0 for unknown.
    """
    if environment.get("NO_COLOR"):
        return "none"
    term = environment.get("TERM", "")
    if environment.get("COLORTERM", "").lower() in _TRUE_COLOUR_VALUES or term.endswith("-direct"):
        return "truecolor"
    if term.removeprefix("xterm-").startswith(_TRUE_COLOUR_TERMS):
        return "truecolor"
    # Terminfo says eight colours for this name, which other terminals use too.
    if environment.get("XTERM_VERSION") and term == "xterm":
        return "truecolor"
    if term.endswith("-256color"):
        return "256"
    return "256" if count(term) >= 256 else "standard"


def read_colours(environment: Mapping[str, str]) -> TerminalColours:
    """Return the terminal's colours by the environment."""
    return TerminalColours(find_colour_depth(environment), guess_dark_background(environment))


def guess_dark_background(environment: Mapping[str, str]) -> bool:
    """Return whether the background is dark by the environment;
    True if it does not contain that.
    """
    # Such as `15;0`, for the text and the background: numbers of the sixteen colours,
    # where 7 and 15 are white.
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return background not in {"7", "15"}


def parse_dark_background(answer: str) -> bool | None:
    """Return whether the background colour in a terminal's answer is dark;
    None: the answer has no colour.
    """
    match = re.match(_RGB_ANSWER, answer)
    if match is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    # The luminance of sRGB colours, without its gamma correction: only the
    # order of magnitude matters.
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
