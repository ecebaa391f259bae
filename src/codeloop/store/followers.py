"""Delivers a store's events to its followers (turns, event streams, terminals), without a gap.

A follower first gets the events stored since a number, then new ones and live ones in their order.

Events that other processes store are found by polling the database.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator

from codeloop.schema.errors import GapError
from codeloop.schema.event import PartUpdated, StampedEvent, StoredEvent, get_session_id
from codeloop.schema.limits import (
    STORE_POLL,
    STORE_POLL_IDLE,
    STORE_POLL_REST,
    STORE_QUEUE_EVENTS,
)
from codeloop.schema.live_events import LiveEvent
from codeloop.store.outbox import Outbox

FAST_POLL_COUNT = 250
"""Polling slows down after this number of polls in a row that found no event for a follower,
and after twice that.
"""


def read_event_range(
    outbox: Outbox, after: int, until: int, roots: Collection[str] | None = None
) -> Iterable[StampedEvent]:
    """Return the stored events with `after < seq < until`, in order, read in batches.

    `roots`: only the events of these sessions, of their subagents, and of no session. Raises
    GapError when events of the range were deleted.
    """
    while after + 1 < until:
        batch = outbox.read_events(after, until, roots)
        if after < (pruned := outbox.read_pruned_seq()):
            raise GapError(
                f"Events {after + 1} to {pruned} are no longer kept. Read the state again."
            )
        if not batch:
            return
        yield from batch
        after = batch[-1].seq or after


class Follower:
    """The queue of one reader. Once it is full, stored events are read again from the outbox;
    live ones are dropped.

    `session`: the id of the only session to follow; None: all.
    """

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.queue: deque[StampedEvent] = deque()
        self.wake = asyncio.Event()
        self.is_behind = False
        """Whether stored events must be read from the outbox before the queue goes on."""

    def offer(self, event: StampedEvent) -> None:
        """Put an event in the queue and wake the reader.
        In a full queue, a stored event replaces all others.

        Those that it replaces are read from the outbox, if they were stored.
        """
        if len(self.queue) >= STORE_QUEUE_EVENTS.value:
            if event.seq is None:
                return
            self.queue.clear()
        self.queue.append(event)
        self.wake.set()

    def accepts(self, event: StampedEvent) -> bool:
        """Return whether an event belongs to the followed session, or to none."""
        return self.session is None or get_session_id(event.event) in {self.session, None}


class Followers:
    """All followers of one store in this process, and the polling for other processes' events."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._followers: set[Follower] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._empty_polls = 0
        """Polls since the last one that found an event for a follower."""

    def publish(self, first_seq: int, events: Iterable[StoredEvent]) -> None:
        """Offer stored events, numbered from `first_seq`, to every follower."""
        self._empty_polls = 0
        if not self._followers:
            return
        for seq, event in enumerate(events, first_seq):
            stamped_event = StampedEvent(seq, event)
            for follower in self._followers:
                follower.offer(stamped_event)

    def publish_live(self, event: LiveEvent | PartUpdated, directory: str | None = None) -> None:
        """Offer a live event to every follower. `directory`: see `Store.publish_live`."""
        if not self._followers:
            return
        stamped_event = StampedEvent(None, event, directory)
        for follower in self._followers:
            follower.offer(stamped_event)

    async def follow(
        self, after: int, session: str | None, root: str | None
    ) -> AsyncGenerator[StampedEvent, None]:
        """Yield the stored events after the number `after`,
        then new ones and live ones in their order, without end.

        `session`: only the events of this session, and of no session. `root`: of the events that
        are read from the database, only those of this session, of its subagents, and of no session.
        Raises GapError when events were deleted.
        """
        root = root or session
        roots = None if root is None else (root,)
        follower = Follower(session)
        # The number of the last stored event that was read, yielded or not.
        last = after
        self._followers.add(follower)
        self._start_timer()
        try:
            # Registered first, then read: an event that is stored meanwhile is in the queue,
            # so none is missed.
            follower.is_behind = True
            while True:
                while follower.queue:
                    queued_event = follower.queue.popleft()
                    if queued_event.seq is not None:
                        # It was read from the outbox already.
                        if queued_event.seq <= last:
                            continue
                        # Numbers in between are events of other processes,
                        # or were dropped from the queue.
                        for stored_event in self._read_accepted(
                            follower, last, queued_event.seq, roots
                        ):
                            yield stored_event
                        last = queued_event.seq
                    if follower.accepts(queued_event):
                        yield queued_event
                if follower.is_behind:
                    follower.is_behind = False
                    # Only up to what is stored now: later events are in the queue,
                    # in order with live ones.
                    until = self._outbox.read_last_seq() + 1
                    for stored_event in self._read_accepted(follower, last, until, roots):
                        self._empty_polls = 0
                        yield stored_event
                    last = max(last, until - 1)
                    continue
                follower.wake.clear()
                await follower.wake.wait()
        finally:
            self._followers.discard(follower)
            self._stop_timer()

    def _read_accepted(
        self, follower: Follower, after: int, until: int, roots: Collection[str] | None
    ) -> Iterator[StampedEvent]:
        """Yield the events that `read_event_range` yields and the follower accepts."""
        return filter(follower.accepts, read_event_range(self._outbox, after, until, roots))

    def close(self) -> None:
        """Stop polling and delivering: the store is closed."""
        self._followers.clear()
        self._stop_timer()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(
                self._get_poll_seconds(), self._poll
            )

    def _get_poll_seconds(self) -> float:
        """Return the seconds until the next poll: longer after many polls that found nothing."""
        if self._empty_polls < FAST_POLL_COUNT:
            return STORE_POLL.seconds
        return (
            STORE_POLL_IDLE.seconds
            if self._empty_polls < 2 * FAST_POLL_COUNT
            else STORE_POLL_REST.seconds
        )

    def _stop_timer(self) -> None:
        if not self._followers and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _poll(self) -> None:
        self._timer = None
        if not self._followers:
            return
        # A follower that finds an event for itself sets the count back to 0.
        self._empty_polls += 1
        self._start_timer()
        if self._outbox.has_foreign_changes():
            for follower in self._followers:
                follower.is_behind = True
                follower.wake.set()
