"""Reads the database of OpenCode: its sessions, with the messages and parts of each."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from codeloop.schema.wire import DECODE_ERRORS, JSON
from codeloop.store.database import StoreError


def read_opencode_sessions(file: Path) -> Iterator[JSON]:
    """Yield the sessions as documents of `opencode export`, subagents' after
    those that started them. Raises StoreError.
    """
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            sessions = database.execute(
                "select * from session order by parent_id is not null, time_created"
            ).fetchall()
            for row in sessions:
                messages = database.execute(
                    "select id, data from message where session_id = ? order by time_created, id",
                    (row["id"],),
                ).fetchall()
                yield {
                    "info": _make_info(row),
                    "messages": [_read_message(database, each) for each in messages],
                }
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
