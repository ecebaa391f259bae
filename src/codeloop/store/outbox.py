"""The outbox: every stored event with its sequence number,
kept for a while so that followers can catch up.

An event with a large part is stored without it: the part stands in its table. Who reads such an
event later gets the part as it is then, or learns that it is gone.
"""

from collections.abc import Collection

import msgspec

from codeloop.schema.event import (
    PartGone,
    PartInfo,
    PartRemoved,
    PartUpdated,
    StampedEvent,
    StoredEvent,
    get_session_id,
)
from codeloop.schema.limits import STORE_EVENTS
from codeloop.schema.live_events import IdentifiedEvent
from codeloop.schema.part import Part
from codeloop.schema.wire import encode_json
from codeloop.store.database import Database

LARGE_EVENT = 64 * 1024
"""Bytes from which on an event's part is not stored again with the event."""


class _StoredPart(IdentifiedEvent, tag="part"):
    """A `message.part.updated` whose part is to be read from its table; `time` as there."""

    session_id: str
    message_id: str
    part_id: str
    time: int


_event_decoder: msgspec.json.Decoder[StoredEvent | _StoredPart] = msgspec.json.Decoder(
    StoredEvent | _StoredPart
)
_part_decoder: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)

BATCH_SIZE = 500
"""The number of events that are read at once, so that a long replay does not
hold all of them in memory.
"""
PRUNE_INTERVAL = 1_000
"""The number of events between two deletions of old ones: deleting costs more than adding."""
_ORDER_CLAUSE = "ORDER BY seq LIMIT ?3"
# ?4: the roots as a JSON list of session ids.
_TREE_FILTER = """AND (session_id IS NULL OR session_id IN (
    WITH RECURSIVE tree (id) AS (
        SELECT value FROM json_each(?4) UNION SELECT session.id FROM session JOIN tree ON parent_id = tree.id)
    SELECT id FROM tree))"""


class Outbox:
    """Numbers events in the order of their transactions, over all processes."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen_version = self._read_data_version()

    def add(self, event: StoredEvent) -> int:
        """Add an event, within the caller's transaction; return its number."""
        data = encode_json(event)
        if len(data) >= LARGE_EVENT and isinstance(event, PartUpdated):
            part, time = event.properties.part, event.properties.time
            data = encode_json(
                _StoredPart(
                    id=event.id,
                    session_id=part.session_id,
                    message_id=part.message_id,
                    part_id=part.id,
                    time=time,
                )
            )
        row = (get_session_id(event), data)
        return self._db.execute("INSERT INTO event (session_id, data) VALUES (?, ?)", row)

    def read_events(
        self, after: int, until: int | None = None, roots: Collection[str] | None = None
    ) -> list[StampedEvent]:
        """Return the stored events with `after < seq < until`, in order, at most a batch of them.

        `roots`: only the events of these sessions, of their subagents, and of no session. SQLite
        filters out the other ones: hundreds of processes may write to one database, and decoding an
        event costs far more than skipping it.
        """
        sql = "SELECT seq, data FROM event WHERE seq > ?1 AND (?2 IS NULL OR seq < ?2)"
        if roots is None:
            rows = self._db.fetch_all(f"{sql} {_ORDER_CLAUSE}", after, until, BATCH_SIZE)
        else:
            rows = self._db.fetch_all(
                f"{sql} {_TREE_FILTER} {_ORDER_CLAUSE}",
                after,
                until,
                BATCH_SIZE,
                encode_json(tuple(roots)),
            )
        return [StampedEvent(seq, self._restore(_event_decoder.decode(data))) for seq, data in rows]

    def _restore(self, event: StoredEvent | _StoredPart) -> StoredEvent:
        """Return the event with its part; if that was removed meanwhile, the removal."""
        if not isinstance(event, _StoredPart):
            return event
        row = self._db.fetch_one("SELECT data FROM part WHERE id = ?", event.part_id)
        if row is None:
            gone = PartGone(
                session_id=event.session_id, message_id=event.message_id, part_id=event.part_id
            )
            return PartRemoved(id=event.id, properties=gone)
        part = PartInfo(
            session_id=event.session_id, part=_part_decoder.decode(row[0]), time=event.time
        )
        return PartUpdated(id=event.id, properties=part)

    def read_first_seq(self) -> int:
        """Return the number of the oldest stored event; 0: there is none."""
        row = self._db.fetch_one("SELECT min(seq) FROM event")
        return (row[0] if row else None) or 0

    def read_last_seq(self) -> int:
        """Return the highest number that was ever given to an event."""
        # Not `max(seq)`: the newest events may be deleted with their session,
        # and no number is used twice.
        row = self._db.fetch_one("SELECT seq FROM sqlite_sequence WHERE name = 'event'")
        return row[0] if row else 0

    def has_foreign_changes(self) -> bool:
        """Return whether another process has stored something since the last call."""
        version = self._read_data_version()
        is_new = version != self._seen_version
        self._seen_version = version
        return is_new

    def prune(self, first: int, last: int) -> None:
        """Delete the oldest events if a multiple of `PRUNE_INTERVAL` is among the new numbers,
        `first` to `last`.
        """
        if last // PRUNE_INTERVAL != (first - 1) // PRUNE_INTERVAL:
            self._db.execute("DELETE FROM event WHERE seq <= ?", (last - STORE_EVENTS.value,))

    def _read_data_version(self) -> int:
        # SQLite changes this number when another connection has committed;
        # reading it does not touch the tables.
        row = self._db.fetch_one("PRAGMA data_version")
        return row[0] if row else 0
