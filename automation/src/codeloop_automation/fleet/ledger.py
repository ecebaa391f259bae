"""The table of a fleet's jobs, with their states and owners,
which sees to it that no job is done twice.
"""

import os
import time
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import structs

from codeloop.kit.processes import read_start_time
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.bounds import FLEET_JOBS
from codeloop_automation.fleet.driver import Spending, drop_diff, get_cost
from codeloop_automation.fleet.jobs import FleetJob
from codeloop_automation.fleet.ledger_rows import (
    AddedJobs,
    FleetPullRequest,
    JobState,
    LedgerRow,
    Orphan,
    RecordedAttempt,
    is_same_job,
    parse_row,
)

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
    # What an attempt has cost stays, whatever becomes of its job. `ended` is 0 until it has ended.
    """CREATE TABLE IF NOT EXISTS attempt (
    id TEXT NOT NULL, attempt INTEGER NOT NULL, place TEXT NOT NULL, started DOUBLE PRECISION NOT NULL,
    ended DOUBLE PRECISION NOT NULL, cost DOUBLE PRECISION NOT NULL, reason TEXT NOT NULL, session TEXT NOT NULL,
    PRIMARY KEY (id, attempt))""",
    # Apart from the results: most readers of these need no diffs, which may be large.
    "CREATE TABLE IF NOT EXISTS diff (id TEXT PRIMARY KEY, data TEXT NOT NULL)",
)
# A job that was removed goes on with the next number: what its attempts have cost is kept.
_ADD_JOB = """INSERT INTO job VALUES (?, ?, ?, 'waiting',
    (SELECT coalesce(max(attempt), 0) FROM attempt WHERE id = ?), 0, '', 0, '', '{}', ?)
    ON CONFLICT DO NOTHING"""
# A job that was cancelled may wait again before its program has ended.
_CLAIM_JOB = """
    UPDATE job SET state = 'running', attempt = attempt + 1, owner = ?, owner_started = ?, child = 0,
        changed = ? WHERE id = (SELECT id FROM job WHERE state = 'waiting'
            AND id NOT IN (SELECT id FROM attempt WHERE ended = 0) ORDER BY place, id LIMIT 1)
    RETURNING data, state, attempt, result, changed"""
_REMOVE_JOB = """DELETE FROM job WHERE id = ? AND state <> 'running'
    AND id NOT IN (SELECT id FROM attempt WHERE ended = 0)"""
_LIST_AT_WORK = """SELECT id, attempt, child, child_started, owner, owner_started FROM job
    WHERE state = 'running' OR id IN (SELECT id FROM attempt WHERE ended = 0)"""
_END_ATTEMPT = """UPDATE attempt SET ended = ?, cost = ?, reason = ?, session = ?
    WHERE id = ? AND attempt = ? AND (ended = 0 OR cost < ?)"""
