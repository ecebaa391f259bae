"""The table of a fleet's jobs, with their states and owners,
which sees to it that no job is done twice.
"""

import os
import time
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Struct, structs

from codeloop.automation.fleet.driver import get_cost
from codeloop.automation.fleet.jobs import FleetJob
from codeloop.kit.processes import read_start_time
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON

JobState = Literal["waiting", "running", "done", "failed"]
# `owner` and `owner_started` are the LedgerOwner that runs the job, `child` the process on its
# machine. Process ids are reused, so `child_started` is the start time of that process. `place`:
# the position in the file that listed the jobs.
_TABLE_DEFINITIONS = (
    """CREATE TABLE IF NOT EXISTS job (
    id TEXT PRIMARY KEY, place INTEGER NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL,
    owner INTEGER NOT NULL, owner_started TEXT NOT NULL, child INTEGER NOT NULL, child_started TEXT NOT NULL,
    result TEXT NOT NULL, changed DOUBLE PRECISION NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS fleet (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS pull (branch TEXT PRIMARY KEY, data TEXT NOT NULL)",
    # Apart from the results, each of which takes the place of the one before.
    """CREATE TABLE IF NOT EXISTS spent (
    id TEXT NOT NULL, attempt INTEGER NOT NULL, cost DOUBLE PRECISION NOT NULL, PRIMARY KEY (id, attempt))""",
)
_RECORD_COST = "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


class LedgerRow(Struct, frozen=True):
    """A job with its state since `changed` (seconds since the epoch),
    and the result of its last attempt.

    `cost`: the dollars that all its attempts have cost,
    as far as it is known of those that were ended.
    """

    job: FleetJob
    state: JobState
    attempt: int
    result: JSON
    changed: float
    cost: float = 0.0


class FleetPullRequest(Struct, frozen=True):
    """The pull request of a fleet, with the changes of `jobs` (ids): from `branch` into `target`.

    `commit`: the last of the fleet's own commits for it; "": nothing was pushed yet. `number` and
    `url`: 0 and "" for a host without pull requests. `problem`: why the pull request is missing, or
    lacks the changes of a job.
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
    """A running job whose coordinator has ended. `child`: the process id of its program;
    0: none on this machine.
    """

    job_id: str
    attempt: int
    child: int
    child_started: str


class LedgerOwner(NamedTuple):
    """The identity of a coordinator in the database.
    `qualifier`: tells apart owners with the same number.

    In SQLite the two are the process id and the start time,
    in PostgreSQL the number of a lock and the machine.
    """

    number: int
    qualifier: str


class Cursor(Protocol):
    """A cursor of the Python database API (PEP 249), with `?` as placeholder."""

    @property
    def rowcount(self) -> int:
        """How many rows the last statement has changed."""
        ...

    def execute(self, sql: str, values: Any = ..., /) -> object:
        """Execute a statement."""
        ...

    def executemany(self, sql: str, values: Any, /) -> object:
        """Execute a statement for each row of values."""
        ...

    def fetchone(self) -> Any:
        """Return the next row of a query's result; None: there are no more."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the remaining rows of a query's result."""
        ...


class FleetDatabase(Protocol):
    """A database with the tables of one fleet. Its methods are called from many threads at once."""

    @property
    def owner(self) -> LedgerOwner:
        """The identity of this process."""
        ...

    def open_transaction(self) -> AbstractContextManager[Cursor]:
        """Open a transaction, which excludes all others of this fleet. Raises CodeloopError."""
        ...

    def has_ended(self, cursor: Cursor, owner: LedgerOwner) -> bool:
        """Return whether an owner has ended, within a transaction."""
        ...

    def is_local(self, owner: LedgerOwner) -> bool:
        """Return whether an owner is a process of this machine."""
        ...


class Ledger:
    """The tables of one fleet. Each method is one transaction,
    so that a killed process leaves no partial change.
    """

    def __init__(self, database: FleetDatabase) -> None:
        self._database = database
        with database.open_transaction() as cursor:
            for statement in _TABLE_DEFINITIONS:
                cursor.execute(statement)

    def add_jobs(self, jobs: Iterable[FleetJob]) -> None:
        """Add jobs. A job whose id is already in the table is not changed."""
        rows = [
            (job.id, position, msgspec.json.encode(job).decode(), time.time())
            for position, job in enumerate(jobs)
        ]
        # DO NOTHING: a table that is run again has the jobs already, with their results.
        sql = "INSERT INTO job VALUES (?, ?, ?, 'waiting', 0, 0, '', 0, '', '{}', ?) ON CONFLICT DO NOTHING"
        with self._database.open_transaction() as cursor:
            cursor.executemany(sql, rows)

    def claim_job(self) -> LedgerRow | None:
        """Claim the next waiting job for this process; None: no job is waiting."""
        sql = """
            UPDATE job SET state = 'running', attempt = attempt + 1, owner = ?, owner_started = ?, child = 0,
                changed = ? WHERE id = (SELECT id FROM job WHERE state = 'waiting' ORDER BY place, id LIMIT 1)
            RETURNING data, state, attempt, result, changed"""
        with self._database.open_transaction() as cursor:
            cursor.execute(sql, (*self._database.owner, time.time()))
            row = cursor.fetchone()
        return _parse_row(row) if row is not None else None

    def record_child(self, job_id: str, attempt: int, child: int) -> None:
        """Record the program of an attempt, so that others can end it when this process is gone."""
        sql = "UPDATE job SET child = ?, child_started = ? WHERE id = ? AND attempt = ?"
        with self._database.open_transaction() as cursor:
            cursor.execute(sql, (child, read_start_time(child), job_id, attempt))

    def finish_attempt(self, job_id: str, attempt: int, state: JobState, result: JSON) -> bool:
        """Store the result of an attempt; False: it is ignored,
        because another attempt has begun since.
        """
        sql = """UPDATE job SET state = ?, result = ?, child = 0, changed = ?
            WHERE id = ? AND attempt = ? AND state = 'running'"""
        with self._database.open_transaction() as cursor:
            cursor.execute(_RECORD_COST, (job_id, attempt, get_cost(result)))
            cursor.execute(
                sql, (state, msgspec.json.encode(result).decode(), time.time(), job_id, attempt)
            )
            return cursor.rowcount == 1

    def record_cost(self, job_id: str, attempt: int, cost: float) -> None:
        """Record what an attempt without a result has cost, in dollars."""
        with self._database.open_transaction() as cursor:
            cursor.execute(_RECORD_COST, (job_id, attempt, cost))

    def list_orphans(self, active_ids: Collection[str]) -> list[Orphan]:
        """Return the running jobs whose coordinator has ended.
        `active_ids`: the jobs that this process runs.
        """
        with self._database.open_transaction() as cursor:
            cursor.execute(
                "SELECT id, attempt, child, child_started, owner, owner_started FROM job WHERE state = 'running'"
            )
            rows = cursor.fetchall()
            this_process = self._database.owner
            orphans: list[Orphan] = []
            for job_id, attempt, child, started, owner, owner_started in rows:
                coordinator = LedgerOwner(owner, owner_started)
                # A job of this process that none of its threads runs was left by
                # a thread that failed.
                has_ended = coordinator == this_process or self._database.has_ended(
                    cursor, coordinator
                )
                if job_id not in active_ids and has_ended:
                    # A process id of another machine would name an unrelated process here.
                    pid = child if self._database.is_local(coordinator) else 0
                    orphans.append(
                        Orphan(job_id=job_id, attempt=attempt, child=pid, child_started=started)
                    )
        return orphans

    def requeue(self, *attempts: tuple[str, int]) -> None:
        """Set the jobs of unfinished attempts `(id, attempt)` to waiting,
        unless another attempt has begun since.
        """
        sql = "UPDATE job SET state = 'waiting' WHERE id = ? AND attempt = ? AND state = 'running'"
        with self._database.open_transaction() as cursor:
            cursor.executemany(sql, attempts)

    def requeue_failed(self, ids: Collection[str]) -> int:
        """Set failed jobs to waiting, and return their number. `ids`: only these jobs;
        empty: all.
        """
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT id FROM job WHERE state = 'failed'")
            failed = [row for row in cursor.fetchall() if not ids or row[0] in ids]
            cursor.executemany("UPDATE job SET state = 'waiting' WHERE id = ?", failed)
        return len(failed)

    def list_rows(self) -> list[LedgerRow]:
        """Return all jobs, in the order of the file that listed them."""
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT id, sum(cost) FROM spent GROUP BY id")
            costs: dict[str, float] = dict(cursor.fetchall())
            cursor.execute(
                "SELECT data, state, attempt, result, changed FROM job ORDER BY place, id"
            )
            rows = [_parse_row(row) for row in cursor.fetchall()]
        # Of a fleet from before costs were recorded, only the results have them.
        return [
            structs.replace(row, cost=costs.get(row.job.id, get_cost(row.result))) for row in rows
        ]

    def store_pull_request(self, pull: FleetPullRequest) -> None:
        """Store the state of a pull request."""
        sql = (
            "INSERT INTO pull VALUES (?, ?) ON CONFLICT (branch) DO UPDATE SET data = excluded.data"
        )
        with self._database.open_transaction() as cursor:
            cursor.execute(sql, (pull.branch, msgspec.json.encode(pull).decode()))

    def list_pull_requests(self) -> list[FleetPullRequest]:
        """Return all pull requests, by their branches."""
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT data FROM pull ORDER BY branch")
            return [msgspec.json.decode(row[0], type=FleetPullRequest) for row in cursor.fetchall()]

    def get_identity(self) -> str:
        """Return 16 hexadecimal digits that are unique to this fleet,
        also among fleets of the same name elsewhere.

        They are made by the first call, and stored.
        """
        with self._database.open_transaction() as cursor:
            cursor.execute(
                "INSERT INTO fleet VALUES ('identity', ?) ON CONFLICT DO NOTHING",
                (os.urandom(8).hex(),),
            )
            cursor.execute("SELECT value FROM fleet WHERE name = 'identity'")
            return cursor.fetchone()[0]

    @property
    def is_open(self) -> bool:
        """Whether any job is waiting or running."""
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT 1 FROM job WHERE state IN ('waiting', 'running') LIMIT 1")
            return cursor.fetchone() is not None

    @property
    def is_stopping(self) -> bool:
        """Whether the fleet is to stop."""
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT 1 FROM fleet WHERE name = 'stop'")
            return cursor.fetchone() is not None

    def set_stopping(self, *, on: bool) -> None:
        """Ask the coordinators of the fleet to stop (`on`), or withdraw that request."""
        with self._database.open_transaction() as cursor:
            cursor.execute("DELETE FROM fleet WHERE name = 'stop'")
            if on:
                cursor.execute("INSERT INTO fleet VALUES ('stop', '1')")


def _parse_row(row: tuple[str, JobState, int, str, float]) -> LedgerRow:
    data, state, attempt, result, changed = row
    try:
        job = msgspec.json.decode(data, type=FleetJob)
    # Others may write into a shared PostgreSQL table.
    except msgspec.DecodeError as error:
        raise CodeloopError(f"The table has a row that is not a job: {error}.") from error
    return LedgerRow(
        job=job, state=state, attempt=attempt, result=_parse_result(result), changed=changed
    )


def _parse_result(text: str) -> JSON:
    try:
        return msgspec.json.decode(text, type=JSON)
    except DECODE_ERRORS:
        return {
            "reason": "error",
            "exitCode": 1,
            "message": "The table holds no result that can be read.",
        }
