"""Finds a text in a project's prompts and answers by an index of the three-character pieces that
they consist of.

The index is a file beside the database and is brought up to date by the search itself: whoever
never searches has none, and a turn does nothing for it. It can be removed at any time. It only
preselects: what a search returns is read from the database and compared there, so that an index
that is behind, or has pieces of texts that were deleted, never shows anything wrong.
"""

import sqlite3
from collections.abc import Container, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.schema.limits import STORE_BUSY_TIME
from codeloop.schema.message import Message
from codeloop.schema.part import Part, TextPart
from codeloop.store.apply_event import decode_message
from codeloop.store.database import StoreError, explain_errors, transaction
from codeloop.store.packing import unpack

_part_decoder: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)

_FIRST_SQLITE = (3, 34)
"""The first version that has `trigram`."""
_VERSION = 2
_TABLES = (
    "CREATE TABLE doc (id INTEGER PRIMARY KEY, part_row INTEGER NOT NULL, part_id TEXT NOT NULL)",
    "CREATE INDEX doc_part_row ON doc (part_row)",
    "CREATE TABLE seen (number INTEGER NOT NULL)",
    "INSERT INTO seen VALUES (0)",
    """CREATE VIRTUAL TABLE piece USING fts5(
        text, content = '', columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1')""",
    f"PRAGMA user_version = {_VERSION}",
)
_PIECE_CHARS = 3
_MAX_PIECES = 24
"""More pieces of a long text don't narrow the choice any further."""
_TEXT_PART_PREFIX = b'{"type":"text"'
"""The first bytes of a stored text part: msgspec writes the tag first."""


class FoundPart(Struct, frozen=True):
    """A text part that contains what was searched for, with its message."""

    session_id: str
    message: Message
    part: TextPart


class SearchIndex:
    """The index of one database, for one search. Blocks: it is used in a thread."""

    def __init__(self, database: Path) -> None:
        """Open the index beside a database, create it if needed, and bring it up to date.
        Raises StoreError.
        """
        if sqlite3.sqlite_version_info < _FIRST_SQLITE:
            raise StoreError(
                f"Searching needs SQLite 3.34; this Python has {sqlite3.sqlite_version}. "
                "Install codeloop with a newer Python."
            )
        self._path = database
        with explain_errors(database):
            self._db = _open_index(database)

    def close(self) -> None:
        """Close the files."""
        self._db.close()

    def find_texts(self, text: str, skipped_sessions: Container[str]) -> Iterator[FoundPart]:
        """Yield the prompts and answers that contain a text, ignoring case, newest first.
        Raises StoreError.

        Texts that the program added are left out, and sessions that have got into
        `skipped_sessions` meanwhile.
        """
        needle = text.casefold()
        pieces = _list_pieces(needle)
        # A text of one or two characters has no piece: all documents are compared.
        sql = """
            SELECT message.session_id, message.id, part.id, message.data, part.data
            FROM doc JOIN state.part ON part.number = doc.part_row AND part.id = doc.part_id
                JOIN state.message ON message.number = part.message
            WHERE ?1 = '' OR doc.id IN (SELECT rowid FROM piece WHERE piece MATCH ?1)
            ORDER BY doc.id DESC"""
        with explain_errors(self._path):
            for *ids, message, data in self._db.execute(sql, (pieces,)):
                session_id, message_id, _ = ids
                if session_id in skipped_sessions:
                    continue
                part = _part_decoder.decode(unpack(data, *ids))
                if isinstance(part, TextPart) and needle in part.text.casefold():
                    info = decode_message(message, session_id, message_id)
                    yield FoundPart(session_id, info, part)


def remove_index(database: Path) -> None:
    """Remove the index of a database, so that nothing is left of what was deleted there."""
    with suppress(OSError):
        get_index_path(database).unlink(missing_ok=True)


