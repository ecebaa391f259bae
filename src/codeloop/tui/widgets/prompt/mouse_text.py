"""The base of a widget whose text is pointed at, selected and scrolled with the mouse."""

from typing import Literal

from textual import events
from textual.geometry import Offset

from codeloop.tui.widgets.base import CachedWidget, app_of

Unit = Literal["character", "word", "line"]


class MouseTextWidget(CachedWidget):
    """Calls `point` for clicks and drags, and `scroll_rows` for the wheel."""

    ALLOW_SELECT = False

    def point(self, at: Offset, *, select: bool, unit: Unit = "character") -> None:
        """Move the cursor to a cell; `select`: extend the selection to it.

        `unit`: select the word or line there.
        """
        raise NotImplementedError

    def scroll_rows(self, step: int) -> bool:
        """Scroll; return whether there is more than is shown."""
        raise NotImplementedError

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Move the cursor to the pointer."""
        if event.button == 1:
            self.point(event.get_content_offset_capture(self), select=event.shift)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select while the button is held."""
        if app_of(self).mouse_captured is self:
            self.point(event.get_content_offset_capture(self), select=True)

    def on_mouse_up(self) -> None:
        """End a selection."""
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Select more with each further click."""
        if event.chain > 1 and event.button == 1:
            unit = "line" if event.chain % 2 else "word"
            self.point(event.get_content_offset_capture(self), select=True, unit=unit)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up, or let the parent scroll."""
        if self.scroll_rows(-1):
            event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down, or let the parent scroll."""
        if self.scroll_rows(1):
            event.stop()
