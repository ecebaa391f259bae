"""Followers of events: replay, then live, without a gap, including other processes' events."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable
from typing import Protocol

from codeloop.schema.errors import GapError
from codeloop.schema.event import PartUpdated, Stamped, StoredEvent, session_of
from codeloop.schema.limits import STORE_EVENTS, STORE_POLL, STORE_POLL_QUIET, STORE_QUEUE
from codeloop.schema.live_events import LiveEvent

QUIET = 250
"""Polls without an event for a follower, after which polling slows down."""


class StoredEvents(Protocol):
    """The stored events that are still kept."""

    def read_events(self, after: int, until: int | None = None, roots: Collection[str] | None = None) -> list[Stamped]:
        """Return the stored events with `after < seq < until`, a bounded batch, in order.

        `roots`: only those of these sessions, of their subagents and of no session.
        """
        ...

    def first_seq(self) -> int:
        """Return the lowest sequence number that is kept, 0 for none."""
        ...

    def last_seq(self) -> int:
        """Return the highest sequence number there is."""
        ...


class EventLog(StoredEvents, Protocol):
    """What a follower needs of the store: the outbox."""

    def has_foreign_changes(self) -> bool:
        """Return whether another process has stored something since the last time this was asked."""
        ...


def read_range(
    stored_events: StoredEvents, after: int, until: int, roots: Collection[str] | None = None
) -> Iterable[Stamped]:
    """Return the stored events with `after < seq < until`, in order, read in batches.

    `roots`: only those of these sessions, of their subagents and of no session. Raises GapError when some of the range
    are no longer kept.
    """
    while after + 1 < until:
        batch = stored_events.read_events(after, until, roots)
        if after < stored_events.last_seq() - STORE_EVENTS.value and (first := stored_events.first_seq()) > after + 1:
            raise GapError(f"Events {after + 1} to {first - 1} are no longer kept. Read the state again.")
        if not batch:
            return
        yield from batch
        after = batch[-1].seq or after


class Follower:
    """One reader's queue. Stored events that do not fit are read from the outbox later; live ones are dropped."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.queue: deque[Stamped] = deque()
        self.wake = asyncio.Event()
        self.behind = False

    def offer(self, event: Stamped) -> None:
        """Put an event in the queue and wake the reader. In a full queue a stored one replaces all others."""
        if len(self.queue) >= STORE_QUEUE.value:
            if event.seq is None:
                return
            self.queue.clear()
        self.queue.append(event)
        self.wake.set()

    def is_followed(self, event: Stamped) -> bool:
        """Return whether the event is of the session that is followed."""
        return self.session is None or session_of(event.event) in {self.session, None}


class Followers:
    """All followers of one store in this process, and the polling for other processes' events."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._all: set[Follower] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._quiet = 0
        """Polls since the last one that had an event for a follower."""

    def publish(self, first_seq: int, events: Iterable[StoredEvent]) -> None:
        """Hand stored events, numbered from `first_seq`, to every follower."""
        self._quiet = 0
        if not self._all:
            return
        for seq, event in enumerate(events, first_seq):
            stamped_event = Stamped(seq, event)
            for follower in self._all:
                follower.offer(stamped_event)

    def publish_live(self, event: LiveEvent | PartUpdated, directory: str | None = None) -> None:
        """Hand a live event to every follower."""
        if not self._all:
            return
        stamped_event = Stamped(None, event, directory)
        for follower in self._all:
            follower.offer(stamped_event)

    async def follow(self, after: int, session: str | None, root: str | None) -> AsyncGenerator[Stamped, None]:
        """Return stored events after `after` and live ones, in the order in which they came, for ever.

        `session`: only its own events and those of no session. `root`: of what other processes store, only the events
        of this session, of its subagents and of no session.
        """
        roots = None if root is None and session is None else (root or session or "",)
        follower = Follower(session)
        last = after
        self._all.add(follower)
        self._start_timer()
        try:
            follower.behind = True
            while True:
                while follower.queue:
                    item = follower.queue.popleft()
                    if item.seq is not None:
                        if item.seq <= last:
                            continue
                        for stamped_event in read_range(self._log, last, item.seq, roots):
                            if follower.is_followed(stamped_event):
                                yield stamped_event
                        last = item.seq
                    if follower.is_followed(item):
                        yield item
                if follower.behind:
                    follower.behind = False
                    # Up to what is stored now: later ones are in the queue, between the live ones.
                    until = self._log.last_seq() + 1
                    for stamped_event in read_range(self._log, last, until, roots):
                        last = stamped_event.seq or last
                        if follower.is_followed(stamped_event):
                            self._quiet = 0
                            yield stamped_event
                    last = max(last, until - 1)
                    continue
                follower.wake.clear()
                await follower.wake.wait()
        finally:
            self._all.discard(follower)
            self._stop_timer()

    def close(self) -> None:
        """End all followers: the store is closed."""
        self._all.clear()
        self._stop_timer()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause(), self._poll)

    def _pause(self) -> float:
        """Return when to look next: after a while in which nothing happened, less often."""
        return STORE_POLL.seconds if self._quiet < QUIET else STORE_POLL_QUIET.seconds

    def _stop_timer(self) -> None:
        if not self._all and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _poll(self) -> None:
        self._timer = None
        if not self._all:
            return
        self._quiet += 1  # a follower that finds something for itself sets it back
        self._start_timer()
        if self._log.has_foreign_changes():
            for follower in self._all:
                follower.behind = True
                follower.wake.set()
