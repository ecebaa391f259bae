"""The only writer of state and the only publisher of events.

`append` applies events to the state tables and puts them into the outbox in one transaction; then it wakes
the followers. `whisper` only wakes them. All calls are made on the loop's thread: a transaction takes some 25 µs.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.schema.errors import OperationError
from codeloop.schema.event import (
    Event,
    LiveEvent,
    MessageRemoved,
    MessageUpdated,
    PartRemoved,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionCreated,
    SessionDeleted,
    SessionUpdated,
    Stamped,
    StoredEvent,
    TodoUpdated,
    session_of,
)
from codeloop.schema.limits import STORE_EVENTS
from codeloop.schema.message import Message, Session, Todo
from codeloop.schema.part import Part
from codeloop.schema.question import QuestionRequest
from codeloop.schema.rules import PermissionRequest
from codeloop.store.conversation import Conversation, Entry, View
from codeloop.store.database import StoreError, explained, open_database, transaction
from codeloop.store.follow import Followers

_encode = msgspec.json.Encoder().encode
_session = msgspec.json.Decoder(Session).decode
_message: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_part: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)
_event: msgspec.json.Decoder[StoredEvent] = msgspec.json.Decoder(StoredEvent)
_todos = msgspec.json.Decoder(list[Todo]).decode
_question = msgspec.json.Decoder(QuestionRequest).decode
_request = msgspec.json.Decoder(PermissionRequest).decode

BATCH = 500
PRUNE_EVERY = 1_000
OPEN_VIEWS = 8

DELETE_SESSION = (
    "DELETE FROM part WHERE session_id = ?",
    "DELETE FROM message WHERE session_id = ?",
    "DELETE FROM todo WHERE session_id = ?",
    "DELETE FROM permission WHERE session_id = ?",
    "DELETE FROM question WHERE session_id = ?",
    "DELETE FROM event WHERE session_id = ?",
    "DELETE FROM session WHERE id = ?",
)


class Store:
    """The state of one project, in one SQLite file. Raises StoreError (a CodeloopError) when the file fails."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = open_database(path)
        self._followers = Followers(self)
        self._views: OrderedDict[str, View] = OrderedDict()
        self._seen = self.last_seq()
        self._version = self._data_version()

    def close(self) -> None:
        """Close the file. Followers stop hearing of anything."""
        self._followers.close()
        self._views.clear()
        self._db.close()

    def append(self, *events: StoredEvent) -> int:
        """Store events in ONE transaction and wake the followers; gives the sequence number of the last one."""
        if not events:
            return self.last_seq()
        with explained(self.path):
            seq = 0
            with transaction(self._db):
                for event in events:
                    self._apply(event)
                    row = self._db.execute(
                        "INSERT INTO event (session_id, data) VALUES (?, ?)", (session_of(event), _encode(event))
                    )
                    seq = row.lastrowid or 0
        first = seq - len(events) + 1
        self._catch_up(first)
        self._fold(events)
        self._seen = seq
        self._followers.publish(first, events)
        if seq // PRUNE_EVERY != (first - 1) // PRUNE_EVERY:
            with suppress(StoreError):  # the events are stored; old ones can also be removed the next time
                self._prune(seq)
        return seq

    def whisper(self, event: LiveEvent | PartUpdated) -> None:
        """Show an event to followers in this process without storing it: deltas, status, a tool's progress."""
        self._followers.whisper(event)

    def follow(self, after: int | None = None, *, session: str | None = None) -> AsyncGenerator[Stamped, None]:
        """Give every stored event after `after` (None: from now on), then live ones, gap-free, from all processes.

        Raises GapError when the events after `after` are no longer kept.
        """
        return self._followers.follow(self.last_seq() if after is None else after, session)

    # Reading

    def session(self, session_id: str) -> Session:
        """Give a session. Raises OperationError (NotFoundError)."""
        found = self.find_session(session_id)
        if found is None:
            raise OperationError("NotFoundError", f"Session not found: {session_id}")
        return found

    def find_session(self, session_id: str) -> Session | None:
        """Give a session, or None."""
        row = self._one("SELECT data FROM session WHERE id = ?", session_id)
        return _session(row[0]) if row else None

    def sessions(self, *, directory: str | None = None, parent: str | None = None, limit: int = 100) -> list[Session]:
        """Give sessions, newest change first: of a directory, or the children of a session."""
        sql = """
            SELECT data FROM session WHERE (?1 IS NULL OR directory = ?1) AND (?2 IS NULL OR parent_id = ?2)
            ORDER BY updated DESC, id LIMIT ?3"""
        return [_session(row[0]) for row in self._all(sql, directory, parent, limit)]

    def conversation(self, session_id: str) -> Conversation:
        """Give a session with all messages and parts. Kept in memory: asking again costs microseconds.

        Raises OperationError (NotFoundError).
        """
        self._catch_up(None)
        view = self._views.get(session_id)
        if view is None:
            view = View(self.session(session_id), self._read_entries(session_id))
            self._views[session_id] = view
            while len(self._views) > OPEN_VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(session_id)
        return view.conversation()

    def todos(self, session_id: str) -> list[Todo]:
        """Give the task list of a session."""
        row = self._one("SELECT data FROM todo WHERE session_id = ?", session_id)
        return _todos(row[0]) if row else []

    def permission(self, request_id: str) -> PermissionRequest | None:
        """Give a question, answered or not."""
        row = self._one("SELECT data FROM permission WHERE id = ?", request_id)
        return _request(row[0]) if row else None

    def pending_permissions(self, session_id: str | None = None) -> list[PermissionRequest]:
        """Give the questions that wait for an answer."""
        sql = "SELECT data FROM permission WHERE reply IS NULL AND (? IS NULL OR session_id = ?) ORDER BY id"
        return [_request(row[0]) for row in self._all(sql, session_id, session_id)]

    def granted(self, session_id: str) -> list[PermissionRequest]:
        """Give the questions answered "always" in this session or one that it is a child of."""
        sql = """
            WITH RECURSIVE line(id) AS (
                VALUES (?) UNION SELECT parent_id FROM session JOIN line USING (id) WHERE parent_id IS NOT NULL)
            SELECT data FROM permission WHERE reply = 'always' AND session_id IN line ORDER BY id"""
        return [_request(row[0]) for row in self._all(sql, session_id)]

    def pending_questions(self, session_id: str | None = None) -> list[QuestionRequest]:
        """Give the model's questions that wait for an answer."""
        sql = "SELECT data FROM question WHERE open AND (? IS NULL OR session_id = ?) ORDER BY id"
        return [_question(row[0]) for row in self._all(sql, session_id, session_id)]

    # The outbox, for followers

    def read_events(self, after: int, until: int | None = None) -> list[Stamped]:
        """Give the stored events with `after < seq < until`, at most a batch, in order."""
        sql = "SELECT seq, data FROM event WHERE seq > ? AND (? IS NULL OR seq < ?) ORDER BY seq LIMIT ?"
        return [Stamped(row[0], _event.decode(row[1])) for row in self._all(sql, after, until, until, BATCH)]

    def last_seq(self) -> int:
        """Give the highest sequence number ever handed out."""
        row = self._one("SELECT seq FROM sqlite_sequence WHERE name = 'event'")
        return row[0] if row else 0

    def changed_elsewhere(self) -> bool:
        """Tell whether another process has stored something since the last time this was asked."""
        version = self._data_version()
        changed = version != self._version
        self._version = version
        return changed

    def _data_version(self) -> int:
        with explained(self.path):
            return self._db.execute("PRAGMA data_version").fetchone()[0]

    # Keeping the views in step

    def _catch_up(self, until: int | None) -> None:
        """Apply to the open views what other processes have stored since the last look."""
        if until is None:
            until = self.last_seq() + 1
        if not self._views:
            self._seen = until - 1
            return
        while self._seen + 1 < until:
            batch = self.read_events(self._seen, until)
            if not batch or (batch[0].seq or 0) > self._seen + 1:
                self._views.clear()
                self._seen = until - 1
                return
            self._fold(stamped.event for stamped in batch)
            self._seen = batch[-1].seq or self._seen

    def _fold(self, events: Iterable[Event]) -> None:
        if not self._views:
            return
        for event in events:
            match event:
                case SessionDeleted(properties=p):
                    self._views.pop(p.session_id, None)
                case _:
                    view = self._views.get(session_of(event) or "")
                    if view is not None:
                        view.apply(event)

    def _read_entries(self, session_id: str) -> list[Entry]:
        parts: dict[str, list[Part]] = {}
        for message_id, data in self._all(
            "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id", session_id
        ):
            parts.setdefault(message_id, []).append(_part.decode(data))
        rows = self._all("SELECT id, data FROM message WHERE session_id = ? ORDER BY created, id", session_id)
        return [Entry(_message.decode(data), tuple(parts.get(key, ()))) for key, data in rows]

    # Writing

    def _apply(self, event: StoredEvent) -> None:
        match event:
            case SessionCreated(properties=p) | SessionUpdated(properties=p):
                self._put_session(p.info)
            case SessionDeleted(properties=p):
                self._delete_session(p.session_id)
            case MessageUpdated(properties=p):
                self._db.execute(
                    "INSERT OR REPLACE INTO message (id, session_id, created, data) VALUES (?, ?, ?, ?)",
                    (p.info.id, p.session_id, p.info.time.created, _encode(p.info)),
                )
            case MessageRemoved(properties=p):
                self._db.execute("DELETE FROM part WHERE message_id = ?", (p.message_id,))
                self._db.execute("DELETE FROM message WHERE id = ?", (p.message_id,))
            case PartUpdated(properties=p):
                self._db.execute(
                    "INSERT OR REPLACE INTO part (id, message_id, session_id, data) VALUES (?, ?, ?, ?)",
                    (p.part.id, p.part.message_id, p.session_id, _encode(p.part)),
                )
            case PartRemoved(properties=p):
                self._db.execute("DELETE FROM part WHERE id = ?", (p.part_id,))
            case TodoUpdated(properties=p):
                self._db.execute(
                    "INSERT OR REPLACE INTO todo (session_id, data) VALUES (?, ?)", (p.session_id, _encode(p.todos))
                )
            case PermissionAsked(properties=p):
                self._db.execute(
                    "INSERT OR REPLACE INTO permission (id, session_id, reply, data) VALUES (?, ?, NULL, ?)",
                    (p.id, p.session_id, _encode(p)),
                )
            case PermissionReplied(properties=p):
                self._db.execute("UPDATE permission SET reply = ? WHERE id = ? AND reply IS NULL", (p.reply, p.request_id))
            case QuestionAsked(properties=p):
                self._db.execute(
                    "INSERT OR REPLACE INTO question (id, session_id, open, data) VALUES (?, ?, 1, ?)",
                    (p.id, p.session_id, _encode(p)),
                )
            case QuestionReplied(properties=p) | QuestionRejected(properties=p):
                self._db.execute("UPDATE question SET open = 0 WHERE id = ?", (p.request_id,))

    def _put_session(self, info: Session) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO session (id, parent_id, directory, title, updated, data) VALUES (?, ?, ?, ?, ?, ?)",
            (info.id, info.parent_id, info.directory, info.title, info.time.updated, _encode(info)),
        )

    def _delete_session(self, session_id: str) -> None:
        for statement in DELETE_SESSION:
            self._db.execute(statement, (session_id,))

    def _prune(self, seq: int) -> None:
        with explained(self.path):
            self._db.execute("DELETE FROM event WHERE seq <= ?", (seq - STORE_EVENTS.value,))

    def _one(self, sql: str, *values: str | int | None) -> sqlite3.Row | None:
        with explained(self.path):
            return self._db.execute(sql, values).fetchone()

    def _all(self, sql: str, *values: str | int | None) -> list[sqlite3.Row]:
        with explained(self.path):
            return self._db.execute(sql, values).fetchall()