_REQUEUE_FAILED = "UPDATE job SET state = 'waiting' WHERE id = ? AND state = 'failed'"
_REQUEUE_NAMED = (
    "UPDATE job SET state = 'waiting' WHERE id = ? AND state IN ('failed', 'done', 'cancelled')"
)
# Of the attempts that have ended in this time, the rate of a fleet is computed.
_RATE_SECONDS = 600.0


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

    is_ending: bool
    """Set when the process ends: then no outage of the database is waited for any more."""

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

    def end_waits(self) -> None:
        """Wait no longer for a database that is gone. Signal handlers call this."""
        self._database.is_ending = True

    def add_jobs(self, jobs: Iterable[FleetJob]) -> AddedJobs:
        """Add jobs. One whose id is in the table already and whose row is another one now is
        changed and waits, unless it runs or is done.
        """
        added = AddedJobs([], [], [])
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT id, data, state FROM job")
            known = {job_id: (data, state) for job_id, data, state in cursor.fetchall()}
            for position, job in enumerate(jobs):
                data = msgspec.json.encode(job).decode()
                # The smallest place comes first.
                place = position - job.priority * FLEET_JOBS.value
                known_data, state = known.get(job.id, ("", ""))
                if not state:
                    added.new.append(job.id)
                    cursor.execute(_ADD_JOB, (job.id, place, data, job.id, time.time()))
                elif is_same_job(known_data, job):
                    continue
                elif state in {"running", "done"}:
                    added.ignored.append(job.id)
                else:
                    added.changed.append(job.id)
                    cursor.execute(
                        "UPDATE job SET data = ?, place = ?, state = 'waiting' WHERE id = ?",
                        (data, place, job.id),
                    )
        return added

    def claim_job(self, place: str) -> LedgerRow | None:
        """Claim the next waiting job for this process, to be done at `place`;
        None: no job is waiting.
        """
        with self._database.open_transaction() as cursor:
            cursor.execute(_CLAIM_JOB, (*self._database.owner, time.time()))
            found = cursor.fetchone()
            row = parse_row(found) if found is not None else None
            if row is not None:
                cursor.execute(
                    "INSERT INTO attempt VALUES (?, ?, ?, ?, 0, 0, '', '') ON CONFLICT DO NOTHING",
                    (row.job.id, row.attempt, place, time.time()),
                )
        return row

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
        diff, stored = str(result.get("diff") or ""), drop_diff(result)
        spending = Spending(get_cost(result), str(result.get("sessionID") or ""))
        reason = str(result.get("message") or result.get("reason") or state)
        with self._database.open_transaction() as cursor:
            _end_attempt(cursor, (job_id, attempt), spending, reason)
            cursor.execute(
                sql, (state, msgspec.json.encode(stored).decode(), time.time(), job_id, attempt)
            )
            is_stored = cursor.rowcount == 1
            if is_stored:
                cursor.execute(
                    "INSERT INTO diff VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data",
                    (job_id, _without_nul(diff)),
                )
        return is_stored

    def end_attempt(self, job_id: str, attempt: int, spending: Spending, reason: str) -> None:
        """Record the end of an attempt without a result, and what it has cost."""
        with self._database.open_transaction() as cursor:
            _end_attempt(cursor, (job_id, attempt), spending, reason)

    def list_attempts(self, job_id: str) -> list[RecordedAttempt]:
        """Return all attempts at a job, the first one first."""
        sql = """SELECT id, attempt, place, started, ended, cost, reason, session FROM attempt
            WHERE id = ? ORDER BY attempt"""
        with self._database.open_transaction() as cursor:
            cursor.execute(sql, (job_id,))
            return [RecordedAttempt(*row) for row in cursor.fetchall()]

    def sum_cost(self) -> float:
        """Return the dollars that all attempts have cost, those at removed jobs included."""
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT sum(cost) FROM attempt")
            return cursor.fetchone()[0] or 0.0

    def sum_removed_cost(self) -> float:
        """Return the dollars of the attempts at jobs that were removed."""
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT sum(cost) FROM attempt WHERE id NOT IN (SELECT id FROM job)")
            return cursor.fetchone()[0] or 0.0

    def measure_rate(self) -> float:
        """Return how many jobs a second end now; 0: none did for some minutes."""
        now = time.time()
        with self._database.open_transaction() as cursor:
            cursor.execute(
                "SELECT count(*), min(started) FROM attempt WHERE ended > ?", (now - _RATE_SECONDS,)
            )
            count, first = cursor.fetchone()
        return count / max(1.0, now - max(first, now - _RATE_SECONDS)) if count else 0.0

    def list_orphans(self, active_ids: Collection[str]) -> list[Orphan]:
        """Return the running jobs whose coordinator has ended.
        `active_ids`: the jobs that this process runs.
        """
        with self._database.open_transaction() as cursor:
            cursor.execute(_LIST_AT_WORK)
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

    def requeue_ended(self, ids: Collection[str]) -> int:
        """Set jobs that have ended to waiting, and return their number.
        `ids`: these, whatever came of them; empty: all that have failed.
        """
        return self._change(_REQUEUE_NAMED if ids else _REQUEUE_FAILED, ids)

    def cancel(self, ids: Collection[str]) -> int:
        """Set jobs that wait or run to cancelled, and return their number.
        The coordinators of those that run end them.
        """
        sql = "UPDATE job SET state = 'cancelled' WHERE id = ? AND state IN ('waiting', 'running')"
        return self._change(sql, ids)

    def remove(self, ids: Collection[str]) -> int:
        """Remove jobs that don't run, and return their number. What they have cost stays."""
        return self._change(_REMOVE_JOB, ids)

    def _change(self, sql: str, ids: Collection[str]) -> int:
        """Execute a statement for each of these jobs; empty: all. Return how many it has changed.
        Raises UsageProblem for an id that is not in the table.
        """
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT id FROM job")
            known = [row[0] for row in cursor.fetchall()]
            if unknown := sorted(set(ids).difference(known)):
                raise UsageProblem(
                    f"There is no job {', '.join(unknown)}. `codeloop fleet status NAME` lists them."
                )
            count = 0
            for job_id in ids or known:
                cursor.execute(sql, (job_id,))
                count += cursor.rowcount
        return count

    def list_rows(self, *, with_diffs: bool = False) -> list[LedgerRow]:
        """Return all jobs, in the order in which they are done."""
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT id, sum(cost) FROM attempt GROUP BY id")
            costs: dict[str, float] = dict(cursor.fetchall())
            cursor.execute("SELECT id, data FROM diff" if with_diffs else "SELECT '', ''")
            diffs: dict[str, str] = dict(cursor.fetchall())
            cursor.execute(
                "SELECT data, state, attempt, result, changed FROM job ORDER BY place, id"
            )
            rows = [parse_row(row) for row in cursor.fetchall()]
        return [
            structs.replace(
                row,
                # Of a fleet from before attempts were recorded, only the results have costs.
                cost=costs.get(row.job.id, get_cost(row.result)),
                result=row.result | {"diff": diffs[row.job.id]}
                if row.job.id in diffs
                else row.result,
            )
            for row in rows
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

    def read_orders(self) -> tuple[bool, frozenset[str]]:
        """Return whether the fleet is to stop, and the jobs that are cancelled."""
        with self._database.open_transaction() as cursor:
            cursor.execute("SELECT 1 FROM fleet WHERE name = 'stop'")
            is_stopping = cursor.fetchone() is not None
            cursor.execute("SELECT id FROM job WHERE state = 'cancelled'")
            return is_stopping, frozenset(row[0] for row in cursor.fetchall())

    def set_stopping(self, *, on: bool) -> None:
        """Ask the coordinators of the fleet to stop (`on`), or withdraw that request."""
        with self._database.open_transaction() as cursor:
            cursor.execute("DELETE FROM fleet WHERE name = 'stop'")
            if on:
                cursor.execute("INSERT INTO fleet VALUES ('stop', '1')")


def _end_attempt(cursor: Cursor, attempt: tuple[str, int], spending: Spending, reason: str) -> None:
    # One that was given up may tell of more dollars when it ends after all.
    words = (_without_nul(reason), _without_nul(spending.session))
    values = (time.time(), spending.cost, *words, *attempt, spending.cost)
    cursor.execute(_END_ATTEMPT, values)


def _without_nul(text: str) -> str:
    # PostgreSQL takes none in a text.
    return text.replace("\0", "\ufffd")
