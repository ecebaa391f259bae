"""Applies an event to the state tables of the database, and reads a session's messages from them.

`database.py` defines the tables.
"""

import msgspec

from codeloop.schema.event import (
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
    StoredEvent,
    TodoUpdated,
)
from codeloop.schema.message import Message, Session
from codeloop.schema.part import Part
from codeloop.schema.wire import encode_json
from codeloop.store.conversation import Entry
from codeloop.store.database import Database

_message_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_part_decoder: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)

_DELETE_SESSION_STATEMENTS = (
    "DELETE FROM part WHERE session_id = ?",
    "DELETE FROM message WHERE session_id = ?",
    "DELETE FROM todo WHERE session_id = ?",
    "DELETE FROM facts WHERE session_id = ?",
    "DELETE FROM permission WHERE session_id = ?",
    "DELETE FROM remembered WHERE session_id = ? AND directory = ''",
    "DELETE FROM decision WHERE session_id = ?",
    "DELETE FROM question WHERE session_id = ?",
    "DELETE FROM event WHERE session_id = ?",
    "DELETE FROM session WHERE id = ?",
)


def apply_event(db: Database, event: StoredEvent) -> None:
    """Apply an event to the state tables. Rows are put in place by their ids,
    so twice is the same as once.
    """
    match event:
        case SessionCreated(properties=p) | SessionUpdated(properties=p):
            _replace_session(db, p.info)
        case SessionDeleted(properties=p):
            _delete_session(db, p.session_id)
        case MessageUpdated(properties=p):
            db.execute(
                "INSERT OR REPLACE INTO message (id, session_id, created, data) VALUES (?, ?, ?, ?)",
                (p.info.id, p.session_id, p.info.time.created, encode_json(p.info)),
            )
        case MessageRemoved(properties=p):
            db.execute("DELETE FROM part WHERE message_id = ?", (p.message_id,))
            db.execute("DELETE FROM message WHERE id = ?", (p.message_id,))
        case PartUpdated(properties=p):
            db.execute(
                "INSERT OR REPLACE INTO part (id, message_id, session_id, data) VALUES (?, ?, ?, ?)",
                (p.part.id, p.part.message_id, p.session_id, encode_json(p.part)),
            )
        case PartRemoved(properties=p):
            db.execute("DELETE FROM part WHERE id = ?", (p.part_id,))
        case TodoUpdated(properties=p):
            db.execute(
                "INSERT OR REPLACE INTO todo (session_id, data) VALUES (?, ?)",
                (p.session_id, encode_json(p.todos)),
            )
        case PermissionAsked(properties=p):
            db.execute(
                "INSERT OR REPLACE INTO permission (id, session_id, reply, data) VALUES (?, ?, NULL, ?)",
                (p.id, p.session_id, encode_json(p)),
            )
        case PermissionReplied(properties=p):
            db.execute(
                "UPDATE permission SET reply = ? WHERE id = ? AND reply IS NULL",
                (p.reply, p.request_id),
            )
        case QuestionAsked(properties=p):
            db.execute(
                "INSERT OR REPLACE INTO question (id, session_id, open, data) VALUES (?, ?, 1, ?)",
                (p.id, p.session_id, encode_json(p)),
            )
        case QuestionReplied(properties=p) | QuestionRejected(properties=p):
            db.execute("UPDATE question SET open = 0 WHERE id = ?", (p.request_id,))


def _replace_session(db: Database, info: Session) -> None:
    db.execute(
        "INSERT OR REPLACE INTO session (id, parent_id, directory, title, updated, data) VALUES (?, ?, ?, ?, ?, ?)",
        (info.id, info.parent_id, info.directory, info.title, info.time.updated, encode_json(info)),
    )


def _delete_session(db: Database, session_id: str) -> None:
    for statement in _DELETE_SESSION_STATEMENTS:
        db.execute(statement, (session_id,))
    db.has_deleted = True


def read_entries(db: Database, session_id: str) -> list[Entry]:
    """Return the messages of a session with their parts, oldest first."""
    parts: dict[str, list[Part]] = {}
    for message_id, data in db.fetch_all(
        "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id", session_id
    ):
        parts.setdefault(message_id, []).append(_part_decoder.decode(data))
    rows = db.fetch_all(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY created, id", session_id
    )
    return [Entry(_message_decoder.decode(data), tuple(parts.get(key, ()))) for key, data in rows]
