"""A scrolling view of rows, for the request panel and dialogs; it draws only the visible ones."""

from collections.abc import Callable, Sequence

from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from codeloop.tui.render.canvas import Row
from codeloop.tui.widgets.base_widgets import get_app

KEY_META_ENTRY = "press"
"""The entry of a style's metadata that names the key to press when words
in this style are clicked.
"""


class RowsView(ScrollView, can_focus=False):
    """Shows rows. A click on one posts `Pressed`; choices are highlighted under the mouse."""

    COMPONENT_CLASSES = {"rows--hover"}

    DEFAULT_CSS = """
    RowsView {
        height: auto; width: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1;
        background: $background-panel; scrollbar-background: $background-panel;
        scrollbar-background-hover: $background-panel; scrollbar-background-active: $background-panel;
        & > .rows--hover { background: $background-element; }
    }
    """

    class Pressed(Message):
        """The row with this index was clicked."""

        def __init__(self, view: "RowsView", row: int) -> None:
            super().__init__()
            self.view = view
            self.row = row

    def __init__(self, view_id: str) -> None:
        super().__init__(id=view_id)
        self._rows: Sequence[Row] = ()
        self.is_drawn = False
        """Whether any of these rows were drawn."""
        self.is_choice: Callable[[int], bool] = lambda _row: False
        """Whether a row can be chosen with a click."""
        self._hover_row: int | None = None

    def show(self, rows: Sequence[Row], height: int) -> None:
        """Show rows in a widget `height` rows high; the others are reached by scrolling."""
        self._rows = rows
        self.is_drawn = False
        self.styles.height = height
        self.virtual_size = Size(self.size.width, len(rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one row of the screen."""
        number = y + self.scroll_offset.y
        row = self._rows[number] if number < len(self._rows) else []
        self.is_drawn = self.is_drawn or bool(row)
        if number == self._hover_row:
            row = [
                *Segment.apply_style(
                    row, self.get_component_rich_style("rows--hover", partial=True)
                )
            ]
        return Strip(row).adjust_cell_length(self.size.width).apply_style(self.rich_style)

    def scroll_to_row(self, first: int, last: int) -> None:
        """Scroll just enough to show these rows."""
        # `force`: the columns can't be scrolled (`overflow-x: hidden`),
        # and Textual would then decline.
        self.scroll_to_region(Region(0, first, 1, last - first + 1), animate=False, force=True)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show which choice the mouse is on."""
        row = event.y + self.scroll_offset.y
        self._set_hover_row(row if row < len(self._rows) and self.is_choice(row) else None)

    def on_leave(self) -> None:
        """Show that the mouse has left."""
        self._set_hover_row(None)

    def _set_hover_row(self, row: int | None) -> None:
        if row != self._hover_row:
            self._hover_row = row
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Press the clicked key, else post the clicked row."""
        # As a key, so that the hint of a key does the same as the key, whatever that is now.
        if key := event.style.meta.get(KEY_META_ENTRY):
            get_app(self).simulate_key(key)
            return
        row = event.y + self.scroll_offset.y
        if row < len(self._rows):
            self.post_message(self.Pressed(self, row))
