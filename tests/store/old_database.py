"""Databases as earlier versions of codeloop left them: their tables, and rows of plain JSON."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from codeloop.schema.message import Message, Session
from codeloop.schema.part import Part
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.wire import encode_json
from codeloop.store import database
from codeloop.store.database import MIGRATIONS


@contextmanager
def old_database(path: Path, version: int) -> Generator[sqlite3.Connection]:
    """Make a database of that version, and close it at the end."""
    path.parent.mkdir(exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    for script in MIGRATIONS[:version]:
        for statement in database._split_script(script):
            connection.execute(statement)
    try:
        yield connection
    finally:
        connection.close()


def put_session(old: sqlite3.Connection, info: Session) -> None:
    row = (info.id, info.parent_id, info.directory, info.title, info.time.updated)
    old.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", (*row, encode_json(info)))
    put_event(old, info.id)


def put_message(old: sqlite3.Connection, info: Message) -> None:
    row = (info.id, info.session_id, info.time.created, encode_json(info))
    old.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
    put_event(old, info.session_id)


def put_part(old: sqlite3.Connection, part: Part) -> None:
    row = (part.id, part.message_id, part.session_id, encode_json(part))
    old.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    put_event(old, part.session_id)


def put_request(old: sqlite3.Connection, request: PermissionRequest, reply: str) -> None:
    row = (request.id, request.session_id, reply, encode_json(request))
    old.execute("INSERT INTO permission VALUES (?, ?, ?, ?)", row)


def put_event(old: sqlite3.Connection, session_id: str) -> None:
    old.execute("INSERT INTO event (session_id, data) VALUES (?, '{}')", (session_id,))
