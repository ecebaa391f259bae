"""The outbox: numbers every change, and reads those after a number, so that followers catch up.

Sessions, messages and parts are their own events (`migrations.py`): a follower that comes later
gets an event for each of their changes, with what they are by then; of those that are gone, only
that they went. The other events stand in the table `event`, for a while.
"""

import zlib
from collections.abc import Collection

import msgspec

from codeloop.schema.event import (
    MessageInfo,
    MessageUpdated,
    PartInfo,
    PartUpdated,
    SessionCreated,
    SessionInfo,
    SessionUpdated,
    StampedEvent,
    StoredEvent,
    get_session_id,
)
from codeloop.schema.limits import STORE_EVENTS
from codeloop.schema.message import Session
from codeloop.schema.wire import encode_json, replace
from codeloop.store.apply_event import decode_message, decode_part
from codeloop.store.database import Database

_event_decoder: msgspec.json.Decoder[StoredEvent] = msgspec.json.Decoder(StoredEvent)
_decode_session = msgspec.json.Decoder(Session).decode

BATCH_SIZE = 500
"""The number of events that are read at once, so that a long replay does not
hold all of them in memory.
"""
PRUNE_INTERVAL = 1_000
"""The number of events between two deletions of old ones: deleting costs more than adding."""
_NO_END = 1 << 62
# What each kind of row says: the session's id, those of the message and the part, and the rest.
# A part's number is looked for first: without CROSS, SQLite may begin with all messages.
_EVENT = "'event', session_id AS owner, NULL, NULL, NULL, json"
_MADE = "'made', id AS owner, NULL, NULL, NULL, data"
_SESSION = "'session', id AS owner, NULL, NULL, NULL, data"
_MESSAGE = "'message', session_id AS owner, id, NULL, NULL, data"
_PART = "'part', message.session_id AS owner, message.id, part.id, part.time, part.data"
_OF_PART = "part CROSS JOIN message ON message.number = part.message"
_OF_PASSED = "passed CROSS JOIN {0} ON {0}.number = passed.owner"
_PASSED_PARTS = f"passed CROSS JOIN {_OF_PART} AND part.number = passed.owner"
_SOURCES = (
    ("seq", _EVENT, "event"),
    ("number", _MADE, "session"),
    ("changed", _SESSION, "session"),
    ("passed.number", _SESSION, _OF_PASSED.format("session")),
    ("number", _MESSAGE, "message"),
    ("changed", _MESSAGE, "message"),
    ("passed.number", _MESSAGE, _OF_PASSED.format("message")),
    ("part.number", _PART, _OF_PART),
    ("part.changed", _PART, _OF_PART),
    ("passed.number", _PART, _PASSED_PARTS),
)
"""What is read, each in the order of its numbers: the column with them, the others, the tables."""
# ?4: the roots as a JSON list of session ids.
_TREE = """
    WITH RECURSIVE tree (id) AS (
        SELECT value FROM json_each(?4) UNION SELECT session.id FROM session JOIN tree ON parent_id = tree.id)"""


def _make_sql(condition: str = "") -> str:
    """Make the query of the changes between two numbers, merged in their order."""
    selects = (
        f"{number}, {columns} FROM {tables} WHERE {number} > ?1 AND {number} < ?2{condition}"
        for number, columns, tables in _SOURCES
    )
    return f"SELECT {' UNION ALL SELECT '.join(selects)} ORDER BY 1 LIMIT ?3"


_READ_ALL = _make_sql()
_READ_TREE = _TREE + _make_sql(" AND (owner IS NULL OR owner IN (SELECT id FROM tree))")


class Outbox:
    """Numbers events in the order of their transactions, over all processes."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen_version = self._read_data_version()
        self._place = f"{zlib.crc32(str(db.path).encode(errors='surrogateescape')):014x}"

    def take_numbers(self, count: int) -> int:
        """Take the next numbers, within the caller's transaction; return the first."""
        # Whatever writes beside codeloop, a number that is taken is not given again.
        sql = "UPDATE outbox SET last = max(last, (SELECT coalesce(max(seq), 0) FROM event)) + ?"
        self._db.execute(sql, (count,))
        return self.read_last_seq() - count + 1

    def stamp(self, event: StoredEvent, number: int) -> StoredEvent:
        """Return the event with the id that its number gives it, now and whenever it is read."""
        return replace(event, id=f"evt_{number:012x}{self._place}")

    def add(self, event: StoredEvent, number: int) -> None:
        """Add an event that no row of another table says, within the caller's transaction."""
        row = (number, get_session_id(event), encode_json(event))
        self._db.execute("INSERT INTO event (seq, session_id, json) VALUES (?, ?, ?)", row)

    def read_events(
        self, after: int, until: int | None = None, roots: Collection[str] | None = None
    ) -> list[StampedEvent]:
        """Return the stored events with `after < seq < until`, in order, at most a batch of them.

        `roots`: only the events of these sessions, of their subagents, and of no session. SQLite
        filters out the other ones: hundreds of processes may write to one database, and decoding an
        event costs far more than skipping it.
        """
        values = (after, _NO_END if until is None else until, BATCH_SIZE)
        if roots is None:
            rows = self._db.fetch_all(_READ_ALL, *values)
        else:
            rows = self._db.fetch_all(_READ_TREE, *values, encode_json(tuple(roots)))
        return [
            StampedEvent(number, self.stamp(_make_event(*row), number)) for number, *row in rows
        ]

    def read_pruned_seq(self) -> int:
        """Return the number that a follower must have seen to get everything since;
        those before are no longer kept.
        """
        row = self._db.fetch_one("SELECT pruned FROM outbox")
        return row[0] if row else 0

    def read_last_seq(self) -> int:
        """Return the highest number that was ever given to an event."""
        row = self._db.fetch_one("SELECT last FROM outbox")
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
        if last // PRUNE_INTERVAL == (first - 1) // PRUNE_INTERVAL:
            return
        pruned = last - STORE_EVENTS.value
        if pruned > 0:
            with self._db.transaction():
                self._db.execute("DELETE FROM event WHERE seq <= ?", (pruned,))
                self._db.execute("DELETE FROM passed WHERE number <= ?", (pruned,))
                self._db.execute("UPDATE outbox SET pruned = max(pruned, ?)", (pruned,))

    def _read_data_version(self) -> int:
        # SQLite changes this number when another connection has committed;
        # reading it does not touch the tables.
        row = self._db.fetch_one("PRAGMA data_version")
        return row[0] if row else 0


def _make_event(
    kind: str,
    session_id: str,
    message_id: str,
    part_id: str,
    time: int,
    data: bytes,
) -> StoredEvent:
    """Return the event that a row stands for."""
    match kind:
        case "made":
            info = SessionInfo(session_id=session_id, info=_decode_session(data))
            return SessionCreated(properties=info)
        case "session":
            info = SessionInfo(session_id=session_id, info=_decode_session(data))
            return SessionUpdated(properties=info)
        case "message":
            message = decode_message(data, session_id, message_id)
            return MessageUpdated(properties=MessageInfo(session_id=session_id, info=message))
        case "part":
            part = decode_part(data, session_id, message_id, part_id)
            return PartUpdated(properties=PartInfo(session_id=session_id, part=part, time=time))
        case _:
            return _event_decoder.decode(data)
