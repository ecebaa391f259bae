"""Delays the answers to wrong passwords, longer for each further one from an address, against guessing."""

import asyncio
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from codeloop.schema.bounds.server import SERVER_ADDRESSES, SERVER_DELAY, SERVER_DELAYED, SERVER_FORGET


@dataclass(slots=True)
class _AddressAttempts:
    """The wrong passwords of one address: recent ones, and those whose answers are being delayed.

    `last`: when the last one came, in seconds of the monotonic clock.
    """

    count: int = 0
    waiting: int = 0
    last: float = 0.0


class PasswordAttempts:
    """The recent wrong passwords, counted by address."""

    def __init__(self) -> None:
        self._tries: OrderedDict[str, _AddressAttempts] = OrderedDict()
        self._is_over = asyncio.Event()

    def is_full(self, address: str) -> bool:
        """Return whether the largest allowed number of wrong passwords of an address is being delayed."""
        tries = self._tries.get(address)
        return tries is not None and tries.waiting >= SERVER_DELAYED.value

    async def slow_down(self, address: str) -> bool:
        """Delay the answer to a wrong password, longer each time; False at once if too many are being delayed."""
        tries = self._recent(address)
        if tries.waiting >= SERVER_DELAYED.value:
            return False
        tries.waiting += 1
        try:
            with suppress(TimeoutError):
                # From a twentieth of the longest delay, twice as long each time; 10: a bound for the power.
                async with asyncio.timeout(SERVER_DELAY.seconds * min(1.0, 2.0 ** min(tries.count - 1, 10) / 20)):
                    await self._is_over.wait()
        finally:
            tries.waiting -= 1
        return True

    def end(self) -> None:
        """End all delays."""
        self._is_over.set()

    def _recent(self, address: str) -> _AddressAttempts:
        """Count one more wrong password of an address, and return its record."""
        now = time.monotonic()
        tries = (
            self._tries.pop(address, None) or _AddressAttempts()
        )  # taken out and put back: the last of the dict is the newest
        if now - tries.last > SERVER_FORGET.seconds and not tries.waiting:
            tries.count = 0
        tries.count += 1
        tries.last = now
        self._tries[address] = tries
        while len(self._tries) > SERVER_ADDRESSES.value:
            self._tries.popitem(last=False)
        return tries
