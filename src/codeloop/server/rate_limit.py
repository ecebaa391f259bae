"""Rate limit of wrong passwords, by address."""

import asyncio
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from codeloop.schema.bounds.server import SERVER_ADDRESSES, SERVER_DELAY, SERVER_DELAYED, SERVER_FORGET


@dataclass(slots=True)
class _Tries:
    """The wrong passwords of one address. `last`: on the monotonic clock, in seconds."""

    count: int = 0
    waiting: int = 0
    last: float = 0.0


class Attempts:
    """Counts recent wrong passwords by address."""

    def __init__(self) -> None:
        self._tries: OrderedDict[str, _Tries] = OrderedDict()
        self._is_over = asyncio.Event()

    def is_full(self, address: str) -> bool:
        """Return whether as many wrong passwords of an address are waiting as is allowed."""
        tries = self._tries.get(address)
        return tries is not None and tries.waiting >= SERVER_DELAYED.value

    async def slow_down(self, address: str) -> bool:
        """Wait after a wrong password, longer each time; False at once if too many of this address are waiting."""
        tries = self._recent(address)
        if tries.waiting >= SERVER_DELAYED.value:
            return False
        tries.waiting += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(SERVER_DELAY.seconds * min(1.0, 2.0 ** min(tries.count - 1, 10) / 20)):
                    await self._is_over.wait()
        finally:
            tries.waiting -= 1
        return True

    def end(self) -> None:
        """End all waits."""
        self._is_over.set()

    def _recent(self, address: str) -> _Tries:
        """Count one more for an address."""
        now = time.monotonic()
        tries = self._tries.pop(address, None) or _Tries()
        if now - tries.last > SERVER_FORGET.seconds and not tries.waiting:
            tries.count = 0
        tries.count += 1
        tries.last = now
        self._tries[address] = tries
        while len(self._tries) > SERVER_ADDRESSES.value:
            self._tries.popitem(last=False)
        return tries
