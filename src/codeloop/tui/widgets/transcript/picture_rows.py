"""Tracks the picture rows on the screen."""

from textual.geometry import Region
from textual.widget import Widget

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.pictures import PictureRow, PictureStore
from codeloop.tui.widgets.transcript.messages import PictureSeen


class PictureRows:
    """The visible picture rows of a view, and captions. `rows`: by screen row."""

    def __init__(self, view: Widget) -> None:
        self.rows: dict[int, PictureRow] = {}
        self._view = view

    def take(self, y: int, row: Row, store: PictureStore | None) -> Row:
        """Record the row shown on a screen row; return its segments."""
        if not isinstance(row, PictureRow):
            if self.rows:
                self.rows.pop(y, None)
            return row
        if store is None and not self.rows:
            self._view.post_message(PictureSeen().set_sender(self._view))  # the store draws it, not the caller
        self.rows[y] = row
        if row.place is None or store is None:
            return row
        store.request(row.place)
        return store.draw_row(row)

    def draw(self) -> None:
        """Rewrite the picture rows, after more or fewer can be drawn."""
        for y in self.rows:
            self._view.refresh(Region(0, y, self._view.size.width, 1))


def is_drawn_on(row: Row) -> bool:
    """Return whether a picture is drawn on a row, which highlights would erase."""
    return isinstance(row, PictureRow) and row.place is not None
