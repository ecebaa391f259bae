"""Opens the SQLite file, migrates it after a backup,
and turns SQLite's errors into messages that say what to do.
"""

import errno
import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from codeloop.kit import fault_injection
from codeloop.kit.small_files import create_private_folder, lock
from codeloop.kit.text.undecodable import escape_undecodable
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import STORE_BUSY_TIME
from codeloop.store.migrations import (
    FEED_MIGRATION,
    FIRST_MIGRATIONS,
    LEDGER_MIGRATION,
    LEDGER_VIEW,
    MESSAGE_VIEW,
    PART_VIEW,
)
from codeloop.store.packing import unpack

# With fewer free pages, of 4 KB, a file is not worth to be written anew.
_MIN_FREE_PAGES = 2_000
MIGRATIONS: tuple[str, ...] = (*FIRST_MIGRATIONS, LEDGER_MIGRATION, FEED_MIGRATION)
"""The script that upgrades to each version, from version 1; its last line sets the version.

A script is never changed once it is released: databases that ran it would differ from new ones.
"""

# The tables of this version, each with the first version that has it as it is now.
_VIEWS = ((4, LEDGER_VIEW), (5, MESSAGE_VIEW), (5, PART_VIEW))
# SQLite's own limit, for the longest name that it makes beside the file.
_MAX_PATH_BYTES = 512

SqlValue = str | int | float | bytes | None


class StoreError(CodeloopError):
    """The database can't be opened, read or written."""


