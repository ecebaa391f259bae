"""The palette of terminals with 256 colours: its colours by number, and themes fitted to it."""

from colorsys import rgb_to_hls
from functools import cache
from typing import NamedTuple

import msgspec

from codeloop.tui.themes.theme import ColourTheme


class DiffTint(NamedTuple):
    """The background of changed lines in a diff, and of the changed words within them."""

    line: str
    word: str


_ANSI_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
# They replace a theme's faint tints, whose nearest palette colour would be the same grey
# for additions and removals.
_DARK_DIFF_TINTS = {
    "green": DiffTint(line="#005f00", word="#008700"),
    "red": DiffTint(line="#5f0000", word="#870000"),
    "blue": DiffTint(line="#00005f", word="#0000af"),
}
_LIGHT_DIFF_TINTS = {
    "green": DiffTint(line="#d7ffd7", word="#afffaf"),
    "red": DiffTint(line="#ffd7d7", word="#ffafaf"),
    "blue": DiffTint(line="#d7d7ff", word="#afafff"),
}
_TINT_NAMES = {"added": "green", "removed": "red"}
"""The usual tint of each side of a diff."""
_BLUE_HUES = (0.55, 0.72)
"""The range of hues (0 to 1) in which a theme's background of additions counts as blue."""
_BLUE_MIN_SATURATION = 0.25
"""The saturation (0 to 1) from which it does: below, it is rather grey."""
_MUTED_ON_DIFFS = (
    "text_muted",
    "diff_line_number",
    "diff_context",
    "syntax_comment",
    "markdown_block_quote",
)
"""Muted text colours that are used on diff backgrounds,
which are stronger in this palette than in the theme.
"""
# On the strong backgrounds of this palette, a darker grey would be hard to read.
_MIN_MUTED_LEVEL = 168
"""The level (0 to 255) of the grey that replaces darker ones of `_MUTED_ON_DIFFS` in dark mode."""
_CUBE_LEVELS = (0, 95, 135, 175, 215, 255)
"""The levels of red, green and blue in the palette's cube of 216 colours; 24 greys follow them."""
RGB = tuple[int, int, int]
_CUBE: tuple[RGB, ...] = tuple(
    (red, green, blue) for red in _CUBE_LEVELS for green in _CUBE_LEVELS for blue in _CUBE_LEVELS
)
_GREYS: tuple[RGB, ...] = tuple((level, level, level) for level in range(8, 239, 10))
_PALETTE = (*_CUBE, *_GREYS)
"""The colours from number 16 on."""


def fit_to_palette(theme: ColourTheme, *, is_dark: bool) -> ColourTheme:
    """Return a theme in the 240 colours that all 256-colour terminals share;
    different meanings stay distinct.
    """
    colours: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(theme).items():
        if not str(value).startswith("#"):
            continue
        colour = _parse_rgb(value)
        if is_dark and name in _MUTED_ON_DIFFS and sum(colour) < 3 * _MIN_MUTED_LEVEL:
            colour = (_MIN_MUTED_LEVEL, _MIN_MUTED_LEVEL, _MIN_MUTED_LEVEL)
        side = next((side for side in _TINT_NAMES if side in name), "")
        if side and (name.endswith("_bg") or "highlight" in name):
            colours[name] = _choose_tint(colour, side, is_dark=is_dark, is_word="highlight" in name)
        else:
            colours[name] = _format_rgb(_find_nearest(colour))
    return msgspec.structs.replace(theme, **colours)


def _parse_rgb(value: str) -> RGB:
    return int(value[1:3], 16), int(value[3:5], 16), int(value[5:7], 16)


def _format_rgb(colour: RGB) -> str:
    red, green, blue = colour
    return f"#{red:02x}{green:02x}{blue:02x}"


# Comparing with 240 colours takes long, and themes repeat their colours.
@cache
def _find_nearest(colour: RGB) -> RGB:
    """Return the visually nearest colour: the eye is most sensitive to green, least to blue."""
    weights = (0.3, 0.59, 0.11)

    def distance(candidate: RGB) -> float:
        return sum(
            weight * (one - two) ** 2
            for weight, one, two in zip(weights, colour, candidate, strict=True)
        )

    return min(_PALETTE, key=distance)


def _choose_tint(colour: RGB, side: str, *, is_dark: bool, is_word: bool) -> str:
    """Return the background of added or removed lines, or of their changed words,
    instead of a theme's colour.
    """
    # Themes for people who can't tell green from red have a blue background for additions.
    hue, _, saturation = rgb_to_hls(*(part / 255 for part in colour))
    is_blue = (
        _BLUE_HUES[0] <= hue <= _BLUE_HUES[1]
        and saturation >= _BLUE_MIN_SATURATION
        and side == "added"
    )
    tint = (_DARK_DIFF_TINTS if is_dark else _LIGHT_DIFF_TINTS)[
        "blue" if is_blue else _TINT_NAMES[side]
    ]
    return tint.word if is_word else tint.line


def name_colour(number: int) -> str:
    """Return a colour of the 256-colour palette by its number;
    the first 16 as names, as the terminal defines them.
    """
    if number < 16:
        return f"ansi_{'bright_' if number > 7 else ''}{_ANSI_NAMES[number % 8]}"
    return _format_rgb(_PALETTE[number - 16])
