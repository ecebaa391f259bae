"""Draws pictures over cells: after the text of their rows, and again when that text is rewritten."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from codeloop.tui.terminal.screen_updates import Changes

Spot = tuple[int, int]
"""A cell of the screen: its row and its column, from 0."""
RATE = 1_000_000
"""The most characters written a second while pictures move."""
SETTLE_SECONDS = 0.2
"""Seconds without movement before a picture that is too slow to follow scrolling is drawn again."""


class Slice(Struct, frozen=True):
    """A row of a picture: its output, and how many columns it takes. `name`: equal for equal pixels."""

    name: object
    drawing: str
    columns: int


class Painter:
    """Tracks the pictures on the screen, and draws missing ones.

    `list_slices` returns the slices that should be on the screen, by their first cell; `later` has `TerminalApp.paint`
    called in so many seconds.
    """

    def __init__(self, list_slices: Callable[[], Mapping[Spot, Slice]], later: Callable[[float], None]) -> None:
        self._list_slices = list_slices
        self._later = later
        self._slices: dict[Spot, Slice] = {}
        """The slices that are on the screen."""
        self._free_at = 0.0
        """The estimated time when the terminal has drawn earlier output."""

    def erase(self, update: Any) -> None:
        """Note an update of the screen, which erases the pictures that it covers."""
        if not self._slices:
            return
        if not isinstance(update, Changes):
            self._slices.clear()
            return
        spans = [(line, start, end) for line, start, end, _ in update.parts()]
        for spot, each in [*self._slices.items()]:
            line, column = spot
            if any(line == at and start < column + each.columns and end > column for at, start, end in spans):
                del self._slices[spot]

    def frame(self) -> str:
        """Return the output that draws visible pictures not yet on the screen."""
        missing = {spot: each for spot, each in self._list_slices().items() if self._slices.get(spot) != each}
        if not missing:
            return ""
        now = time.monotonic()
        if now < self._free_at:
            self._later(max(self._free_at - now, SETTLE_SECONDS))
            return ""
        self._slices.update(missing)
        drawings = "".join(
            f"\x1b[{line + 1};{column + 1}H{each.drawing}"
            for (line, column), each in sorted(missing.items(), key=_spot)
        )
        self._free_at = now + len(drawings) / RATE
        return f"\x1b7{drawings}\x1b8"


def _spot(item: tuple[Spot, Slice]) -> Spot:
    return item[0]
