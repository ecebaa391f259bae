"""Delivers keys in the order of typing: a key waits until those before it have
opened or closed their dialogs.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from textual.dom import DOMNode
from textual.events import Event

MAX_HOLD_SECONDS = 1.0
"""Seconds that keys wait at most for an earlier command to open or close a dialog."""
_POLL_SECONDS = 0.005
"""Seconds between two checks whether the screen accepts keys again;
a wait this short is not noticed.
"""


class KeyOrder:
    """Holds keys and pastes back while it is undecided which widget they are for.

    `handle` handles a key or a paste; `is_settled` returns whether the screen accepts keys.
    """

    def __init__(
        self, handle: Callable[[Event], Awaitable[None]], is_settled: Callable[[], bool]
    ) -> None:
        self._handle = handle
        self._is_settled = is_settled
        self._queue: list[Event] = []
        """The keys that wait; the first one may be being handled."""
        self._delivery: asyncio.Task[None] | None = None
        """Handles the keys that wait, one after the other."""
        self._settled_event: asyncio.Event | None = None
        """Set once the last key that may change the focus is handled; None: there was none."""

    async def wait_until_empty(self) -> None:
        """Wait until no key is held back."""
        if self._queue and self._delivery is not None:
            await asyncio.wait({self._delivery})

    def drop_held(self) -> None:
        """Drop the held keys, except one being handled."""
        del self._queue[1:]

    async def feed(self, event: Event) -> None:
        """Handle a key as soon as those before it are done."""
        # The usual key is handled here, without a task: it is on the screen sooner.
        if self._queue or not self._is_free():
            self.hold([event])
        else:
            await self._handle(event)

    def hold(self, events: Sequence[Event]) -> None:
        """Hold keys and pastes back, and handle them after those that are held already."""
        is_delivering = bool(self._queue)
        self._queue += events
        if self._queue and not is_delivering:
            self._delivery = asyncio.create_task(self._deliver())

    def hold_until_handled(self, target: DOMNode) -> None:
        """Hold the next key until `target` and its ancestors have handled their messages."""
        settled_event = self._settled_event = asyncio.Event()

        # Messages bubble through the queues of the ancestors. A call that goes the same way, behind
        # them in each queue, arrives at the top only when they are handled.
        def visit_queue(node: DOMNode | None) -> None:
            if node is None:
                settled_event.set()
            else:
                node.call_later(visit_queue, node.parent)

        visit_queue(target)

    async def _deliver(self) -> None:
        while self._queue:
            await self._wait_until_free()
            # Removed only when it is handled, so that `feed` queues later keys meanwhile.
            await self._handle(self._queue[0])
            del self._queue[0]

    async def _wait_until_free(self) -> None:
        deadline = time.monotonic() + MAX_HOLD_SECONDS
        while True:
            if self._is_free() or time.monotonic() >= deadline:
                self._settled_event = None
                return
            await asyncio.sleep(_POLL_SECONDS)

    def _is_free(self) -> bool:
        return (self._settled_event is None or self._settled_event.is_set()) and self._is_settled()
