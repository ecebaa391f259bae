"""The outbox: every stored event with its sequence number, kept for a while so that followers can catch up."""

import msgspec

from codeloop.schema.event import Stamped, StoredEvent, session_of
from codeloop.schema.limits import STORE_EVENTS
from codeloop.store.database import Database

_encode = msgspec.json.Encoder().encode
_event: msgspec.json.Decoder[StoredEvent] = msgspec.json.Decoder(StoredEvent)

BATCH = 500  # events
PRUNE_EVERY = 1_000  # events, since deleting costs more than adding


class Outbox:
    """Numbers events in the order of their transactions, over all processes."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._version = self._data_version()

    def add(self, event: StoredEvent) -> int:
        """Add an event, inside a transaction; return its number."""
        row = (session_of(event), _encode(event))
        return self._db.execute("INSERT INTO event (session_id, data) VALUES (?, ?)", row)

    def read_events(self, after: int, until: int | None = None) -> list[Stamped]:
        """Return the stored events with `after < seq < until`, at most a batch, in order."""
        sql = "SELECT seq, data FROM event WHERE seq > ? AND (? IS NULL OR seq < ?) ORDER BY seq LIMIT ?"
        return [Stamped(seq, _event.decode(data)) for seq, data in self._db.fetch_all(sql, after, until, until, BATCH)]

    def last_seq(self) -> int:
        """Return the highest number ever handed out."""
        row = self._db.fetch_one("SELECT seq FROM sqlite_sequence WHERE name = 'event'")
        return row[0] if row else 0

    def has_foreign_changes(self) -> bool:
        """Return whether another process has stored something since the last time this was asked."""
        version = self._data_version()
        is_new = version != self._version
        self._version = version
        return is_new

    def prune(self, first: int, last: int) -> None:
        """Drop the oldest events, once in a while as the numbers go on from `first` to `last`."""
        if last // PRUNE_EVERY != (first - 1) // PRUNE_EVERY:
            self._db.execute("DELETE FROM event WHERE seq <= ?", (last - STORE_EVENTS.value,))

    def _data_version(self) -> int:
        row = self._db.fetch_one("PRAGMA data_version")
        return row[0] if row else 0
