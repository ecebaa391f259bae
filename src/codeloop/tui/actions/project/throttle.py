"""Limits how often work is done that many events request: drawing a frame, or reloading a list."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

FRAME_INTERVAL = 1 / 30
"""Seconds between two frames while something changes."""
# Every row is written again, which costs ten times as much as a frame in which a few rows change.
SCROLL_INTERVAL = 1 / 15
"""Seconds until the next frame after one that moved every row."""


class FrameScheduler:
    """Draws a frame soon after a request, at a limited rate. `draw` returns whether every row has moved."""

    def __init__(self, draw: Callable[[], bool]) -> None:
        self._draw = draw
        self._next_frame_at = 0.0
        """The earliest time of the next frame (monotonic seconds)."""
        self._timer: asyncio.TimerHandle | None = None

    def request(self) -> None:
        """Draw with the next frame."""
        # After a pause, the frame is drawn in the next round of the event loop: the effect of a key shows at once.
        if self._timer is None:
            delay = max(self._next_frame_at - time.monotonic(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._draw_frame)

    def _draw_frame(self) -> None:
        self._timer, now = None, time.monotonic()
        self._next_frame_at = now + (SCROLL_INTERVAL if self._draw() else FRAME_INTERVAL)


class Throttle:
    """Starts a task once for many requests, `delay` seconds after the first, and never while the previous one runs."""

    def __init__(self, start_task: Callable[[], asyncio.Task[Any]], delay: float) -> None:
        self._start_task = start_task
        self._delay = delay
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None

    def request(self) -> None:
        """Have the task started soon, unless that is already scheduled."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._run)

    def _run(self) -> None:
        self._timer = None
        # The running task may have read its data before the event that made this request.
        if self._task is not None and not self._task.done():
            self.request()
        else:
            self._task = self._start_task()
