"""Delays the answers to wrong passwords, longer for each further one from an address,
against guessing.
"""

import asyncio
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from codeloop.schema.bounds.server import (
    SERVER_ADDRESSES,
    SERVER_DELAY,
    SERVER_FORGET,
    SERVER_MAX_DELAYED,
)


@dataclass(slots=True)
class _AddressAttempts:
    """The wrong passwords of one address: recent ones, and those whose answers are being delayed.

    `last_time`: when the last one came, in seconds of the monotonic clock.
    """

    count: int = 0
    delayed: int = 0
    last_time: float = 0.0


class PasswordAttempts:
    """The recent wrong passwords, counted by address."""

    def __init__(self) -> None:
        self._attempts_by_address: OrderedDict[str, _AddressAttempts] = OrderedDict()
        self._end_signal = asyncio.Event()

    def has_too_many_delayed(self, address: str) -> bool:
        """Return whether the largest allowed number of wrong passwords of an
        address is being delayed.
        """
        attempts = self._attempts_by_address.get(address)
        return attempts is not None and attempts.delayed >= SERVER_MAX_DELAYED.value

    async def delay_answer(self, address: str) -> bool:
        """Delay the answer to a wrong password, longer each time.

        Returns False at once if too many are being delayed: then the answer is a refusal (429).
        """
        attempts = self._count_attempt(address)
        if attempts.delayed >= SERVER_MAX_DELAYED.value:
            return False
        attempts.delayed += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_compute_delay(attempts.count)):
                    await self._end_signal.wait()
        finally:
            attempts.delayed -= 1
        return True

    def end_delays(self) -> None:
        """End all delays."""
        self._end_signal.set()

    def _count_attempt(self, address: str) -> _AddressAttempts:
        """Count one more wrong password of an address, and return its record."""
        now = time.monotonic()
        # Taken out and put back, so that the dictionary is sorted by time,
        # and its first entry is the oldest.
        attempts = self._attempts_by_address.pop(address, None) or _AddressAttempts()
        if now - attempts.last_time > SERVER_FORGET.seconds and not attempts.delayed:
            attempts.count = 0
        attempts.count += 1
        attempts.last_time = now
        self._attempts_by_address[address] = attempts
        while len(self._attempts_by_address) > SERVER_ADDRESSES.value:
            self._attempts_by_address.popitem(last=False)
        return attempts


def _compute_delay(count: int) -> float:
    """Return the delay after `count` wrong passwords, in seconds: it doubles each time,
    up to SERVER_DELAY.
    """
    # The first delay is a twentieth of the longest. After ten doublings it is reached by far, and a
    # larger power of a large count would overflow.
    doublings = min(count - 1, 10)
    return SERVER_DELAY.seconds * min(1.0, 2.0**doublings / 20)
