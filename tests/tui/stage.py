"""A screen for one widget or dialog at a time, in a real theme."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.textual_theme import make_textual_theme
from codeloop.tui.themes.theme_loader import load_theme
from tests.support.scripted_project import wait_until

Given = TypeVar("Given")


class Stage(App[None]):
    """Holds some widgets, and shows dialogs above them; `results` are what those closed with."""

    ENABLE_COMMAND_PALETTE = False
    NOTIFICATION_TIMEOUT = 600.0  # a busy machine looks at them late

    def __init__(self, *widgets: Widget, theme: str = "codeloop", dark: bool = True) -> None:
        super().__init__()
        self._widgets = widgets
        self.styles_now = Styles(load_theme(theme, "dark" if dark else "light"))
        self.results: list[Any] = []
        self.register_theme(make_textual_theme(self.styles_now.theme, "staged"))
        self.theme = "staged"

    async def on_event(self, event: events.Event) -> None:
        if (
            not isinstance(event, events.Key) or self.screen_stack
        ):  # none: the app ends, as `TerminalUI` does
            await super().on_event(event)

    def compose(self) -> ComposeResult:
        yield from self._widgets

    def colours(self) -> Styles:
        return self.styles_now

    async def ask(self, screen: Screen[Given]) -> Given:
        return await self.push_screen_wait(screen)

    def open(self, dialog: Screen[Any]) -> None:
        self.push_screen(dialog, self.results.append)

    async def sees(self, *texts: str) -> None:
        """Wait until all of the texts are on the screen."""
        try:
            await wait_until(lambda: all(text in self.shown() for text in texts))
        except TimeoutError:
            raise AssertionError(f"{texts} not in\n{self.shown()}") from None

    def shown(self) -> str:
        """Return the text of the screen, without blanks at the ends of its rows."""
        strips = self.screen._compositor.render_strips()
        return "\n".join(
            "".join(segment.text for segment in strip).rstrip() for strip in strips
        ).rstrip()


@asynccontextmanager
async def staged(app: Stage, size: tuple[int, int] = (80, 24)) -> AsyncGenerator[Pilot[None]]:
    """Run the app without a terminal."""
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot
