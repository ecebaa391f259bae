"""`ReadingScreen`: the dialog that shows a long text on the whole screen."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from codeloop.tui.dialogs.parts.dialog import Dialog, GetStyles
from codeloop.tui.dialogs.parts.dialog_rows import draw_keys, draw_title
from codeloop.tui.render.canvas import Row
from codeloop.tui.widgets.rows_view import RowsView

_FRAME_ROWS = 8
"""Rows of the screen besides the text: title, keys, margins."""
# As in pagers such as less.
_ROWS_BY_KEY = {"up": -1.0, "k": -1.0, "down": 1.0, "j": 1.0}
_PAGES_BY_KEY = {"pageup": -1, "pagedown": 1, "space": 1}


class ReadingScreen(Dialog[None]):
    """Shows rows until a key closes it, without a result.
    `draw_rows` returns the rows for a width in cells.
    """

    closing_keys: ClassVar[Sequence[tuple[str, str]]] = ()
    """Keys besides Escape, Enter and q that close the screen, with their labels."""

    def __init__(
        self, title: str, draw_rows: Callable[[int], Sequence[Row]], get_styles: GetStyles
    ) -> None:
        super().__init__(get_styles)
        self._title = title
        self._draw_rows = draw_rows

    def compose(self) -> ComposeResult:
        """Yield the title, the rows, and the keys."""
        with Vertical(id="dialog-box"):
            yield RowsView("reading-title")
            yield RowsView("reading-rows")
            yield RowsView("reading-keys")

    def draw(self) -> None:
        """Redraw everything."""
        styles, outer = self.get_styles(), self.compute_box_width(self.size.width)
        width = outer - 4
        self.query_one("#dialog-box").styles.width = outer
        self.query_one("#reading-title", RowsView).show(
            [draw_title(self._title, styles, width), []], 2
        )
        # One cell less, for the scroll bar.
        rows = self._draw_rows(width - 1)
        self.query_one("#reading-rows", RowsView).show(
            rows, min(len(rows), max(self.size.height - _FRAME_ROWS, 3))
        )
        keys = draw_keys([("↑↓ pgup pgdn", "scroll"), *self.closing_keys], styles, width)
        self.query_one("#reading-keys", RowsView).show([[], *keys], len(keys) + 1)

    def on_key(self, event: events.Key) -> None:
        """Scroll, or close."""
        event.stop()
        view = self.query_one("#reading-rows", RowsView)
        if event.key in {"escape", "enter", "q", *(key for key, _ in self.closing_keys)}:
            self.dismiss(None)
        elif event.key in _ROWS_BY_KEY:
            view.scroll_relative(y=_ROWS_BY_KEY[event.key], animate=False)
        elif event.key in _PAGES_BY_KEY:
            view.scroll_relative(y=_PAGES_BY_KEY[event.key] * (view.size.height - 1), animate=False)
