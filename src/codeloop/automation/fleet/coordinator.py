"""Works on a fleet's jobs on this machine: so many at once, each in a clone and a process of its own."""

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codeloop.automation.fleet.attempt import INTERRUPTED, JobAttempt, Stopped, end_program, read_result
from codeloop.automation.fleet.ledger import Ledger, LedgerRow
from codeloop.kit.small_files import lock
from codeloop.schema.bounds.automation import FLEET_LOOK
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

Tell = Callable[[LedgerRow, JSON], object]
"""Is told of each job that has ended, from any thread."""


class Coordinator:
    """See the module. One works on a fleet at a time; one that takes its place first ends what that one left."""

    def __init__(self, folder: Path, flags: Sequence[str], tell: Tell) -> None:
        """Open the fleet in `folder`; `flags`: of `codeloop run`."""
        self._folder = folder
        self._flags = flags
        self._tell = tell
        self._ledger = Ledger(folder / "fleet.db")
        self._is_stopping = False

    def work(self, at_once: int) -> None:
        """Do all jobs that wait, until none is left or the fleet is stopped. Raises CodeloopError: another one does."""
        try:
            with lock(self._folder / "lock", 0):
                self._ledger.set_stopping(on=False)
                self._recover()
                workers = [threading.Thread(target=self._work, daemon=True) for _ in range(at_once)]
                for worker in workers:
                    worker.start()
                while any(worker.is_alive() for worker in workers):
                    self._is_stopping = self._is_stopping or self._ledger.is_stopping
                    time.sleep(FLEET_LOOK.seconds)
        except TimeoutError:
            raise CodeloopError(
                "This fleet is worked on already. `codeloop fleet status` shows it, `codeloop fleet stop` ends it."
            ) from None

    def stop(self) -> None:
        """Have every job that runs ended, and start no more; they wait for another time."""
        self._is_stopping = True

    def _recover(self) -> None:
        """End the programs of a coordinator that was killed; what they finished counts, the rest waits again."""
        for orphan in self._ledger.list_orphans():
            if orphan.child:
                end_program(orphan.child, orphan.child_started)
            self._ledger.give_back(orphan.job_id)
        shutil.rmtree(self._folder / "attempts", ignore_errors=True)

    def _work(self) -> None:
        while not self._is_stopping and (row := self._ledger.claim()) is not None:
            self._do(row)

    def _do(self, row: LedgerRow) -> None:
        attempt = JobAttempt(self._folder, row.job, row.attempt, self._flags, lambda: self._is_stopping)
        try:
            result = attempt.run(lambda child: self._ledger.note_child(row.job.id, row.attempt, child))
        except Stopped:
            attempt.discard()
            self._ledger.give_back(row.job.id)
            return
        except (CodeloopError, OSError) as error:
            result = {"reason": "error", "exitCode": 1, "message": str(error)}
            attempt.discard()
        if result.get("exitCode") == INTERRUPTED:  # by a user, who stops everything
            self._is_stopping = True
            self._ledger.give_back(row.job.id)
            return
        state = "failed" if result.get("exitCode") else "done"
        if self._ledger.finish(row.job.id, row.attempt, state, result):
            self._tell(row, result)


def retry_jobs(folder: Path, ids: Sequence[str]) -> int:
    """Let failed jobs (all of them, where none is named) wait again; what they left is kept aside. Returns how many."""
    ledger = Ledger(folder / "fleet.db")
    failed = [row for row in ledger.rows() if row.state == "failed" and (not ids or row.job.id in ids)]
    for row in failed:
        final = folder / "jobs" / row.job.id
        if read_result(final) is not None:
            kept = folder / "earlier" / f"{row.job.id}.{row.attempt}"
            kept.parent.mkdir(exist_ok=True)
            final.rename(kept)
    return ledger.retry(row.job.id for row in failed)
