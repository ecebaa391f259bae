"""Limits how often work is done that many events request, such as drawing a frame or reloading a list."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

FRAME = 1 / 30
"""Seconds between two frames while something changes."""
SCROLL = 1 / 15
"""Seconds until the next frame after one that moved every row: such a frame costs ten times as much."""


class Frames:
    """Draws a frame soon after a request, at a limited rate. `draw` returns whether every row has moved."""

    def __init__(self, draw: Callable[[], bool]) -> None:
        self._draw = draw
        self._next = 0.0
        """The earliest time of the next frame (monotonic seconds)."""
        self._due: asyncio.TimerHandle | None = None

    def request(self) -> None:
        """Draw with the next frame."""
        if self._due is None:
            wait = max(self._next - time.monotonic(), 0.0)
            self._due = asyncio.get_running_loop().call_later(wait, self._draw_now)

    def _draw_now(self) -> None:
        self._due, now = None, time.monotonic()
        self._next = now + (SCROLL if self._draw() else FRAME)


class Debounce:
    """Starts a task once for many requests, `seconds` after the first, and never while the previous one still runs."""

    def __init__(self, begin: Callable[[], asyncio.Task[Any]], seconds: float) -> None:
        self._begin = begin
        self._seconds = seconds
        self._due: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[Any] | None = None

    def request(self) -> None:
        """Have the task started soon, unless that is already scheduled."""
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(self._seconds, self._run_now)

    def _run_now(self) -> None:
        self._due = None
        if self._work is not None and not self._work.done():
            self.request()
        else:
            self._work = self._begin()
