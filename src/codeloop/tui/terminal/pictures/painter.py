"""Draws pictures over cells: after the text of their rows, and again when that text is rewritten."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from codeloop.tui.terminal.terminal_app import Changes

Spot = tuple[int, int]
"""A cell of the screen: its row and its column, from 0."""
RATE = 1_000_000
"""The most characters written a second while pictures move."""
REST = 0.2
"""Seconds without movement before a picture that is too slow to follow scrolling is drawn again."""


class Slice(Struct, frozen=True):
    """A row of a picture: its output, and how many columns it takes. `name`: equal for equal pixels."""

    name: object
    drawing: str
    columns: int


class Painter:
    """Tracks the pictures on the screen, and draws missing ones.

    `in_sight`: returns the wanted slices, by first cell. `later`: schedules `TerminalApp.paint` in seconds.
    """

    def __init__(self, in_sight: Callable[[], Mapping[Spot, Slice]], later: Callable[[float], None]) -> None:
        self._in_sight = in_sight
        self._later = later
        self._there: dict[Spot, Slice] = {}
        self._free = 0.0
        """The estimated time when the terminal has drawn earlier output."""

    def erase(self, update: Any) -> None:
        """Note an update of the screen, which erases the pictures that it covers."""
        if not self._there:
            return
        if not isinstance(update, Changes):
            self._there.clear()
            return
        spans = [(line, start, end) for line, start, end, _ in update.parts()]
        for spot, each in [*self._there.items()]:
            line, column = spot
            if any(line == at and start < column + each.columns and end > column for at, start, end in spans):
                del self._there[spot]

    def frame(self) -> str:
        """Return the output that draws visible pictures not yet on the screen."""
        missing = {spot: each for spot, each in self._in_sight().items() if self._there.get(spot) != each}
        if not missing:
            return ""
        now = time.monotonic()
        if now < self._free:
            self._later(max(self._free - now, REST))
            return ""
        self._there.update(missing)
        drawings = "".join(
            f"\x1b[{line + 1};{column + 1}H{each.drawing}"
            for (line, column), each in sorted(missing.items(), key=_spot)
        )
        self._free = now + len(drawings) / RATE
        return f"\x1b7{drawings}\x1b8"


def _spot(item: tuple[Spot, Slice]) -> Spot:
    return item[0]
