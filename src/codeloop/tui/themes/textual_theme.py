"""Turns a theme into one of Textual, for the colours of its widgets and style sheets."""

from typing import cast

import msgspec
from textual.theme import Theme

from codeloop.tui.themes.theme import ColourTheme

# Middle grey, halfway between black and white to the eye, reflects 18 % of the light.
_MIDDLE_GREY_LUMINANCE = 0.18


def make_textual_theme(theme: ColourTheme, name: str) -> Theme:
    """Return a theme for Textual's widgets: each colour is a CSS variable (`$text-muted`,
    `$background-panel`).
    """
    variables = {
        key.replace("_", "-"): value or "ansi_default"
        for key, value in cast("dict[str, str]", msgspec.structs.asdict(theme)).items()
    }
    # Textual blends colours, which it can't with those of the terminal, whose values are unknown.
    is_ansi = any(
        not value or value.startswith("ansi_")
        for value in (theme.background, theme.text, theme.primary)
    )
    widget_variables = {
        "ansi-background": variables["background"],
        "ansi-foreground": variables["text"],
        "border": variables["border"],
        "scrollbar": variables["border-subtle"],
        "scrollbar-hover": variables["border"],
        "scrollbar-active": variables["border-active"],
        "scrollbar-background": variables["background"],
        "scrollbar-background-hover": variables["background"],
        "scrollbar-background-active": variables["background"],
        "scrollbar-corner-color": variables["background"],
        "input-cursor-background": variables["text"],
        "input-cursor-foreground": variables["background"],
        "block-cursor-background": variables["primary"],
        "block-cursor-foreground": variables["background"],
    }
    # A cursor in the terminal's colours might be invisible.
    reversed_cursor = {"input-cursor-text-style": "reverse", "block-cursor-text-style": "reverse"}
    return Theme(
        name=name,
        primary=variables["primary"],
        secondary=variables["secondary"],
        warning=variables["warning"],
        error=variables["error"],
        success=variables["success"],
        accent=variables["accent"],
        foreground=variables["text"],
        background=variables["background"],
        surface=variables["background"],
        panel=variables["background-panel"],
        dark=is_dark(theme),
        variables={**variables, **widget_variables, **(reversed_cursor if is_ansi else {})},
        ansi=is_ansi,
    )


def is_dark(theme: ColourTheme) -> bool:
    """Return whether a theme has light text on a dark background;
    True if the background is the terminal's.
    """
    return (
        not theme.background.startswith("#")
        or measure_luminance(theme.background) < _MIDDLE_GREY_LUMINANCE
    )


def measure_luminance(colour: str) -> float:
    """Return the relative luminance of `#rrggbb`, 0 to 1, as WCAG defines it."""
    levels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in levels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
