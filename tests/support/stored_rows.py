"""The rows of a database as tests read them: with plain JSON, and the ids that belong to each."""

import sqlite3
from pathlib import Path

from codeloop.schema.event import get_session_id
from codeloop.store.database import Database, add_functions
from codeloop.store.outbox import Outbox

_VIEWS = """
CREATE TEMP VIEW stored_message AS SELECT id, session_id, created,
    CAST(json_of(data, session_id, id) AS TEXT) AS data FROM main.message;
CREATE TEMP VIEW stored_part AS SELECT part.id, message.id AS message_id, session_id, created,
    CAST(json_of(part.data, session_id, message.id, part.id) AS TEXT) AS data
    FROM main.part JOIN main.message ON message.number = part.message;
"""


def open_rows(path: Path) -> sqlite3.Connection:
    """Open a database with the views `stored_message` and `stored_part`."""
    connection = sqlite3.connect(path)
    add_functions(connection)
    connection.executescript(_VIEWS)
    return connection


def read_feed(path: Path) -> list[tuple[int, str | None, str]]:
    """Return number, session and type of every event that a follower would get from the start."""
    database = Database(path, read_only=True)
    try:
        outbox = Outbox(database)
        after = outbox.read_pruned_seq()
        found = list[tuple[int, str | None, str]]()
        while batch := outbox.read_events(after):
            after = batch[-1].seq or after
            found += [
                (each.seq or 0, get_session_id(each.event), str(each.event.__struct_config__.tag))
                for each in batch
            ]
        return found
    finally:
        database.close()
