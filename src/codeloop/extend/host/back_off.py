"""Exponential back-off: the pauses before a host that keeps failing is started again."""

import asyncio
import time

from codeloop.schema.bounds.extension import HOST_BACK_OFF, HOST_BACK_OFF_MOST, HOST_RESTART_WAIT


class BackOff:
    """Counts failures; a program that ran longer than the longest pause starts from zero."""

    def __init__(self) -> None:
        self.failures = 0
        self._started_at = 0.0
        self._failed_at = 0.0

    def note_start(self) -> None:
        """Record a start."""
        self._started_at = time.monotonic()

    def note_failure(self) -> None:
        """Record a failure."""
        self._failed_at = time.monotonic()
        # A program that ran for long has failed for a new reason.
        is_old = self._failed_at - self._started_at > HOST_BACK_OFF_MOST.seconds
        self.failures = 1 if is_old else self.failures + 1

    async def pause(self) -> float:
        """Wait until the program may be started again, and return 0;
        if that is too long, return the seconds left.
        """
        if not self.failures:
            return 0
        pause = min(HOST_BACK_OFF.seconds * 2 ** (self.failures - 1), HOST_BACK_OFF_MOST.seconds)
        seconds_left = self._failed_at + pause - time.monotonic()
        # A short pause is waited for; a long one is reported, as the user waits for the turn.
        if seconds_left > HOST_RESTART_WAIT.seconds:
            return seconds_left
        await asyncio.sleep(max(seconds_left, 0))
        return 0
