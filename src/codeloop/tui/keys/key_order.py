"""Delivers keys in the order of typing: each goes to what the ones before it have opened."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from textual.dom import DOMNode
from textual.events import Event

GRACE = 1.0
"""Seconds that keys wait for an earlier command to open or close something; then they are handled all the same."""
_POLL = 0.005
"""Seconds between two looks whether the screen accepts typing again; a shorter wait is not noticed."""


class KeyOrder:
    """Holds keys and pastes back while their target is undecided.

    `take` handles a key; `is_settled` tells whether the screen accepts typing.
    """

    def __init__(self, take: Callable[[Event], Awaitable[None]], is_settled: Callable[[], bool]) -> None:
        self._take = take
        self._is_settled = is_settled
        self._queue: list[Event] = []
        """The keys that wait; the first one may be in handling."""
        self._release: asyncio.Task[None] | None = None
        """Handles them, one after the other."""
        self._settled_event: asyncio.Event | None = None
        """Set once the last key that may change the focus is handled."""

    async def wait(self) -> None:
        """Wait until no key is held back."""
        if self._queue and self._release is not None:
            await asyncio.wait({self._release})

    def drop(self) -> None:
        """Drop the held keys, except one being handled."""
        del self._queue[1:]

    async def feed(self, event: Event) -> None:
        """Handle a key as soon as those before it are done."""
        if self._queue or not self._is_free():
            self._queue.append(event)
            if len(self._queue) == 1:
                self._release = asyncio.create_task(self._deliver())
        else:
            await self._take(event)

    def follow(self, target: DOMNode) -> None:
        """Hold the next key until `target` and its ancestors have handled their messages."""
        settled_event = self._settled_event = asyncio.Event()

        def climb(node: DOMNode | None) -> None:
            if node is None:
                settled_event.set()
            else:
                node.call_later(climb, node.parent)

        climb(target)

    async def _deliver(self) -> None:
        while self._queue:
            await self._wait_until_free()
            await self._take(self._queue[0])
            del self._queue[0]

    async def _wait_until_free(self) -> None:
        until = time.monotonic() + GRACE
        while True:
            if self._is_free() or time.monotonic() >= until:
                self._settled_event = None
                return
            await asyncio.sleep(_POLL)

    def _is_free(self) -> bool:
        return (self._settled_event is None or self._settled_event.is_set()) and self._is_settled()
