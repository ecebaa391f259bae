"""Checks of a stored session after a fault, which read the database file itself."""

import json
import sqlite3
from contextlib import closing
from typing import Any

from tests.cli.program import Desk
from tests.support.stored_rows import open_rows


def check_integrity(desk: Desk) -> None:
    """Check the database as SQLite does."""
    with closing(sqlite3.connect(desk.database())) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def read_parts(desk: Desk) -> list[dict[str, Any]]:
    """Return all stored parts in their order."""
    with closing(open_rows(desk.database())) as database:
        rows = database.execute("SELECT data FROM stored_part ORDER BY id")
        return [json.loads(data) for (data,) in rows]


def list_calls_without_result(desk: Desk) -> list[str]:
    """Return the ids of calls that were left open."""
    return [
        part["id"]
        for part in read_parts(desk)
        if part["type"] == "tool" and part["state"]["status"] in {"pending", "running"}
    ]
