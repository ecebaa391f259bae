"""Read-only queries on a project's database: lists of sessions, pages of messages, searches.

Reports and handlers use them through `Store.queries`,
or through `open_queries` for a project that is not open.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from codeloop.schema.message import Message, Session
from codeloop.schema.part import Part
from codeloop.store.apply_event import decode_message, decode_part
from codeloop.store.conversation import Entry
from codeloop.store.database import Database
from codeloop.store.lease import Leases
from codeloop.store.permission_records import PermissionRecords

if TYPE_CHECKING:
    from codeloop.schema.api.session_reports import SessionOverview

_decode_session = msgspec.json.Decoder(Session).decode

NO_LIMIT = 1 << 60
"""A `limit` that returns all rows. It is also later than any time in ms."""
_NON_ASCII = "[^\x00-\x7f]"


class SessionFilter(Struct, frozen=True, kw_only=True):
    """The sessions to list; a field that is None accepts all.

    `below_path`: a path in the work tree; accepts sessions at this path and below it. `only_roots`:
    leaves subagents out. `changed_since`: in ms since the epoch.
    `search`: a part of the title, ignoring case.
    """

    directory: str | None = None
    below_path: str | None = None
    only_roots: bool = False
    changed_since: int | None = None
    search: str | None = None
    limit: int = 100


class UsedDirectory(Struct, frozen=True):
    """A directory in which sessions were held; `path`: the same, relative to the work tree.
    Times in ms.
    """

    directory: str
    path: str
    created: int
    updated: int


class Queries:
    """Queries of one project's database. Each raises StoreError when the file fails."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.permissions = PermissionRecords(db)
        """In a database of `open_queries` only its lists can be used: storing raises StoreError."""

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def find_sessions(self, session_filter: SessionFilter) -> list[Session]:
        """Return the sessions that a filter accepts, newest change first."""
        sql = """
            SELECT data FROM session
            WHERE (?1 IS NULL OR directory = ?1) AND (?2 = 0 OR parent_id IS NULL) AND (?3 IS NULL OR updated >= ?3)
                AND (?4 IS NULL OR title LIKE ?4 ESCAPE '!')
                AND (?5 IS NULL OR json_extract(CAST(data AS TEXT), '$.path') = ?5
                    OR substr(json_extract(CAST(data AS TEXT), '$.path'), 1, length(?5) + 1) = ?5 || '/')
            ORDER BY updated DESC, id LIMIT ?6"""
        search = session_filter.search or ""
        # LIKE accepts more titles than match, so the limit can only be applied below.
        limit = NO_LIMIT if search else session_filter.limit
        values = (
            session_filter.directory,
            int(session_filter.only_roots),
            session_filter.changed_since,
            make_like_pattern(search) if search else None,
            session_filter.below_path,
        )
        matches = (_decode_session(row[0]) for row in self._db.fetch_all(sql, *values, limit))
        needle = search.casefold()
        return list(
            islice(
                (each for each in matches if needle in each.title.casefold()), session_filter.limit
            )
        )

    def list_busy_sessions(self) -> list[str]:
        """Return the ids of the sessions that a living process works on."""
        leases = Leases(self._db)
        return [
            row[0]
            for row in self._db.fetch_all("SELECT session_id FROM lease")
            if leases.is_held(row[0])
        ]

    def list_session_overviews(self, limit: int) -> "list[SessionOverview]":
        """Return an overview of each session that is neither a subagent nor archived,
        newest change first.
        """
        # Only overviews need it, so most runs don't load it.
        from codeloop.store.session_overviews import list_session_overviews

        return list_session_overviews(self._db, limit)

    def find_session(self, session_id: str) -> Session | None:
        """Return one session, or None."""
        row = self._db.fetch_one("SELECT data FROM session WHERE id = ?", session_id)
        return _decode_session(row[0]) if row else None

    def list_directories(self) -> list[UsedDirectory]:
        """Return the directories in which sessions were held, newest change first."""
        sql = """
            SELECT directory, json_extract(CAST(data AS TEXT), '$.path'),
                min(json_extract(CAST(data AS TEXT), '$.time.created')), max(updated)
            FROM session GROUP BY directory ORDER BY max(updated) DESC, directory"""
        return [
            UsedDirectory(directory, path or "", created, updated)
            for directory, path, created, updated in self._db.fetch_all(sql)
        ]

    def list_titles(self, start: str) -> list[str]:
        """Return the session titles that begin with a text."""
        sql = "SELECT title FROM session WHERE substr(title, 1, ?) = ?"
        return [row[0] for row in self._db.fetch_all(sql, len(start), start)]

    def read_message_page(
        self, session_id: str, limit: int | None, before: tuple[int, str] | None
    ) -> tuple[list[Entry], bool]:
        """Return a page of messages, oldest first, and whether older ones remain.

        The page has the newest messages, at most `limit`; with `before`, the creation (ms) and the
        id of a message, those older than that.
        """
        created, message_id = before or (NO_LIMIT, "")
        sql = """
            SELECT number, id, data FROM message WHERE session_id = ? AND (created, id) < (?, ?)
            ORDER BY created DESC, id DESC LIMIT ?"""
        # One row more than fits on the page shows whether there are older messages.
        count = NO_LIMIT if limit is None else limit + 1
        rows = self._db.fetch_all(sql, session_id, created, message_id, count)
        page = rows if limit is None else rows[:limit]
        entries = [self._read_entry(session_id, *row) for row in reversed(page)]
        return entries, len(rows) > len(page)

    def _read_entry(self, session_id: str, number: int, message_id: str, data: bytes) -> Entry:
        rows = self._db.fetch_all("SELECT id, data FROM part WHERE message = ? ORDER BY id", number)
        parts = (decode_part(each, session_id, message_id, part_id) for part_id, each in rows)
        return Entry(decode_message(data, session_id, message_id), tuple(parts))

    def measure_sessions(self, sessions: Iterable[str]) -> int:
        """Return the bytes that the messages of sessions take in the file."""
        sql = """
            SELECT coalesce(sum(length(part.data)), 0) FROM part JOIN message ON message.number = part.message
            WHERE message.session_id IN (SELECT value FROM json_each(?))"""
        return (self._db.fetch_one(sql, _to_json_list(sessions)) or (0,))[0]

    def has_any_id(self, sessions: Iterable[str], messages: Iterable[str]) -> bool:
        """Return whether any of these ids is in use by a session or a message."""
        sql = """
            SELECT 1 WHERE EXISTS (SELECT 1 FROM session WHERE id IN (SELECT value FROM json_each(?)))
                OR EXISTS (SELECT 1 FROM message WHERE id IN (SELECT value FROM json_each(?)))"""
        return self._db.fetch_one(sql, _to_json_list(sessions), _to_json_list(messages)) is not None

    def has_any_part(self, parts: Collection[str]) -> bool:
        """Return whether any of these ids is in use by a part. Reads the ids of all parts if there
        are any to look for: few clients choose them, and an index would cost every part.
        """
        sql = "SELECT 1 FROM part WHERE id IN (SELECT value FROM json_each(?))"
        return bool(parts) and self._db.fetch_one(sql, _to_json_list(parts)) is not None

    def search_parts(self, session_id: str, word: str) -> Iterator[tuple[Message, Part]]:
        """Yield the parts of a session whose JSON contains a word, ignoring case, oldest first;
        "": all parts.
        """
        sql = """
            SELECT message_id, info, part_id, json FROM (
                SELECT message.id AS message_id, message.created, message.data AS info, part.id AS part_id,
                    json_of(part.data, message.session_id, message.id, part.id) AS json
                FROM message JOIN part ON part.message = message.number WHERE message.session_id = ?1)
            WHERE ?2 = '' OR CAST(json AS TEXT) LIKE ?2 ESCAPE '!'
            ORDER BY created, message_id, part_id"""
        pattern = make_like_pattern(word) if word else ""
        for message_id, info, part_id, data in self._db.fetch_all(sql, session_id, pattern):
            yield (
                decode_message(info, session_id, message_id),
                decode_part(data, session_id, message_id, part_id),
            )


def make_like_pattern(text: str) -> str:
    """Return a pattern for LIKE (escape: `!`) that matches texts which contain a text,
    ignoring case.

    LIKE ignores the case of ASCII letters only, so other characters become wildcards,
    and callers must check the rows.
    """
    escaped_text = "".join(f"!{char}" if char in "!%_" else char for char in text)
    return f"%{re.sub(_NON_ASCII, '%', escaped_text)}%"


def open_queries(path: Path) -> Queries:
    """Open a database for reading only. Raises StoreError if it is missing, damaged
    or from a newer version.
    """
    return Queries(Database(path, read_only=True))


def _to_json_list(ids: Iterable[str]) -> str:
    return msgspec.json.encode(list(ids)).decode()