def _read_text(data: bytes) -> str:
    """Return the text of a stored part as it is indexed, without case;
    "": none that a person or a model wrote.
    """
    if not data.startswith(_TEXT_PART_PREFIX):
        return ""
    part = _part_decoder.decode(data)
    return part.text.casefold() if isinstance(part, TextPart) and not part.synthetic else ""


def _list_pieces(needle: str) -> str:
    """Return the query for the pieces of a text: texts that have all of them may contain it."""
    count = len(needle) - _PIECE_CHARS + 1
    step = max(count // _MAX_PIECES, 1)
    pieces = {needle[start : start + _PIECE_CHARS] for start in range(0, max(count, 0), step)}
    # SQLite's own reading of a query ends at a NUL.
    return " ".join('"' + piece.replace('"', '""') + '"' for piece in pieces if "\0" not in piece)


def _open_index(database: Path) -> sqlite3.Connection:
    """Return the index of a database, up to date, with the database itself as `state`.

    A damaged index is made anew. Where none can be written, it is made in memory.
    """
    path = get_index_path(database)
    try:
        return _connect(path, database)
    except sqlite3.OperationalError:
        # Locked for long, or the disk is full.
        return _connect(None, database)
    except (sqlite3.DatabaseError, OSError):
        remove_index(database)
        with suppress(OSError):
            return _connect(path, database)
        return _connect(None, database)


def get_index_path(database: Path) -> Path:
    """Return the file of a database's index."""
    return database.with_name(f"{database.name}.search")


def _connect(path: Path | None, database: Path) -> sqlite3.Connection:
    if path is not None and not path.exists():
        path.touch(mode=0o600)
    connection = sqlite3.connect(
        path.absolute().as_uri() if path is not None else ":memory:",
        uri=True,
        timeout=STORE_BUSY_TIME.seconds,
        isolation_level=None,
    )
    with ExitStack() as on_failure:
        on_failure.callback(connection.close)
        # What a power failure takes of the file is read again.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("ATTACH ? AS state", (f"{database.absolute().as_uri()}?mode=ro",))
        with transaction(connection):
            _create_tables(connection)
            _index_new_texts(connection)
        on_failure.pop_all()
    return connection


def _create_tables(index: sqlite3.Connection) -> None:
    version = index.execute("PRAGMA user_version").fetchone()[0]
    if version not in {0, _VERSION}:
        raise sqlite3.DatabaseError("The index is of another version.")
    for statement in () if version else _TABLES:
        index.execute(statement)


def _index_new_texts(index: sqlite3.Connection) -> None:
    """Index the texts that were stored or changed since the last search."""
    last = index.execute("SELECT last FROM state.outbox").fetchone()[0]
    start = _find_start(index, last)
    sql = """
        SELECT part.number, message.session_id, message.id, part.id, part.data
        FROM state.part CROSS JOIN state.message ON message.number = part.message
        WHERE part.number > ?1 OR part.changed > ?1 ORDER BY part.number"""
    for number, *ids, data in index.execute(sql, (start,)):
        index.execute("DELETE FROM doc WHERE part_row = ?", (number,))
        if text := _read_text(unpack(data, *ids)):
            added = index.execute(
                "INSERT INTO doc (part_row, part_id) VALUES (?, ?)", (number, ids[-1])
            )
            index.execute("INSERT INTO piece (rowid, text) VALUES (?, ?)", (added.lastrowid, text))
    index.execute("UPDATE seen SET number = ?", (last,))


def _find_start(index: sqlite3.Connection, last: int) -> int:
    """Return the number of the last change that is indexed; `last`: the database's last one.
    0: it is the index of another database, of which no part is in its place, or of a later state
    of this one, of which a backup was put back.
    """
    seen = index.execute("SELECT number FROM seen").fetchone()[0]
    known = index.execute("SELECT part_row, part_id FROM doc ORDER BY part_row DESC")
    same_part = "SELECT 1 FROM state.part WHERE number = ? AND id = ?"
    if seen <= last and any(index.execute(same_part, row).fetchone() for row in known):
        return seen
    index.execute("DELETE FROM doc")
    return 0
