"""A dialog that shows a long text on the whole screen, for reading."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from codeloop.tui.dialogs.parts.dialog import Colours, Dialog, draw_keys, draw_title
from codeloop.tui.render.canvas import Row
from codeloop.tui.widgets.rows_view import RowsView

_OTHER_ROWS = 8
"""Rows of the screen besides the text: title, keys, margins."""
_SCROLLS = {"up": -1.0, "k": -1.0, "down": 1.0, "j": 1.0}
_PAGES = {"pageup": -1, "pagedown": 1, "space": 1}


class ReadingScreen(Dialog[None]):
    """Shows rows until a key closes it, without a result. `rows` returns the rows for a width in cells."""

    closing_keys: ClassVar[Sequence[tuple[str, str]]] = ()
    """Keys besides Escape, Enter and q that close the screen, with their labels."""

    def __init__(self, title: str, rows: Callable[[int], Sequence[Row]], colours: Colours) -> None:
        super().__init__(colours)
        self._title = title
        self._rows = rows

    def compose(self) -> ComposeResult:
        """Yield the title, the rows, and the keys."""
        with Vertical(id="dialog-box"):
            yield RowsView("reading-title")
            yield RowsView("reading-rows")
            yield RowsView("reading-keys")

    def draw(self) -> None:
        """Redraw everything."""
        styles, outer = self.colours(), self.box_width(self.size.width)
        width = outer - 4
        self.query_one("#dialog-box").styles.width = outer
        self.query_one("#reading-title", RowsView).show([draw_title(self._title, styles, width), []], 2)
        rows = self._rows(width - 1)
        self.query_one("#reading-rows", RowsView).show(rows, min(len(rows), max(self.size.height - _OTHER_ROWS, 3)))
        keys = draw_keys([("↑↓ pgup pgdn", "scroll"), *self.closing_keys], styles, width)
        self.query_one("#reading-keys", RowsView).show([[], *keys], len(keys) + 1)

    def on_key(self, event: events.Key) -> None:
        """Scroll, or close."""
        event.stop()
        view = self.query_one("#reading-rows", RowsView)
        if event.key in {"escape", "enter", "q", *(key for key, _ in self.closing_keys)}:
            self.dismiss(None)
        elif event.key in _SCROLLS:
            view.scroll_relative(y=_SCROLLS[event.key], animate=False)
        elif event.key in _PAGES:
            view.scroll_relative(y=_PAGES[event.key] * (view.size.height - 1), animate=False)
