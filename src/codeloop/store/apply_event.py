"""Applies an event to the state tables of the database, and reads a session's messages from them.

`migrations.py` defines the tables.
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
from codeloop.store.packing import pack, unpack

_message_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_part_decoder: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)

_PUT_SESSION = """
    INSERT INTO session (id, parent_id, directory, title, updated, data, number) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET parent_id = excluded.parent_id, directory = excluded.directory,
        title = excluded.title, updated = excluded.updated, data = excluded.data, changed = excluded.number"""
_PUT_MESSAGE = """
    INSERT INTO message (number, id, session_id, created, data) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET session_id = excluded.session_id, created = excluded.created,
        data = excluded.data, changed = excluded.number"""
# A part whose message was removed meanwhile is not stored: nobody would find it.
_PUT_PART = """
    INSERT INTO part (number, id, time, data, message) SELECT ?, ?, ?, ?, number FROM message WHERE id = ?
    ON CONFLICT (message, id) DO UPDATE SET time = excluded.time, data = excluded.data, changed = excluded.number"""
_DELETE_SESSION_STATEMENTS = (
    "DELETE FROM part WHERE message IN (SELECT number FROM message WHERE session_id = ?)",
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


def apply_event(db: Database, event: StoredEvent, number: int) -> bool:
    """Apply an event to the state tables. Rows are put in place by their ids, so twice is the same
    as once. Return whether a row says all of it, and keeps its number.
    """
    match event:
        case SessionCreated(properties=p) | SessionUpdated(properties=p):
            _replace_session(db, p.info, number)
            return True
        case MessageUpdated(properties=p):
            data = pack(encode_json(p.info), p.session_id, p.info.id)
            db.execute(_PUT_MESSAGE, (number, p.info.id, p.session_id, p.info.time.created, data))
            return True
        case PartUpdated(properties=p):
            part = p.part
            data = pack(encode_json(part), p.session_id, part.message_id, part.id)
            db.execute(_PUT_PART, (number, part.id, p.time, data, part.message_id))
            return True
        case _:
            _apply_other_event(db, event)
            return False


def _apply_other_event(db: Database, event: StoredEvent) -> None:
    """Apply an event that is stored with its JSON as well: no row says what it says."""
    match event:
        case SessionDeleted(properties=p):
            _delete_session(db, p.session_id)
        case MessageRemoved(properties=p):
            db.execute(
                "DELETE FROM part WHERE message = (SELECT number FROM message WHERE id = ?)",
                (p.message_id,),
            )
            db.execute("DELETE FROM message WHERE id = ?", (p.message_id,))
        case PartRemoved(properties=p):
            db.execute(
                "DELETE FROM part WHERE message = (SELECT number FROM message WHERE id = ?) AND id = ?",
                (p.message_id, p.part_id),
            )
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
        case _:
            pass


def _replace_session(db: Database, info: Session, number: int) -> None:
    data = encode_json(info)
    row = (info.id, info.parent_id, info.directory, info.title, info.time.updated, data, number)
    db.execute(_PUT_SESSION, row)


def _delete_session(db: Database, session_id: str) -> None:
    for statement in _DELETE_SESSION_STATEMENTS:
        db.execute(statement, (session_id,))
    db.has_deleted = True


def read_entries(db: Database, session_id: str) -> list[Entry]:
    """Return the messages of a session with their parts, oldest first."""
    parts: dict[int, list[Part]] = {}
    rows = db.fetch_all(
        "SELECT number, id, data FROM message WHERE session_id = ? ORDER BY created, id", session_id
    )
    ids = {number: message_id for number, message_id, _ in rows}
    for number, part_id, data in db.fetch_all(
        "SELECT message, id, data FROM part WHERE message IN (SELECT number FROM message WHERE session_id = ?)"
        " ORDER BY message, id",
        session_id,
    ):
        if number in ids:
            part = decode_part(data, session_id, ids[number], part_id)
            parts.setdefault(number, []).append(part)
    return [
        Entry(decode_message(data, session_id, message_id), tuple(parts.get(number, ())))
        for number, message_id, data in rows
    ]


def decode_message(data: bytes, session_id: str, message_id: str) -> Message:
    """Return the message of a stored row."""
    return _message_decoder.decode(unpack(data, session_id, message_id))


def decode_part(data: bytes, session_id: str, message_id: str, part_id: str) -> Part:
    """Return the part of a stored row."""
    return _part_decoder.decode(unpack(data, session_id, message_id, part_id))
