"""Leases of sessions: only one process works on a session at a time.
A turn acquires the lease and renews it.

The lease of a process that has ended can be acquired by another one at once, where that process is
visible. A process that holds a lease is asked to stop its turn by a change of a file: there is one
for all sessions, and one for each.
"""

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit.processes import (
    UNKNOWN_START_TIME,
    get_machine_name,
    is_own_scope,
    read_pid_scope,
    read_start_time,
)
from codeloop.kit.small_files import read_file_state, write_atomically
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.limits import LEASE_TIME
from codeloop.store.database import Database


class LeaseHolder(msgspec.Struct, frozen=True):
    """The process that holds a lease. `started`: when the process started,
    since process ids are reused.

    `host`: the machine or container in which `pid` is valid, as `read_pid_scope` names it.
    `expires_at`: the end of the lease, in ms since the epoch.
    """

    host: str
    pid: int
    started: str
    expires_at: int


class Leases:
    """The leases of one database. A lease is renewed while a turn runs, and ends with its process,
    or by expiry.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._host = read_pid_scope()
        self._start_time = read_start_time(os.getpid())

    def check_free(self, session_id: str) -> None:
        """Raise OperationError (SessionBusyError), which names the process,
        if another process works on a session.
        """
        holder = self.find_other_holder(session_id)
        if holder is not None:
            raise OperationError(
                "SessionBusyError",
                f"Session {session_id} is being worked on by process {holder.pid}{_describe_host(holder.host)}. "
                f"Wait until it is done, stop it (`codeloop stop {session_id}`), or start another session.",
            )

    def acquire(self, session_id: str) -> None:
        """Acquire a session's lease, or renew it. Raises OperationError as `check_free` does."""
        with self._db.transaction():
            self.check_free(session_id)
            row = (
                session_id,
                self._host,
                os.getpid(),
                self._start_time,
                _read_clock_ms() + LEASE_TIME.value,
            )
            sql = "INSERT OR REPLACE INTO lease (session_id, host, pid, started, until) VALUES (?, ?, ?, ?, ?)"
            self._db.execute(sql, row)

    async def keep_renewing(self, session_id: str) -> None:
        """Renew a lease until cancelled."""
        while True:
            await asyncio.sleep(LEASE_TIME.seconds / 3)
            # A failed renewal is tried again before the lease ends;
            # the turn itself reports a database that fails.
            with suppress(CodeloopError):
                self.acquire(session_id)

    def is_held(self, session_id: str) -> bool:
        """Return whether a living process, this one or another, works on a session."""
        sql = "SELECT 1 FROM lease WHERE session_id = ? AND host = ? AND pid = ? AND started = ?"
        own_lease = self._db.fetch_one(sql, session_id, self._host, os.getpid(), self._start_time)
        return own_lease is not None or self.find_other_holder(session_id) is not None

    def release(self, session_id: str) -> None:
        """Release this process's lease of a session."""
        sql = "DELETE FROM lease WHERE session_id = ? AND host = ? AND pid = ? AND started = ?"
        self._db.execute(sql, (session_id, self._host, os.getpid(), self._start_time))

    def find_other_holder(self, session_id: str) -> LeaseHolder | None:
        """Return the living process other than this one that works on a session;
        None: there is none.
        """
        row = self._db.fetch_one(
            "SELECT host, pid, started, until FROM lease WHERE session_id = ?", session_id
        )
        if row is None:
            return None
        holder = LeaseHolder(*row)
        if (holder.host, holder.pid, holder.started) == (self._host, os.getpid(), self._start_time):
            return None
        return holder if self._is_alive(holder) else None

    def _is_alive(self, holder: LeaseHolder) -> bool:
        """Return whether a holder is alive: found out from its process where that is visible,
        else from the expiry.
        """
        if is_own_scope(holder.host):
            start = read_start_time(holder.pid)
            if start != holder.started:
                return False
            if start != UNKNOWN_START_TIME:
                return True
        # An end later than a lease can have: the clock was set back.
        return _read_clock_ms() <= holder.expires_at <= _read_clock_ms() + LEASE_TIME.value


def _describe_host(host: str) -> str:
    """Return the words that say where a process runs; "": on this machine."""
    if is_own_scope(host):
        return ""
    machine = get_machine_name(host)
    is_same = machine == get_machine_name(read_pid_scope())
    return f" of another container or machine named {machine}" if is_same else f" on {machine}"


def _read_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def get_session_stop_file(stop_file: Path, session_id: str) -> Path:
    """Return the file that asks the turn of one session to stop,
    next to the file for all sessions.
    """
    return stop_file.with_name(f"{stop_file.name}-{session_id}")


def request_stop(file: Path) -> None:
    """Ask the turns and subagents that run now and watch this file to stop. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, str(os.getpid()).encode())


async def request_stop_elsewhere(leases: Leases, session_id: str, file: Path) -> None:
    """Ask the process that works on a session to stop, and wait until it has, or
    `STOP_ALL_TIME` is over. Raises OperationError.

    `file`: the session's stop file, which the other process watches while the turn runs.
    """
    from codeloop.schema.bounds.session import STOP_ALL_TIME, STOP_POLL

    try:
        request_stop(file)
        for _ in range(STOP_ALL_TIME.value // STOP_POLL.value):
            await asyncio.sleep(STOP_POLL.seconds)
            if leases.find_other_holder(session_id) is None:
                break
        file.unlink(missing_ok=True)
    except OSError as error:
        message = f"Another process works on the session and can't be told to stop: {error}"
        raise OperationError("UnknownError", message) from error


async def wait_for_stop(*files: Path) -> None:
    """Return once one of the files changes, which asks the turns that run now to stop."""
    from codeloop.schema.bounds.session import STOP_POLL

    before = [read_file_state(file) for file in files]
    while True:
        await asyncio.sleep(STOP_POLL.seconds)
        if [read_file_state(file) for file in files] != before:
            return
