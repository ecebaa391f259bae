"""Which rows of pictures are on the screen."""

from textual.geometry import Region
from textual.widget import Widget

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.pictures import PictureRow, PictureStore
from codeloop.tui.widgets.transcript.messages import PictureSeen


class PictureRows:
    """The rows of pictures of a view that are in sight, and the words above them. `rows`: by the row of the screen."""

    def __init__(self, view: Widget) -> None:
        self.rows: dict[int, PictureRow] = {}
        self._view = view

    def take(self, y: int, row: Row, store: PictureStore | None) -> Row:
        """Take in which row is on a row of the screen; return what is written on it."""
        if not isinstance(row, PictureRow):
            if self.rows:
                self.rows.pop(y, None)
            return row
        if store is None and not self.rows:
            self._view.post_message(PictureSeen().set_sender(self._view))  # who draws it is not who says it
        self.rows[y] = row
        if row.place is None or store is None:
            return row
        store.want(row.place)
        return store.draw_row(row)

    def draw(self) -> None:
        """Write the rows of pictures anew: more of these can be drawn, or fewer."""
        for y in self.rows:
            self._view.refresh(Region(0, y, self._view.size.width, 1))


def is_drawn_on(row: Row) -> bool:
    """Return whether a picture is drawn on a row: marks would take it away."""
    return isinstance(row, PictureRow) and row.place is not None
