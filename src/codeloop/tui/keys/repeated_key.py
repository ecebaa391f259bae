"""Keys that must be pressed twice, because they end something."""

import time
from collections.abc import Callable

AGAIN = 5.0
"""Seconds within which a key must be pressed again."""


class RepeatedKey:
    """The key that waits to be pressed again. `draw` redraws the hint; `later` calls a function after some seconds."""

    def __init__(self, draw: Callable[[], object], later: Callable[[float, Callable[[], object]], object]) -> None:
        self._draw = draw
        self._later = later
        self._hint, self._until = "", 0.0

    @property
    def hint(self) -> str:
        """The hint shown while the second press is awaited, else ""."""
        return self._hint if time.monotonic() < self._until else ""

    def confirm(self, what: str, also: str = "") -> bool:
        """Return whether a key was pressed for the second time; the first time, show `what` as the hint.

        `also`: another hint of the same action, after which this press counts as the second one.
        """
        if self._hint in {what, also} and time.monotonic() < self._until:
            self._hint, self._until = "", 0.0
            return True
        self._hint, self._until = what, time.monotonic() + AGAIN
        self._later(AGAIN, self._draw)
        self._draw()
        return False
