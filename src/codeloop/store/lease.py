"""Which process works on which session: one at a time, and a dead one is taken over from."""

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.limits import LEASE
from codeloop.store.database import Database

ALIVE = "alive"
"""What is known of a process where there is no /proc."""


class Holder(msgspec.Struct, frozen=True):
    """A process: machine, id, and when it started, since ids are used again. `until`: ms since the epoch."""

    host: str
    pid: int
    started: str
    until: int


class Leases:
    """Leases of sessions. A lease is renewed while its turn runs; it ends with its process, or some time after."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._host = os.uname().nodename
        self._started = _start_of(os.getpid())

    def check(self, session_id: str) -> None:
        """Raise OperationError (SessionBusyError), naming the process, when another one works on the session."""
        holder = self.other(session_id)
        if holder is not None:
            where = "" if holder.host == self._host else f" on {holder.host}"
            raise OperationError(
                "SessionBusyError",
                f"Session {session_id} is being worked on by process {holder.pid}{where}. "
                "Wait until it is done, end it, or start another session.",
            )

    def take(self, session_id: str) -> None:
        """Take or renew a session's lease. Raises as `check` does."""
        with self._db.transaction():
            self.check(session_id)
            row = (session_id, self._host, os.getpid(), self._started, _now() + LEASE.value)
            sql = "INSERT OR REPLACE INTO lease (session_id, host, pid, started, until) VALUES (?, ?, ?, ?, ?)"
            self._db.execute(sql, row)

    async def keep(self, session_id: str) -> None:
        """Renew a lease until cancelled."""
        while True:
            await asyncio.sleep(LEASE.seconds / 3)
            with suppress(CodeloopError):
                self.take(session_id)

    def is_held(self, session_id: str) -> bool:
        """Tell whether a living process, this one or another, works on the session."""
        sql = "SELECT 1 FROM lease WHERE session_id = ? AND host = ? AND pid = ? AND started = ?"
        own = self._db.one(sql, session_id, self._host, os.getpid(), self._started)
        return own is not None or self.other(session_id) is not None

    def drop(self, session_id: str) -> None:
        """Give a lease of this process back."""
        sql = "DELETE FROM lease WHERE session_id = ? AND host = ? AND pid = ? AND started = ?"
        self._db.execute(sql, (session_id, self._host, os.getpid(), self._started))

    def other(self, session_id: str) -> Holder | None:
        """Give the living process other than this one that works on the session."""
        row = self._db.one("SELECT host, pid, started, until FROM lease WHERE session_id = ?", session_id)
        if row is None:
            return None
        holder = Holder(*row)
        if (holder.host, holder.pid, holder.started) == (self._host, os.getpid(), self._started):
            return None
        return holder if self._lives(holder) else None

    def _lives(self, holder: Holder) -> bool:
        """Tell whether a holder is still there: on this machine by looking, however long it was asleep."""
        if holder.host == self._host and _start_of(holder.pid) != holder.started:
            return False
        if holder.host == self._host and holder.started != ALIVE:
            return True
        return _now() <= holder.until <= _now() + LEASE.value  # a later end is from a clock that was set back since


def _now() -> int:
    return time.time_ns() // 1_000_000


def _start_of(pid: int) -> str:
    """Give what tells a process from a later one of the same id; empty when there is no such process."""
    try:
        # Field 22 of proc_pid_stat(5), counted behind the command's closing bracket.
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return "" if state[0] in {"Z", "X"} else state[19]  # one that is dead may still wait to be collected
    except OSError:
        pass
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return ALIVE
    return ALIVE
