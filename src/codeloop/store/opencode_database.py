"""Reads the database of OpenCode: its sessions, with the messages and parts of each."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from codeloop.schema.wire import DECODE_ERRORS, JSON
from codeloop.store.database import StoreError


def list_opencode_sessions(file: Path) -> list[str]:
    """Return the ids of the sessions, subagents' after those that started them.
    Raises StoreError.
    """
    with _open(file) as database:
        rows = database.execute(
            "select id from session order by parent_id is not null, time_created"
        )
        return [str(row["id"]) for row in rows]


def read_opencode_session(file: Path, session_id: str) -> JSON:
    """Return a session as a document of `opencode export`. Raises StoreError."""
    with _open(file) as database:
        row = database.execute("select * from session where id = ?", (session_id,)).fetchone()
        messages = database.execute(
            "select id, data from message where session_id = ? order by time_created, id",
            (session_id,),
        ).fetchall()
        if row is None:
            raise StoreError(f"{file} has no session {session_id} any more")
        return {
            "info": _make_info(row),
            "messages": [_read_message(database, each) for each in messages],
        }


@contextmanager
def _open(file: Path) -> Generator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            yield database
    except sqlite3.Error as error:
        raise StoreError(f"{file} can't be read: {error}") from error


def _read_message(database: sqlite3.Connection, row: sqlite3.Row) -> JSON:
    parts = database.execute(
        "select id, data from part where message_id = ? order by id", (row["id"],)
    )
    return {
        "info": {**_read_object(row["data"]), "id": row["id"]},
        "parts": [{**_read_object(part["data"]), "id": part["id"]} for part in parts],
    }


def _make_info(row: sqlite3.Row) -> JSON:
    info: JSON = {
        "id": row["id"],
        "slug": row["slug"],
        "directory": row["directory"],
        "title": row["title"],
        "version": row["version"],
        "time": {"created": row["time_created"], "updated": row["time_updated"]},
    }
    if row["parent_id"]:
        info["parentID"] = row["parent_id"]
    return info


def _read_object(text: Any) -> JSON:
    try:
        return msgspec.json.decode(text, type=JSON)
    except (TypeError, *DECODE_ERRORS):
        return {}
