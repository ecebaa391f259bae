"""Bases of the widgets of the main screen, which cost nothing while other widgets change.

Textual asks every widget near a change for its rows, thirty times a second while a model writes. So
containers draw nothing, and the other widgets cache their rows.
"""

from collections.abc import Callable
from operator import attrgetter

from rich.style import Style
from textual import events
from textual.app import App
from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

_COMMAND_META_ENTRY = "run"
"""The entry of a style's metadata that names the command to run when words
in this style are clicked.
"""

get_app: Callable[[Widget], App[None]] = attrgetter("app")
"""Returns the app of a widget, typed, unlike Textual's own property."""


def find_faint_style(widget: Widget, part: str, base: Style) -> Style:
    """Return the style of a muted part, dimmed where a theme has no colour for it."""
    style = base + widget.get_component_rich_style(part, partial=True)
    return style + Style(dim=True) if style.color is None or style.color.is_default else style


class EmptyWidget(Widget):
    """A container that draws nothing itself, so that widgets below stay visible."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return no rows at all."""
        # Textual's own version makes blank rows of the full size,
        # which the rows of the children then cover.
        del crop
        return []


class CachedWidget(Widget):
    """A widget that keeps its rows until it is refreshed."""

    _cached_rows: tuple[Region, list[Strip]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows, from the cache if nothing has changed."""
        if self._cached_rows is None or self._cached_rows[0] != crop:
            self._cached_rows = crop, super().render_lines(crop)
        return self._cached_rows[1]

    def notify_style_update(self) -> None:
        """Redraw in other colours."""
        self._cached_rows = None
        super().notify_style_update()

    # A private method of Textual: each refresh calls it,
    # whether of the whole widget or of a region.
    def _set_dirty(self, *regions: Region) -> None:
        self._cached_rows = None
        super()._set_dirty(*regions)


def run_on_click(style: Style, command: str, words: str = "") -> Style:
    """Return a style for words that run a command when clicked;
    `words`: what would be typed after the command.
    """
    return style + Style(meta={_COMMAND_META_ENTRY: f"{command} {words}"})


def find_clicked_command(event: events.Click) -> tuple[str, str] | None:
    """Return the id of the command that clicked words run, and its words, as given to
    `run_on_click`; None: none.
    """
    command, _, words = str(event.style.meta.get(_COMMAND_META_ENTRY, "")).partition(" ")
    return (command, words) if command else None


# Textual's container comes first in both: Textual takes the default styles from the
# first base of a class only.
class PlainHorizontal(Horizontal, EmptyWidget):
    """A horizontal container that draws nothing itself."""


class PlainVertical(Vertical, EmptyWidget):
    """A vertical container that draws nothing itself."""
