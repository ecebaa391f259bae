"""`Styles`: the Rich styles of a theme, by the names of its colours."""

from rich.style import Style

from codeloop.tui.themes.theme import ColourTheme

_FAINT_COLOURS = frozenset(
    {
        "text_muted",
        "border",
        "border_subtle",
        "diff_line_number",
        "markdown_block_quote",
        "syntax_comment",
    }
)
"""The muted colours: where a theme leaves one to the terminal,
the terminal's text colour is dimmed instead.
"""


class Styles:
    """The styles of a theme; each is created once."""

    def __init__(self, theme: ColourTheme) -> None:
        self.theme = theme
        self._cache: dict[tuple[str, str, str], Style] = {}

    def of(self, colour: str, attributes: str = "", on: str = "") -> Style:
        """Return the style of a text in a colour of the theme, such as `text_muted`,
        on another colour of it.

        `attributes`: as Rich writes them, such as `bold italic`.
        """
        # Creating a style is slow, and every drawn segment needs one.
        key = (colour, attributes, on)
        style = self._cache.get(key)
        if style is None:
            colour_name = self._resolve_colour(colour)
            faint = " dim" if colour_name is None and colour in _FAINT_COLOURS else ""
            style = self._cache[key] = Style.parse(
                f"{attributes}{faint}".strip() or "none"
            ) + Style(color=colour_name, bgcolor=self._resolve_colour(on))
        return style

    def _resolve_colour(self, colour: str) -> str | None:
        """Return a colour of the theme as Rich names it; None: the terminal's own."""
        value = getattr(self.theme, colour) if colour else ""
        return value.removeprefix("ansi_") or None
