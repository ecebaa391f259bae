"""Reserves rows of the conversation for pictures;
the pictures themselves are drawn later, by a `PictureStore`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style

from codeloop.schema.bounds.tui import PICTURE_PIXELS
from codeloop.schema.part import FilePart
from codeloop.tui.render.attachments import read_picture_size


class CellSize(NamedTuple):
    """The size of a cell of the terminal, in pixels."""

    width: int
    height: int


DEFAULT_CELL = CellSize(width=10, height=20)
"""The usual size of a cell, for terminals that do not report it."""


class PictureBox(Struct, frozen=True):
    """The size of a picture on the screen, in columns and rows of cells;
    `cell`: the size of one.
    """

    columns: int
    rows: int
    cell: CellSize = DEFAULT_CELL

    def fit(self, width: int, height: int) -> "PictureBox":
        """Return the largest box within this one that has the shape of a picture;
        `width`, `height`: its pixels.

        A small picture is not enlarged.
        """
        room_width, room_height = self.columns * self.cell.width, self.rows * self.cell.height
        scale = min(room_width / max(width, 1), room_height / max(height, 1), 1.0)
        columns = max(round(width * scale / self.cell.width), 1)
        rows = max(round(height * scale / self.cell.height), 1)
        return PictureBox(min(columns, self.columns), min(rows, self.rows), self.cell)


class PictureSpace(Struct, frozen=True):
    """One row of the space for a picture of `columns` by `rows` cells.

    `part_id`: the id of its attachment; `line`: which of its rows, from 0;
    `column`: where it begins in the row.
    """

    part_id: str
    columns: int
    rows: int
    line: int = 0
    column: int = 0

    @property
    def key(self) -> tuple[str, int, int]:
        """The key shared by all rows of a picture."""
        return self.part_id, self.columns, self.rows


class PictureRow(list[Segment]):
    """A row that a picture is drawn on, or if `space` is None, its caption."""

    # A list, so that it can be used as any other `Row`; only the transcript asks for its `space`.

    def __init__(self, segments: Iterable[Segment], space: PictureSpace | None = None) -> None:
        super().__init__(segments)
        self.space = space
        # A row is requested with every frame; the same object as before shows
        # that nothing has changed.
        self.cache: tuple[object, list[Segment]] | None = None
        """The picture last drawn on the row, and its segments."""


class PictureStore(Protocol):
    """The pictures of a terminal that can draw some. `room`: the largest size of a picture."""

    room: PictureBox

    def request(self, space: PictureSpace) -> None:
        """Request that a visible picture be drawn."""
        ...

    def draw_row(self, row: PictureRow) -> list[Segment]:
        """Return the segments of a picture's row; while they do not change, the same object."""
        ...


def is_picture(file: FilePart) -> bool:
    """Return whether an attachment is a picture."""
    return file.mime.startswith("image/")


def reserve_rows(
    file: FilePart, store: PictureStore | None, room: int, before: Sequence[Segment], fill: Style
) -> list[PictureRow]:
    """Return the rows that are reserved for a picture; none if it can't be drawn.
    A click on them opens the picture.

    `room`: the width of the rows in cells; `before`: the segments at their start;
    `fill`: the style of the rest.
    """
    if store is None or not is_picture(file):
        return []
    width, height = read_picture_size(file)
    # Without a size, no room can be reserved; pictures with too many pixels
    # would not be decoded later.
    if not 0 < width * height <= PICTURE_PIXELS.value:
        return []
    column = sum(segment.cell_length for segment in before)
    columns = max(min(store.room.columns, room - column), 1)
    box = PictureBox(columns, store.room.rows, store.room.cell).fit(width, height)
    blank = Segment(" " * box.columns, fill + Style(meta={"image": file.id}))
    row = [*before, blank, Segment(" " * (room - column - box.columns), fill)]
    return [
        PictureRow(row, PictureSpace(file.id, box.columns, box.rows, line, column))
        for line in range(box.rows)
    ]
