"""Sessions of OpenCode: its database, or the files of its versions before that."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from codeloop.app.switch.sessions.foreign_session import parse_json
from codeloop.kit.jsonc import is_object
from codeloop.schema.wire import JSON

DATABASE = "opencode.db"


def read_documents(data: Path) -> Iterator[JSON]:
    """Yield the sessions of a data folder as documents of `opencode export`, subagents' after
    those that started them. Raises OSError, sqlite3.Error.
    """
    if (data / DATABASE).is_file():
        yield from _read_database(data / DATABASE)
        return
    storage = data / "storage"
    infos = [_read_file(file) for file in sorted((storage / "session").glob("*/ses_*.json"))]
    for info in sorted(infos, key=lambda each: bool(each.get("parentID"))):
        messages = [
            {
                "info": message,
                "parts": [
                    _read_file(part)
                    for part in sorted((storage / "part" / file.stem).glob("prt_*.json"))
                ],
            }
            for file in sorted((storage / "message" / str(info.get("id"))).glob("msg_*.json"))
            if (message := _read_file(file))
        ]
        yield {"info": info, "messages": messages}


def _read_file(file: Path) -> JSON:
    value = parse_json(file.read_bytes())
    return value if is_object(value) else {}


def _read_database(file: Path) -> Iterator[JSON]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        sessions = database.execute(
            "select * from session order by parent_id is not null, time_created"
        ).fetchall()
        for row in sessions:
            messages = [
                {
                    "info": {**_read_object(message["data"]), "id": message["id"]},
                    "parts": [
                        {**_read_object(part["data"]), "id": part["id"]}
                        for part in database.execute(
                            "select id, data from part where message_id = ? order by id",
                            (message["id"],),
                        )
                    ],
                }
                for message in database.execute(
                    "select id, data from message where session_id = ? order by time_created, id",
                    (row["id"],),
                ).fetchall()
            ]
            yield {"info": _make_info(row), "messages": messages}


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
    value = parse_json(text) if isinstance(text, str | bytes) else None
    return value if is_object(value) else {}