@contextmanager
def explain_errors(path: Path) -> Generator[None, None, None]:
    """Turn errors of SQLite and of the disk into one line that says what to do.
    Raises StoreError.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(_describe_error(error, path)) from error


def _describe_error(error: sqlite3.Error | OSError, path: Path) -> str:
    text = str(error)
    match _classify_error(error):
        case "FULL":
            return f"The disk is full: nothing more can be stored in {path}. Free some space and continue the session."
        case "CANTOPEN" if len(os.fsencode(path)) + len("-journal") >= _MAX_PATH_BYTES:
            return (
                f"The path of the database is too long: SQLite opens one of at most {_MAX_PATH_BYTES} bytes. "
                f"Set CODELOOP_HOME to a shorter one than {path.parent}."
            )
        case "READONLY" | "PERM" | "CANTOPEN" | "AUTH":
            return f"The database {path} can't be written ({text}). Make it writable, or set CODELOOP_HOME elsewhere."
        case "IOERR":
            return (
                f"The database {path} can't be read or written ({text}). Check the disk and "
                f"its free space, then retry."
            )
        case "BUSY" | "LOCKED":
            return (
                f"Another process has kept the database {path} locked for "
                f"{STORE_BUSY_TIME.seconds:.0f} s. Try again."
            )
        case "NOTADB" | "CORRUPT":
            return f"The database {path} is damaged ({text}). It was left as it is: move it away to start a new one."
        case _:
            return f"The database {path} failed: {text}"


def _classify_error(error: sqlite3.Error | OSError) -> str:
    """Return the primary code of SQLite for an error, without its prefix, such as `IOERR`;
    "": there is none.
    """
    # Of `lock`, which guards the upgrade.
    if isinstance(error, TimeoutError):
        return "BUSY"
    if isinstance(error, OSError):
        return "FULL" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "IOERR"
    # Errors of the module `sqlite3` itself have no name.
    # An extended code has a suffix: SQLITE_IOERR_WRITE.
    return "".join(getattr(error, "sqlite_errorname", "").split("_")[1:2])


class Database:
    """The connection to one file. Every method raises StoreError, which says what to do,
    when the file fails.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open the file. Unless `read_only`, it is created if needed and upgraded
        to the newest version.
        """
        self.path = path
        self.has_deleted = False
        """Set when whole sessions were deleted."""
        self.last_number = 0
        """The last number of a change that was stored here."""
        self._index, self._log = Path(f"{path}-shm"), Path(f"{path}-wal")
        self._index_size = self._log_size = 0
        self._connection = open_read_only(path) if read_only else open_database(path)
        self._identities = {each: _identify(each) for each in (path, self._log, self._index)}
        """What tells each file from all others; None: it is not there yet."""

    def execute(self, sql: str, values: Sequence[SqlValue] = ()) -> int:
        """Run a statement that changes rows; return the id of the row that it inserted, or 0."""
        # In a transaction, `transaction` explains the errors of all its statements.
        if self._connection.in_transaction:
            return self._run(sql, values).lastrowid or 0
        with explain_errors(self.path):
            return self._run(sql, values).lastrowid or 0

    def fetch_one(self, sql: str, *values: SqlValue) -> tuple[Any, ...] | None:
        """Return the first row of a query; None: there is none."""
        with explain_errors(self.path):
            return self._run(sql, values).fetchone()

    def fetch_all(self, sql: str, *values: SqlValue) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        with explain_errors(self.path):
            return self._run(sql, values).fetchall()

    def _run(self, sql: str, values: Sequence[SqlValue]) -> sqlite3.Cursor:
        self._restore_index()
        try:
            return self._connection.execute(sql, values)
        except sqlite3.Error:
            # That its file was emptied says more than a table that is not there.
            self._require_place()
            raise
        except UnicodeEncodeError:
            # A name with bytes that are not UTF-8: stored and looked for as
            # `encode_json` writes it.
            return self._connection.execute(
                sql,
                [
                    escape_undecodable(value) if isinstance(value, str) else value
                    for value in values
                ],
            )

    @contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """Run the block in one transaction: all its changes are stored, or none."""
        self._require_place()
        self._restore_index()
        with explain_errors(self.path):
            fault_injection.pass_point("store.begin")
            with transaction(self._connection):
                yield
            fault_injection.pass_point("store.commit")

    def _require_place(self) -> None:
        """Raise StoreError if the file, or one of those beside it, has been removed, replaced or
        cut. SQLite itself would go on to write where nobody looks.
        """
        event = ""
        for path, known in self._identities.items():
            if (now := _identify(path)) != known and known is not None:
                event = "is another file now" if now else "was removed"
                event = event if path == self.path else f"has lost {path.name}, which {event}"
                break
            self._identities[path] = now
        log_size = _measure(self._log)
        if not event and not _measure(self.path):
            event = "was emptied by another program"
        if not event and log_size < self._log_size and not self._has_last_number():
            event = f"has lost what was written last: {self._log.name} was cut by another program"
        if event:
            raise StoreError(
                f"The database {self.path} {event}: nothing more of this session can be stored there. "
                "Put it back, or start codeloop anew."
            )
        self._log_size = log_size

    def _has_last_number(self) -> bool:
        """Return whether the last change is still there: a checkpoint of another program moves it
        from the log to the file.
        """
        self._restore_index()
        # With a connection of its own: what ours has in memory says nothing about the files.
        with suppress(sqlite3.Error, StoreError), closing(open_read_only(self.path)) as fresh:
            return fresh.execute("SELECT last FROM outbox").fetchone()[0] >= self.last_number
        return False

    def _restore_index(self) -> None:
        """Restore the size of the log's index if another program has cut it.

        SQLite has it in memory: to read what is cut off would end the process (SIGBUS). It makes
        the index anew when it finds it empty.
        """
        size = _measure(self._index)
        if size < self._index_size:
            with suppress(OSError):
                os.truncate(self._index, self._index_size)
        self._index_size = max(size, self._index_size)

    def close(self) -> None:
        """Close the file. If this process has deleted much of it, its space is given back."""
        self._restore_index()
        if self.has_deleted:
            with suppress(sqlite3.Error):
                _give_back_space(self._connection)
        self._connection.close()


def _give_back_space(connection: sqlite3.Connection) -> None:
    """Write the file anew if a fourth of it is free, unless another process writes just now."""
    free, pages = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("freelist_count", "page_count")
    )
    if free > _MIN_FREE_PAGES and free * 4 > pages:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("VACUUM")


def _identify(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from all others; None: it can't be found."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _measure(path: Path) -> int:
    """Return the size of a file in bytes; 0: it can't be found."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def open_database(path: Path) -> sqlite3.Connection:
    """Open or create the file, readable by its owner only, and upgrade it to the newest version.
    Raises StoreError.
    """
    try:
        create_private_folder(path.parent)
        if not path.exists():
            path.touch(mode=0o600)
    except OSError as error:
        reason = error.strerror or str(error)
        advice = "Make it writable, or set CODELOOP_HOME elsewhere."
        raise StoreError(
            f"The data directory {path.parent} can't be written ({reason}). {advice}"
        ) from error
    with explain_errors(path):
        # `isolation_level=None`: we begin transactions ourselves, with the lock that they need.
        connection = sqlite3.connect(
            path, timeout=STORE_BUSY_TIME.seconds, isolation_level=None, cached_statements=256
        )
        with ExitStack() as on_failure:
            on_failure.callback(connection.close)
            add_functions(connection)
            _prepare(connection, path)
            on_failure.pop_all()
    return connection


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open an existing file read-only. One of an earlier version, whose project was not opened
    since, has the tables of this one as views. Raises StoreError, also for a newer version.
    """
    with explain_errors(path), ExitStack() as on_failure:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=STORE_BUSY_TIME.seconds
        )
        on_failure.callback(connection.close)
        add_functions(connection)
        version = _read_version(connection)
        if not 1 <= version <= len(MIGRATIONS):
            versions = f"it is at version {version}, this one reads {len(MIGRATIONS)}"
            raise StoreError(
                f"The database {path} is of another codeloop ({versions}). Install that one to read it."
            )
        for newer, view in _VIEWS:
            if version < newer:
                connection.execute(view)
        on_failure.pop_all()
    return connection


def add_functions(connection: sqlite3.Connection) -> None:
    """Add `json_of(data, *keys)`: the JSON of a packed column, as a BLOB."""
    connection.create_function("json_of", -1, unpack, deterministic=True)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # With WAL, a power failure may lose the last transactions but never damages the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    if _read_version(connection) == len(MIGRATIONS):
        return
    # SQLite's own locks cover neither the switch to WAL nor the backup.
    with lock(path.parent, STORE_BUSY_TIME.seconds):
        _upgrade(connection, path)


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade the file to the newest version, unless another process has just done that."""
    version = _read_version(connection)
    if version == len(MIGRATIONS):
        return
    if version > len(MIGRATIONS):
        versions = f"it is at version {version}, this one knows {len(MIGRATIONS)}"
        raise StoreError(
            f"The database {path} is from a newer codeloop ({versions}). Install that, or set CODELOOP_HOME."
        )
    connection.execute("PRAGMA journal_mode = WAL")
    if version:
        back_up(connection, path.with_name(f"{path.name}.v{version}.bak"))
    migrate(connection)


