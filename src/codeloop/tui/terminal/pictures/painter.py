"""Draws pictures over the cells of the screen: after the text of their rows,
and again when that text is rewritten.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from codeloop.tui.terminal.screen_updates import ChangedPartsUpdate

ScreenCell = tuple[int, int]
"""A cell of the screen: its row and its column, from 0."""
# An estimate: before the terminal has probably drawn what it got, it gets no further pictures.
MAX_OUTPUT_RATE = 1_000_000
"""Characters of pictures that are written per second."""
SETTLE_SECONDS = 0.2
"""How long a picture must not move before it is drawn again,
if it is too large to be drawn while it scrolls.
"""


class PictureSlice(Struct, frozen=True):
    """One row of a picture. `drawing`: the output that draws it;
    `key`: equal for slices with the same pixels.
    """

    key: object
    drawing: str
    columns: int


class Painter:
    """Tracks which slices of pictures are on the screen, and draws missing ones.

    `list_slices` returns the slices that should be on the screen, by their first cell;
    `paint_later` has `TerminalApp.paint` called after a number of seconds.
    """

    def __init__(
        self,
        list_slices: Callable[[], Mapping[ScreenCell, PictureSlice]],
        paint_later: Callable[[float], None],
    ) -> None:
        self._list_slices = list_slices
        self._paint_later = paint_later
        self._slices: dict[ScreenCell, PictureSlice] = {}
        """The slices that are on the screen."""
        self._free_at = 0.0
        """When the terminal will probably have drawn the output so far (monotonic seconds)."""

    def mark_erased(self, update: Any) -> None:
        """Note that an update of the screen is written, which erases the slices that it covers."""
        if not self._slices:
            return
        # Only this kind of update lists the cells that it writes.
        if not isinstance(update, ChangedPartsUpdate):
            self._slices.clear()
            return
        parts = list(update.list_parts())
        # A copy, since slices are removed meanwhile.
        for (line, column), picture_slice in [*self._slices.items()]:
            end = column + picture_slice.columns
            if any(part.line == line and part.start < end and part.end > column for part in parts):
                del self._slices[line, column]

    def draw_missing(self) -> str:
        """Return the output that draws the slices which are missing on the screen;
        "": none is, or it is too early.
        """
        missing_slices = {
            cell: picture_slice
            for cell, picture_slice in self._list_slices().items()
            if self._slices.get(cell) != picture_slice
        }
        if not missing_slices:
            return ""
        now = time.monotonic()
        if now < self._free_at:
            self._paint_later(max(self._free_at - now, SETTLE_SECONDS))
            return ""
        self._slices.update(missing_slices)
        drawings = "".join(
            f"\x1b[{line + 1};{column + 1}H{missing_slices[line, column].drawing}"
            for line, column in sorted(missing_slices)
        )
        self._free_at = now + len(drawings) / MAX_OUTPUT_RATE
        # The cursor is saved and restored around the drawings, which leave it behind a picture.
        return f"\x1b7{drawings}\x1b8"
