"""Confirmation by a second press: for keys that stop a turn or quit,
so that one press by mistake does nothing.
"""

import time
from collections.abc import Callable

CONFIRMATION_SECONDS = 5.0
"""Seconds within which a key must be pressed again."""


class RepeatedKey:
    """The key that waits to be pressed again.

    `draw` redraws the hint; `call_later` calls a function after a number of seconds.
    """

    def __init__(
        self,
        draw: Callable[[], object],
        call_later: Callable[[float, Callable[[], object]], object],
    ) -> None:
        self._draw = draw
        self._call_later = call_later
        self._hint, self._expires_at = "", 0.0

    @property
    def hint(self) -> str:
        """The hint shown while the second press is awaited, else ""."""
        return self._hint if time.monotonic() < self._expires_at else ""

    def forget(self) -> None:
        """Wait for no second press any more: the user does something else."""
        if self._hint:
            self._hint, self._expires_at = "", 0.0
            self._draw()

    def confirm(self, hint: str, other_hint: str = "") -> bool:
        """Return whether a key was pressed for the second time;
        after the first press, show the hint and return False.

        `other_hint`: another hint of the same action;
        after it, too, this press counts as the second one.
        """
        if self._hint in {hint, other_hint} and time.monotonic() < self._expires_at:
            self._hint, self._expires_at = "", 0.0
            return True
        self._hint, self._expires_at = hint, time.monotonic() + CONFIRMATION_SECONDS
        self._call_later(CONFIRMATION_SECONDS, self._draw)
        self._draw()
        return False
