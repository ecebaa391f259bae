"""`ProseStyles`: the Rich styles of the pieces of a Markdown text."""

from rich.segment import Segment
from rich.style import Style

from codeloop.tui.render.markdown.inline_parser import (
    ADDRESS,
    CODE,
    EMPHASIS,
    IMAGE,
    LINK,
    STRIKE,
    STRONG,
    Piece,
)
from codeloop.tui.themes.styles import Styles


class ProseStyles:
    """The styles of one kind of text, such as answers, or the model's thinking.

    `base`: the colour of plain text. `attributes`: those of all of the text, such as `italic`.
    `is_quiet`: links, code and emphasis have the colour of plain text, too.
    """

    def __init__(
        self,
        styles: Styles,
        base: str = "markdown_text",
        attributes: str = "",
        *,
        is_quiet: bool = False,
    ) -> None:
        self.styles = styles
        self.base = base
        self._attributes = attributes
        self._is_quiet = is_quiet
        self._cache: dict[tuple[str, int, str], Style] = {}

    def make_segments(
        self, pieces: list[Piece], colour: str = "", attributes: str = ""
    ) -> list[Segment]:
        """Return pieces as segments; `colour`: of plain text, instead of `base`;
        `attributes`: further ones.
        """
        base = colour or self.base
        all_attributes = f"{self._attributes} {attributes}".strip()
        segments: list[Segment] = []
        for piece in pieces:
            style = self._find_style(base, piece.markup, all_attributes)
            segments.append(Segment(piece.text, _add_link(style, piece) if piece.link else style))
        return segments

    def of(self, colour: str, attributes: str = "", on: str = "") -> Style:
        """Return a style of the theme; in quiet text, always in the colour of plain text."""
        return self.styles.of(
            self.base if self._is_quiet else colour, attributes or self._attributes, on
        )

    def _find_style(self, base: str, markup: int, attributes: str) -> Style:
        key = (base, markup, attributes)
        style = self._cache.get(key)
        if style is None:
            style = self._cache[key] = self._make_style(base, markup, attributes)
        return style

    def _make_style(self, base: str, markup: int, attributes: str) -> Style:
        colour = base
        # Emphasis has a colour of its own only in plain text, not in headings or quotations.
        if markup & STRONG:
            colour = "markdown_strong" if base == "markdown_text" else base
            attributes = f"{attributes} bold"
        if markup & EMPHASIS:
            colour = "markdown_emph" if base == "markdown_text" else colour
            attributes = f"{attributes} italic"
        if markup & STRIKE:
            attributes = f"{attributes} strike"
        if markup & CODE:
            colour = "markdown_code"
        if markup & LINK:
            colour = "markdown_link_text"
            attributes = f"{attributes} underline"
        if markup & IMAGE:
            colour = "markdown_image_text"
        if markup & ADDRESS:
            colour = "text_muted"
        return self.styles.of(base if self._is_quiet else colour, attributes.strip())


def _add_link(style: Style, piece: Piece) -> Style:
    """Return the style of a piece that leads to an address, so that a click on it opens that."""
    style += Style(meta={"link": piece.link})
    # Terminals open only addresses; other links, such as paths, are for the program itself.
    is_web = piece.link.startswith(("http://", "https://")) and piece.markup & LINK
    return style + Style(link=piece.link) if is_web else style
