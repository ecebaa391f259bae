"""The base of the prompt's editor that handles the mouse: clicks, drags and the wheel."""

from typing import Literal

from textual import events
from textual.geometry import Offset

from codeloop.tui.widgets.base_widgets import CachedWidget, get_app

ClickUnit = Literal["character", "word", "line"]
"""How much a click selects."""


class MouseTextWidget(CachedWidget):
    """Calls `move_cursor_to` for clicks and drags, `scroll_rows` for the wheel; subclasses define both."""

    # Textual's own selection would be drawn over the editor's.
    ALLOW_SELECT = False

    def move_cursor_to(self, at: Offset, *, select: bool, unit: ClickUnit = "character") -> None:
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
            self.move_cursor_to(event.get_content_offset_capture(self), select=event.shift)
            # Captured, so that a selection can be dragged beyond the edges of the editor.
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select while the button is held."""
        if get_app(self).mouse_captured is self:
            self.move_cursor_to(event.get_content_offset_capture(self), select=True)

    def on_mouse_up(self) -> None:
        """End a selection."""
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Select a word with a double click, the line with a triple click, and so on by turns."""
        if event.chain > 1 and event.button == 1:
            unit = "line" if event.chain % 2 else "word"
            self.move_cursor_to(event.get_content_offset_capture(self), select=True, unit=unit)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up, or let the parent scroll."""
        if self.scroll_rows(-1):
            event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down, or let the parent scroll."""
        if self.scroll_rows(1):
            event.stop()
