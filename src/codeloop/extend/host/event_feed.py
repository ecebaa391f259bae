"""Events for the extensions of one host: gathered, and left out where it does not keep up. The stream never waits."""

import asyncio
from collections.abc import Callable

import msgspec

from codeloop.extend.host.protocol import EventBatch, line_of
from codeloop.schema.bounds.extension import HOST_EVENTS, HOST_EVENTS_MOST

_PACE = 0.01  # seconds
_BATCH = 200


class HostEventFeed:
    """See the module. `send` returns whether the host runs; `late` is told once that it does not keep up."""

    def __init__(self, send: Callable[[bytes], bool], late: Callable[[], None]) -> None:
        self.dropped = 0
        self._send = send
        self._late = late
        self._waiting: list[msgspec.Raw] = []
        self._unanswered = 0
        self._timer: asyncio.TimerHandle | None = None

    def wants(self, *, is_delta: bool) -> bool:
        """Return whether there is room for an event; one that is left out is counted."""
        most = HOST_EVENTS if is_delta else HOST_EVENTS_MOST
        if self._unanswered + len(self._waiting) < most.value:
            return True
        if not self.dropped:
            self._late()
        self.dropped += 1
        return False

    def take(self, event: msgspec.Raw) -> None:
        """Send an event, together with others that come soon."""
        self._waiting.append(event)
        if len(self._waiting) >= _BATCH:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PACE, self._flush)

    def taken(self, count: int | None) -> None:
        """Take up that the host is done with so many; None: it was started anew, and knows of none."""
        self._unanswered = 0 if count is None else max(0, self._unanswered - count)

    def close(self) -> None:
        """Send no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        if batch and self._send(line_of(EventBatch(tuple(batch)))):
            self._unanswered += len(batch)
