"""Widgets that cost nothing while others change: those that only hold others, and those that keep what they have drawn.

The library takes styles from the first base of a class only.
The library asks every widget near a change for its rows, thirty times a second while a model writes.
"""

from collections.abc import Callable
from operator import attrgetter

from rich.style import Style
from textual import events
from textual.app import App
from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

_RUNS = "run"

app_of: Callable[[Widget], App[None]] = attrgetter("app")
"""Returns the app of a widget; the library's own property leaves the app's type open."""


def faint_style(widget: Widget, part: str, base: Style) -> Style:
    """Return the style of a part that stays behind the rest, also where a theme has no colour for it."""
    style = base + widget.get_component_rich_style(part, partial=True)
    return style + Style(dim=True) if style.color is None or style.color.is_default else style


class EmptyWidget(Widget):
    """Draws nothing: what is below it shows where its children leave room."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return no rows at all."""
        del crop
        return []


class SteadyWidget(Widget):
    """Keeps its rows until it is refreshed."""

    _kept: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows, those from before if nothing has changed."""
        if self._kept is None or self._kept[0] != crop:
            self._kept = crop, super().render_lines(crop)
        return self._kept[1]

    def notify_style_update(self) -> None:
        """Draw anew in other colours."""
        self._kept = None
        super().notify_style_update()

    def _set_dirty(self, *regions: Region) -> None:
        self._kept = None
        super()._set_dirty(*regions)


class CommandWidget(SteadyWidget):
    """Has words that run a command when they are clicked: `runs` makes them."""

    class Clicked(Message):
        """Words were clicked that run the command with this id."""

        def __init__(self, command: str, words: str) -> None:
            super().__init__()
            self.command = command
            self.words = words

    def on_click(self, event: events.Click) -> None:
        """Have the command run."""
        if called := event.style.meta.get(_RUNS):
            command, _, words = str(called).partition(" ")
            self.post_message(self.Clicked(command, words))


def runs(style: Style, command: str, words: str = "") -> Style:
    """Return a style of words that run a command when they are clicked."""
    return style + Style(meta={_RUNS: f"{command} {words}"})


class BareHorizontal(Horizontal, EmptyWidget):
    """Its children stand beside each other."""


class BareVertical(Vertical, EmptyWidget):
    """Its children stand below each other."""