def _read_version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def back_up(connection: sqlite3.Connection, copy: Path) -> None:
    """Copy the database to a file that only its owner can read,
    and that appears only when it is complete.
    """
    unfinished_copy = copy.with_name(copy.name + ".part")
    try:
        unfinished_copy.unlink(missing_ok=True)
        unfinished_copy.touch(mode=0o600)
    except OSError as error:
        raise StoreError(
            f"The backup {unfinished_copy} can't be written ({error.strerror}). Nothing was changed."
        ) from error
    target = sqlite3.connect(unfinished_copy)
    try:
        connection.backup(target)
    finally:
        target.close()
    fault_injection.pass_point("migration.backup")
    unfinished_copy.replace(copy)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """Run the block in one transaction: all its changes are stored, or none."""
    # IMMEDIATE takes the write lock now: upgrading a read lock later fails at once
    # when another process writes.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")


def migrate(connection: sqlite3.Connection) -> None:
    """Run the missing migrations, each in one transaction with its version number."""
    while _read_version(connection) < len(MIGRATIONS):
        with transaction(connection):
            # Read again under the lock: another process may have migrated meanwhile.
            version = _read_version(connection)
            for statement in (
                _split_script(MIGRATIONS[version]) if version < len(MIGRATIONS) else ()
            ):
                fault_injection.pass_point("migration")
                connection.execute(statement)


def _split_script(script: str) -> list[str]:
    """Return the statements of a script. A trigger has semicolons of its own."""
    statements = [""]
    for piece in script.split(";"):
        statements[-1] += f"{piece};"
        if sqlite3.complete_statement(statements[-1]):
            statements.append("")
    return statements
