"""Fits a theme to terminals with 256 colours, so that colours with different meanings stay distinct."""

from colorsys import rgb_to_hls
from functools import cache

import msgspec

from codeloop.tui.themes.theme import ColourTheme

# They replace a theme's faint tints, whose nearest palette colour would be the same grey for additions and removals.
_DIFF_TINTS = {
    "green": (("#005f00", "#008700"), ("#d7ffd7", "#afffaf")),
    "red": (("#5f0000", "#870000"), ("#ffd7d7", "#ffafaf")),
    "blue": (("#00005f", "#0000af"), ("#d7d7ff", "#afafff")),
}
"""The backgrounds of lines and of changed words in diffs, in dark and in light mode."""
_TINT_NAMES = {"added": "green", "removed": "red"}
_BLUE_HUES, _BLUE_MIN_SATURATION = (0.55, 0.72), 0.25
"""The range of hues, and the saturation from which a theme's background of additions counts as blue; both 0 to 1."""
_FAINT_COLOURS = ("text_muted", "diff_line_number", "diff_context", "syntax_comment", "markdown_block_quote")
"""Muted text colours that are used on diff backgrounds, which are stronger in this palette than in the theme."""
# On the strong backgrounds of this palette, a darker grey would be hard to read.
_MIN_FAINT_LEVEL = 168
"""The level (0 to 255) of the grey that replaces darker ones of `_FAINT_COLOURS` in dark mode."""
_CUBE_LEVELS = (0, 95, 135, 175, 215, 255)
"""The levels of red, green and blue in the palette's cube of 216 colours; 24 greys follow them."""
RGB = tuple[int, int, int]
_CUBE: tuple[RGB, ...] = tuple(
    (red, green, blue) for red in _CUBE_LEVELS for green in _CUBE_LEVELS for blue in _CUBE_LEVELS
)
_GREYS: tuple[RGB, ...] = tuple((level, level, level) for level in range(8, 239, 10))


def fit_palette(theme: ColourTheme, *, is_dark: bool) -> ColourTheme:
    """Return a theme in the 240 colours that all 256-colour terminals share."""
    colours: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(theme).items():
        if not str(value).startswith("#"):
            continue
        colour = _parse_rgb(value)
        if is_dark and name in _FAINT_COLOURS and sum(colour) < 3 * _MIN_FAINT_LEVEL:
            colour = (_MIN_FAINT_LEVEL, _MIN_FAINT_LEVEL, _MIN_FAINT_LEVEL)
        side = next((side for side in _TINT_NAMES if side in name), "")
        if side and (name.endswith("_bg") or "highlight" in name):
            colours[name] = _choose_tint(colour, side, is_dark=is_dark, is_word="highlight" in name)
        else:
            red, green, blue = _find_nearest(colour)
            colours[name] = f"#{red:02x}{green:02x}{blue:02x}"
    return msgspec.structs.replace(theme, **colours)


def _parse_rgb(value: str) -> RGB:
    return int(value[1:3], 16), int(value[3:5], 16), int(value[5:7], 16)


# Comparing with 240 colours takes long, and themes repeat their colours.
@cache
def _find_nearest(colour: RGB) -> RGB:
    """Return the visually nearest colour: the eye is most sensitive to green, least to blue."""
    weights = (0.3, 0.59, 0.11)

    def distance(candidate: RGB) -> float:
        return sum(weight * (one - two) ** 2 for weight, one, two in zip(weights, colour, candidate, strict=True))

    return min((*_CUBE, *_GREYS), key=distance)


def _choose_tint(colour: RGB, side: str, *, is_dark: bool, is_word: bool) -> str:
    """Return the background of added or removed lines, or of their changed words, for a theme's colour of it."""
    # Themes for people who can't tell green from red have a blue background for additions.
    hue, _, saturation = rgb_to_hls(*(part / 255 for part in colour))
    is_blue = _BLUE_HUES[0] <= hue <= _BLUE_HUES[1] and saturation >= _BLUE_MIN_SATURATION and side == "added"
    return _DIFF_TINTS["blue" if is_blue else _TINT_NAMES[side]][0 if is_dark else 1][is_word]
