"""The jobs of a fleet and how each stands, in SQLite: who works on which, so that none is done twice."""

import os
import sqlite3
import time
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from codeloop.automation.fleet.jobs import FleetJob
from codeloop.kit.processes import lives, start_time
from codeloop.schema.bounds.automation import FLEET_BUSY
from codeloop.schema.wire import JSON

State = Literal["waiting", "running", "done", "failed"]
_TABLES = (
    """CREATE TABLE IF NOT EXISTS job (
    id TEXT PRIMARY KEY, place INTEGER NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL,
    owner INTEGER NOT NULL, owner_started TEXT NOT NULL, child INTEGER NOT NULL, child_started TEXT NOT NULL,
    result TEXT NOT NULL, changed REAL NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS fleet (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS pull (branch TEXT PRIMARY KEY, data TEXT NOT NULL)",
)


class LedgerRow(Struct, frozen=True):
    """A job, how it stands since `changed` (s since the epoch), and what the last attempt gave."""

    job: FleetJob
    state: State
    attempt: int
    result: JSON
    changed: float


class FleetPull(Struct, frozen=True):
    """The pull request of a repository: its `branch`, to be merged into `target`, with the changes of `jobs` (ids).

    `commit`: what those changes amount to; "": nothing was pushed yet. `number` and `url`: 0 and "" where the host has
    branches alone. `problem`: why it isn't there, or is without one of the jobs.
    """

    repository: str
    branch: str
    target: str
    jobs: tuple[str, ...]
    commit: str = ""
    number: int = 0
    url: str = ""
    problem: str = ""


class Orphan(Struct, frozen=True):
    """A program that works for a coordinator which has ended: its process id, and when it started."""

    job_id: str
    attempt: int
    child: int
    child_started: str


class Ledger:
    """The database of one fleet. Each method is one transaction, so a kill leaves all of it or nothing."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._own = (os.getpid(), start_time(os.getpid()))
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._change() as database:
            for statement in _TABLES:
                database.execute(statement)

    @contextmanager
    def _change(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, timeout=FLEET_BUSY.seconds, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    def add(self, jobs: Iterable[FleetJob]) -> None:
        """Add jobs; one that is known by its id stays as it is."""
        rows = [(job.id, place, msgspec.json.encode(job).decode(), time.time()) for place, job in enumerate(jobs)]
        sql = "INSERT OR IGNORE INTO job VALUES (?, ?, ?, 'waiting', 0, 0, '', 0, '', '{}', ?)"
        with self._change() as database:
            database.executemany(sql, rows)

    def claim(self) -> LedgerRow | None:
        """Take the next job that waits; None: none does."""
        sql = """
            UPDATE job SET state = 'running', attempt = attempt + 1, owner = ?, owner_started = ?, child = 0,
                changed = ? WHERE id = (SELECT id FROM job WHERE state = 'waiting' ORDER BY place, id LIMIT 1)
            RETURNING data, state, attempt, result, changed"""
        with self._change() as database:
            row = database.execute(sql, (*self._own, time.time())).fetchone()
        return _row(row) if row is not None else None

    def note_child(self, job_id: str, attempt: int, child: int) -> None:
        """Note which program works on a job, so that it can be ended when this process is not there to do it."""
        sql = "UPDATE job SET child = ?, child_started = ? WHERE id = ? AND attempt = ?"
        with self._change() as database:
            database.execute(sql, (child, start_time(child), job_id, attempt))

    def finish(self, job_id: str, attempt: int, state: State, result: JSON) -> bool:
        """Store what an attempt gave, once; False: another attempt has begun since, and this one counts for nothing."""
        sql = """UPDATE job SET state = ?, result = ?, child = 0, changed = ?
            WHERE id = ? AND attempt = ? AND state = 'running'"""
        with self._change() as database:
            values = (state, msgspec.json.encode(result).decode(), time.time(), job_id, attempt)
            return database.execute(sql, values).rowcount == 1

    def list_orphans(self) -> list[Orphan]:
        """Return the jobs that a coordinator works on which has ended."""
        with self._change() as database:
            rows = database.execute(
                "SELECT id, attempt, child, child_started, owner, owner_started FROM job WHERE state = 'running'"
            ).fetchall()
        return [Orphan(*row[:4]) for row in rows if not lives(row[4], row[5])]

    def give_back(self, job_id: str) -> None:
        """Let a job whose coordinator has ended wait again."""
        with self._change() as database:
            database.execute("UPDATE job SET state = 'waiting' WHERE id = ? AND state = 'running'", (job_id,))

    def retry(self, ids: Iterable[str]) -> int:
        """Let failed jobs wait again; returns how many."""
        with self._change() as database:
            found = [
                database.execute("UPDATE job SET state = 'waiting' WHERE id = ? AND state = 'failed'", (each,)).rowcount
                for each in ids
            ]
        return sum(found)

    def rows(self) -> list[LedgerRow]:
        """Return all jobs in their order."""
        with self._change() as database:
            found = database.execute("SELECT data, state, attempt, result, changed FROM job ORDER BY place, id")
            return [_row(row) for row in found.fetchall()]

    def note_pull(self, pull: FleetPull) -> None:
        """Store how a pull request stands."""
        sql = "INSERT INTO pull VALUES (?, ?) ON CONFLICT (branch) DO UPDATE SET data = excluded.data"
        with self._change() as database:
            database.execute(sql, (pull.branch, msgspec.json.encode(pull).decode()))

    def list_pulls(self) -> list[FleetPull]:
        """Return all pull requests, by their branches."""
        with self._change() as database:
            found = database.execute("SELECT data FROM pull ORDER BY branch").fetchall()
        return [msgspec.json.decode(row[0], type=FleetPull) for row in found]

    @property
    def identity(self) -> str:
        """What no other fleet has, also not one of the same name on another machine: 16 hexadecimal digits."""
        with self._change() as database:
            database.execute("INSERT OR IGNORE INTO fleet VALUES ('identity', ?)", (os.urandom(8).hex(),))
            return database.execute("SELECT value FROM fleet WHERE name = 'identity'").fetchone()[0]

    @property
    def is_stopping(self) -> bool:
        """Whether the fleet is to stop."""
        with self._change() as database:
            return database.execute("SELECT 1 FROM fleet WHERE name = 'stop'").fetchone() is not None

    def set_stopping(self, *, on: bool) -> None:
        """Ask whoever coordinates the fleet to stop, or take that back."""
        with self._change() as database:
            if on:
                database.execute("INSERT OR REPLACE INTO fleet VALUES ('stop', '1')")
            else:
                database.execute("DELETE FROM fleet WHERE name = 'stop'")


def _row(row: tuple[str, State, int, str, float]) -> LedgerRow:
    data, state, attempt, result, changed = row
    return LedgerRow(msgspec.json.decode(data, type=FleetJob), state, attempt, msgspec.json.decode(result), changed)
