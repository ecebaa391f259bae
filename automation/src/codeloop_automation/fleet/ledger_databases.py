"""The databases of a fleet's ledger: an SQLite file in the fleet's folder,
or a schema in PostgreSQL.
"""

import hashlib
import math
import os
import secrets
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeloop.kit.processes import is_alive, read_pid_scope, read_start_time
from codeloop.kit.small_files import write_atomically
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop_automation.bounds import FLEET_BUSY, FLEET_DATABASE_OUTAGE, FLEET_LEASE
from codeloop_automation.fleet.ledger import Cursor, Ledger, LedgerOwner

if TYPE_CHECKING:
    from psycopg import Connection

_SQLITE_FILE_NAME = "fleet.db"
_ADDRESS_FILE_NAME = "table"
# PostgreSQL names an advisory lock by two numbers.
# The first is the same for all fleets ("code" in ASCII); the
# second is an owner, or made of the name of a fleet.
_LOCK_CLASS = 0x636F6465
# The server ends the connection of a machine that is gone after 10 + 3 * 5 s, and with it the lease
# of that machine. Without these options it would take more than two hours.
_SERVER_KEEPALIVE_OPTIONS = (
    "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)


def open_ledger(folder: Path, address: str = "") -> Ledger:
    """Open the tables of the fleet in `folder`, and create them if they don't exist.

    `address`: of a PostgreSQL database, which is stored in the folder; "": the stored one, else
    SQLite is used. Raises CodeloopError.
    """
    address_file = folder / _ADDRESS_FILE_NAME
    if not address and address_file.is_file():
        address = address_file.read_text(encoding="utf-8")
    if not address:
        return Ledger(SqliteDatabase(folder / _SQLITE_FILE_NAME))
    if (folder / _SQLITE_FILE_NAME).exists():
        raise UsageProblem(
            f"The table of {folder.name} is in SQLite already. Give another fleet with --name."
        )
    ledger = Ledger(PostgresDatabase(address, folder.name))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(address_file, address.encode())
    return ledger


def list_fleets(root: Path) -> list[Path]:
    """Return the folders of all fleets on this machine."""
    return sorted(
        {
            path.parent
            for name in (_SQLITE_FILE_NAME, _ADDRESS_FILE_NAME)
            for path in root.glob(f"*/{name}")
        }
    )


class SqliteDatabase:
    """The tables of a fleet in an SQLite file. An owner is a process of this machine."""

    def __init__(self, file: Path) -> None:
        self.owner = LedgerOwner(number=os.getpid(), qualifier=read_start_time(os.getpid()))
        self._file = file
        # One thread of this process at a time: SQLite would poll for its turn, and some of many
        # threads would wait too long.
        self._transaction_lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.is_ending = False
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextmanager
    def open_transaction(self) -> Generator[Cursor]:
        """See FleetDatabase."""
        with self._transaction_lock:
            connection = self._connection = self._connection or self._connect()
            # IMMEDIATE takes the write lock now; a transaction that reads first could fail
            # when it begins to write.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection.cursor()
                connection.execute("COMMIT")
            finally:
                # Still open after an error.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _connect(self) -> sqlite3.Connection:
        """Open the connection."""
        # It stays open: the last one to close writes the whole log back into the file.
        connection = sqlite3.connect(
            self._file, timeout=FLEET_BUSY.seconds, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        return connection

    def has_ended(self, cursor: Cursor, owner: LedgerOwner) -> bool:
        """See FleetDatabase."""
        del cursor
        return not is_alive(owner.number, owner.qualifier)

    def is_local(self, owner: LedgerOwner) -> bool:
        """See FleetDatabase."""
        del owner
        return True


class PostgresDatabase:
    """The tables of a fleet in a PostgreSQL schema. An owner is a connection with a lock,
    the lease of all its jobs.

    The lock ends with the connection, also when the process is killed or its machine fails. Then
    other coordinators take the jobs over, and results of the old owner are ignored. One that has
    only lost its connection takes its lock again.
    """

    def __init__(self, address: str, fleet: str) -> None:
        """Connect later. `address`: a URL of PostgreSQL.
        Raises UsageProblem if psycopg is not installed.
        """
        try:
            import psycopg
        except ImportError:
            raise UsageProblem(
                "Tables in PostgreSQL need psycopg where codeloop is installed: `pip install 'psycopg[binary]>=3.2'`."
            ) from None
        self._psycopg = psycopg
        self._address = address
        # PostgreSQL cuts names to 63 bytes, and two fleets with long names would share a schema.
        name = f"codeloop_fleet_{fleet}"
        self._schema = (
            name
            if len(name) < 63
            else f"{name[:50]}_{hashlib.sha256(name.encode()).hexdigest()[:10]}"
        )
        self._transaction_key = int.from_bytes(
            hashlib.sha256(name.encode()).digest()[:4], "big", signed=True
        )
        self.owner = _make_lease_owner()
        self._transaction_lock = threading.Lock()
        self._connection: Connection | None = None
        self.reconnected_at = -math.inf
        """When a lost connection was opened again, in monotonic seconds."""
        self.is_ending = False

    @contextmanager
    def open_transaction(self) -> Generator[Cursor]:
        """See FleetDatabase."""
        try:
            with self._transaction_lock:
                connection = self._begin()
                try:
                    yield _PostgresCursor(connection.cursor())
                    connection.execute("COMMIT")
                finally:
                    with suppress(self._psycopg.Error):
                        # Without effect after the commit.
                        connection.rollback()
        except self._psycopg.Error as error:
            raise CodeloopError(
                f"The table in PostgreSQL can't be used: {str(error).strip()}"
            ) from None

    def has_ended(self, cursor: Cursor, owner: LedgerOwner) -> bool:
        """See FleetDatabase."""
        # After a restart of the server, other coordinators get time to take their locks again.
        if time.monotonic() < self.reconnected_at + FLEET_LEASE.seconds:
            return False
        # Nobody holds the lock of an owner that has ended, so this process gets it,
        # until the end of the transaction.
        cursor.execute("SELECT pg_try_advisory_xact_lock(?, ?)", (_LOCK_CLASS, owner.number))
        return cursor.fetchone()[0]

    def is_local(self, owner: LedgerOwner) -> bool:
        """See FleetDatabase."""
        return owner.qualifier == read_pid_scope()

    def _begin(self) -> "Connection":
        """Begin a transaction, on a new connection if the server has closed the old one.

        A server that has answered before, and is gone for some minutes, is waited for.
        """
        end, pause = time.monotonic() + FLEET_DATABASE_OUTAGE.seconds, 0.0
        while True:
            try:
                return self._begin_exclusively(self._connect())
            except self._psycopg.OperationalError:
                if self._connection is None or self.is_ending or time.monotonic() > end:
                    raise
                if pause == 1:
                    sys.stderr.write("The table in PostgreSQL gives no answer; it is waited for.\n")
            # At once for a connection that was closed; then less and less often.
            _sleep_until(time.monotonic() + pause, lambda: self.is_ending)
            pause = min(15.0, pause * 2 or 1.0)

    def _renew_lease(self, connection: "Connection") -> None:
        """Take the lock of the lease on a new connection: the old one if it is free still,
        or become a new owner. The jobs of the old one then count as left.
        """
        if self._connection is not None:
            self.reconnected_at = time.monotonic()
        taken = connection.execute(
            "SELECT pg_try_advisory_lock(%s, %s)", (_LOCK_CLASS, self.owner.number)
        ).fetchone()
        if taken is None or not taken[0]:
            self.owner = _make_lease_owner()
            connection.execute("SELECT pg_advisory_lock(%s, %s)", (_LOCK_CLASS, self.owner.number))

    def _begin_exclusively(self, connection: "Connection") -> "Connection":
        """Begin a transaction, and wait for those of other machines on this fleet."""
        connection.execute("BEGIN")
        connection.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK_CLASS, self._transaction_key)
        )
        return connection

    def _connect(self) -> "Connection":
        """Return the connection, and open it if necessary."""
        if self._connection is None or self._connection.closed:
            from psycopg import conninfo, sql

            parameters = conninfo.conninfo_to_dict(self._address)
            options = f"{parameters.get('options') or ''} {_SERVER_KEEPALIVE_OPTIONS}".strip()
            new_connection = self._psycopg.connect(
                conninfo.make_conninfo(self._address, options=options),
                autocommit=True,
                connect_timeout=int(FLEET_BUSY.seconds),
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
            )
            self._renew_lease(new_connection)
            name = sql.Identifier(self._schema)
            with new_connection.transaction():
                new_connection.execute(
                    "SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK_CLASS, self._transaction_key)
                )
                # The schema may exist already, made by an account with more rights.
                with (
                    suppress(self._psycopg.errors.InsufficientPrivilege),
                    new_connection.transaction(),
                ):
                    new_connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
            new_connection.execute(sql.SQL("SET search_path TO {}").format(name))
            self._connection = new_connection
        return self._connection


def _sleep_until(end: float, is_ending: Callable[[], bool]) -> None:
    # A signal handler only sets a flag.
    while time.monotonic() < end and not is_ending():
        time.sleep(min(0.2, max(0.0, end - time.monotonic())))


def _make_lease_owner() -> LedgerOwner:
    """Return a new owner: the number of a lock, and the machine of this process."""
    return LedgerOwner(number=secrets.randbelow(2**31), qualifier=read_pid_scope())


class _PostgresCursor:
    """A cursor that takes `?` as placeholder, as SQLite does."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(self, sql: str, values: Any = (), /) -> object:
        return self._cursor.execute(sql.replace("?", "%s"), tuple(values))

    def executemany(self, sql: str, values: Any, /) -> object:
        return self._cursor.executemany(sql.replace("?", "%s"), [tuple(row) for row in values])

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()
