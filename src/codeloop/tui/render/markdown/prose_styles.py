"""`ProseStyles`: the Rich styles of the pieces of a Markdown text."""

from rich.segment import Segment
from rich.style import Style

from codeloop.tui.render.markdown.inline_parser import ADDRESS, CODE, EMPHASIS, IMAGE, LINK, STRIKE, STRONG, Piece
from codeloop.tui.themes.styles import Styles


class ProseStyles:
    """The styles of one kind of text, such as answers, or the model's thinking.

    `base`: the colour of plain text; `look`: attributes of all of the text. `is_quiet`: all of it has this colour.
    """

    def __init__(self, styles: Styles, base: str = "markdown_text", look: str = "", *, is_quiet: bool = False) -> None:
        self.styles = styles
        self.base = base
        self._look = look
        self._is_quiet = is_quiet
        self._cache: dict[tuple[str, int, str], Style] = {}

    def make_segments(self, pieces: list[Piece], colour: str = "", look: str = "") -> list[Segment]:
        """Return pieces as segments; `colour`: of plain text, instead of `base`; `look`: further attributes."""
        base, more = colour or self.base, f"{self._look} {look}".strip()
        return [
            Segment(
                piece.text,
                self._make_link_style(piece, base, more) if piece.link else self._find_style(base, piece.looks, more),
            )
            for piece in pieces
        ]

    def of(self, colour: str, look: str = "", on: str = "") -> Style:
        """Return a style of the theme; in quiet text, always in the colour of plain text."""
        return self.styles.of(self.base if self._is_quiet else colour, look or self._look, on)

    def _make_link_style(self, piece: Piece, base: str, look: str) -> Style:
        style = self._find_style(base, piece.looks, look) + Style(meta={"link": piece.link})
        # Terminals open only addresses; other links, such as paths, are for the program itself.
        is_web = piece.link.startswith(("http://", "https://")) and piece.looks & LINK
        return style + Style(link=piece.link) if is_web else style

    def _find_style(self, base: str, looks: int, look: str) -> Style:
        key = (base, looks, look)
        style = self._cache.get(key)
        if style is None:
            style = self._cache[key] = self._make_style(base, looks, look)
        return style

    def _make_style(self, base: str, looks: int, look: str) -> Style:
        colour, words = base, look
        if looks & STRONG:
            colour, words = "markdown_strong" if base == "markdown_text" else base, f"{words} bold"
        if looks & EMPHASIS:
            colour, words = "markdown_emph" if base == "markdown_text" else colour, f"{words} italic"
        if looks & STRIKE:
            words = f"{words} strike"
        if looks & CODE:
            colour = "markdown_code"
        if looks & LINK:
            colour, words = "markdown_link_text", f"{words} underline"
        if looks & IMAGE:
            colour = "markdown_image_text"
        if looks & ADDRESS:
            colour = "text_muted"
        return self.styles.of(base if self._is_quiet else colour, words.strip())
