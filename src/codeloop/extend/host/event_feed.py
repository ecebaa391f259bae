"""Sends events to one host in batches. Events are dropped if the host does not keep up,
so the stream never waits.
"""

import asyncio
from collections.abc import Callable

import msgspec

from codeloop.extend.host.protocol import EventBatch, encode_line
from codeloop.schema.bounds.extension import HOST_EVENTS, HOST_EVENTS_MOST

# Text arrives in many small events; those of this time are sent as one message.
_BATCH_DELAY_SECONDS = 0.01
# A batch of this size is sent at once, so that a message stays far below its limit.
_MAX_BATCH_EVENTS = 200


class HostEventFeed:
    """The feed of one host. `send` returns whether the host runs;
    `on_first_drop` is called when one is first lost.

    While the feed is paused, events wait for their followers to be loaded.
    """

    def __init__(self, send: Callable[[bytes], bool], on_first_drop: Callable[[], None]) -> None:
        self.dropped = 0
        """The number of dropped events."""
        self.is_drained = asyncio.Event()
        """An event that is set while the host has handled all events."""
        self.is_drained.set()
        self._send = send
        self._on_first_drop = on_first_drop
        self._waiting: list[msgspec.Raw] = []
        self._unanswered = 0
        """The number of events that were sent and that the host has not handled yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = False

    def admit(self, *, is_delta: bool) -> bool:
        """Return whether there is room for one more event; if not, count it as dropped."""
        # Deltas are dropped first: the whole text follows in a later event,
        # other events have no substitute.
        limit = HOST_EVENTS if is_delta else HOST_EVENTS_MOST
        if self._unanswered + len(self._waiting) < limit.value:
            return True
        # Reported once: a warning for each event would flood the user.
        if not self.dropped:
            self._on_first_drop()
        self.dropped += 1
        return False

    def add(self, event: msgspec.Raw) -> None:
        """Send an event, together with others that come soon."""
        self._waiting.append(event)
        self.is_drained.clear()
        if self._is_paused:
            return
        if len(self._waiting) >= _MAX_BATCH_EVENTS:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_BATCH_DELAY_SECONDS, self.flush)

    def acknowledge(self, count: int | None) -> None:
        """Count events as handled; None: the program was restarted."""
        self._unanswered = 0 if count is None else max(0, self._unanswered - count)
        self._update_drained()

    def pause(self) -> None:
        """Queue events until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        """Send the queued events, and later ones as they come."""
        self._is_paused = False
        self.flush()

    def flush(self) -> None:
        """Send the queued events, unless the feed is paused."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_paused:
            return
        batch, self._waiting = self._waiting, []
        if batch and self._send(encode_line(EventBatch(tuple(batch)))):
            self._unanswered += len(batch)
        self._update_drained()

    def close(self) -> None:
        """Stop sending."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()

    def _update_drained(self) -> None:
        if not self._waiting and not self._unanswered:
            self.is_drained.set()
