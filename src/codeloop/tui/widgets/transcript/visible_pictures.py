"""`VisiblePictures` tracks on which rows of the conversation's view pictures are shown."""

from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.picture_rows import PictureRow, PictureStore


# The namespace names the handler of this message as if the class was defined within `Transcript`.
class PictureSeen(Message, namespace="transcript"):
    """A visible picture is not drawn, perhaps because the terminal was not queried yet."""


class VisiblePictures:
    """The rows of pictures, and of their captions, that are visible in a view. `rows`: by the row of the view."""

    def __init__(self, view: Widget) -> None:
        self.rows: dict[int, PictureRow] = {}
        self._view = view

    def record_row(self, y: int, row: Row, store: PictureStore | None) -> Row:
        """Note which page row is shown on row `y` of the view, and return it as it is drawn.

        Without a store, `PictureSeen` is posted for the first picture; its handler creates the store.
        """
        if not isinstance(row, PictureRow):
            if self.rows:
                self.rows.pop(y, None)
            return row
        if store is None and not self.rows:
            self._view.post_message(PictureSeen().set_sender(self._view))
        self.rows[y] = row
        if row.space is None or store is None:
            return row
        store.request(row.space)
        return store.draw_row(row)

    def redraw(self) -> None:
        """Redraw the rows of pictures, after the pictures that can be drawn have changed."""
        for y in self.rows:
            self._view.refresh(Region(0, y, self._view.size.width, 1))


def has_picture(row: Row) -> bool:
    """Return whether a picture is drawn on a row, which highlights would erase."""
    return isinstance(row, PictureRow) and row.space is not None
