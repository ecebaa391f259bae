"""A screen for one widget or dialog at a time, in the colours of a small theme of its own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.theme import Theme
from textual.widget import Widget

from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.theme import ColourTheme

DARK = {"background": "#101216", "background_panel": "#181b21", "background_element": "#262a33", "text": "#d8dce4"}
LIGHT = {"background": "#fbfbf9", "background_panel": "#f1f1ed", "background_element": "#e2e2dc", "text": "#23262b"}
SHARED = {
    "text_muted": "#7d8594",
    "primary": "#4f8fd9",
    "warning": "#c98a1b",
    "error": "#d2504c",
    "success": "#4c9f57",
    "diff_added": "#4c9f57",
    "diff_removed": "#d2504c",
    "border": "#59606d",
}


def styles(*, dark: bool = True) -> Styles:
    given = SHARED | (DARK if dark else LIGHT)
    return Styles(ColourTheme(**{name: given.get(name, given["text"]) for name in ColourTheme.__struct_fields__}))


class Stage(App[None]):
    """Holds some widgets; `styles_now` are the colours in use."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, *widgets: Widget, dark: bool = True) -> None:
        super().__init__()
        self.colours = styles(dark=dark)
        self._widgets = widgets
        theme = self.colours.theme
        names = {name.replace("_", "-"): getattr(theme, name) for name in theme.__struct_fields__}
        self.register_theme(
            Theme(
                name="test",
                primary=theme.primary,
                foreground=theme.text,
                background=theme.background,
                surface=theme.background,
                panel=theme.background_panel,
                dark=dark,
                variables=names,
            )
        )
        self.theme = "test"

    def compose(self) -> ComposeResult:
        yield from self._widgets

    def shown(self) -> str:
        """Return the text of the screen, without blanks at the ends of its rows."""
        strips = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips).rstrip()


@asynccontextmanager
async def staged(app: Stage, size: tuple[int, int] = (80, 24)) -> AsyncGenerator[Pilot[None]]:
    """Run the app without a terminal."""
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot
