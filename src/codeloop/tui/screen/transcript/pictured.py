"""Which rows of pictures are on the screen."""

from textual.geometry import Region
from textual.message import Message

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.pictures import PictureRow, PictureStore
from codeloop.tui.screen.transcript.scroll_bar import PlainlyBarredView


class PicturedView(PlainlyBarredView):
    """Knows the rows of pictures that are on the screen, and the words above them; `pictures`: by row of the screen."""

    class PictureSeen(Message):
        """A picture is in sight that is not drawn, perhaps because nobody knows whether the terminal can."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures: dict[int, PictureRow] = {}

    def look(self, y: int, row: Row, store: PictureStore | None) -> Row:
        """Take in which row is on a row of the screen; return what is written on it."""
        if not isinstance(row, PictureRow):
            if self.pictures:
                self.pictures.pop(y, None)
            return row
        if store is None and not self.pictures:
            self.post_message(self.PictureSeen().set_sender(self))  # who draws it is not who says it
        self.pictures[y] = row
        if row.place is None or store is None:
            return row
        store.want(row.place)
        return store.drawn(row)

    def draw_pictures(self) -> None:
        """Write the rows of pictures anew: more of these can be drawn, or fewer."""
        for y in self.pictures:
            self.refresh(Region(0, y, self.size.width, 1))


def is_drawn_on(row: Row) -> bool:
    """Return whether a picture is drawn on a row."""
    return isinstance(row, PictureRow) and row.place is not None
