"""Works on a fleet's jobs: so many at once by each driver, each in a clone of its own."""

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codeloop.automation.fleet.attempt import INTERRUPTED, JobAttempt, read_result
from codeloop.automation.fleet.driver import Driver, DriverLost, JobTask, Stopped
from codeloop.automation.fleet.ledger import Ledger, LedgerRow
from codeloop.automation.fleet.local import end_program
from codeloop.kit.small_files import lock
from codeloop.schema.bounds.automation import FLEET_LOOK, FLEET_LOST, FLEET_LOST_WAIT
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

Tell = Callable[[LedgerRow, JSON], object]
"""Is told of each job that has ended, from any thread."""


class Coordinator:
    """See the module. One works on a fleet at a time; one that takes its place first ends what that one left."""

    def __init__(self, folder: Path, flags: Sequence[str], drivers: Sequence[Driver], tell: Tell) -> None:
        """Open the fleet in `folder`; `flags`: of `codeloop run`."""
        self._folder = folder
        self._flags = flags
        self._drivers = drivers
        self._tell = tell
        self._ledger = Ledger(folder / "fleet.db")
        self.is_stopping = False
        """Whether no more jobs are started, and those that run are ended."""
        self._claims = threading.Lock()
        self._running = 0
        self.lost: dict[str, str] = {}
        """Drivers that were given up, and why."""

    def work(self, at_once: int) -> None:
        """Do all jobs that wait, `at_once` by each driver, until none is left or the fleet is stopped.

        Raises CodeloopError: another coordinator works on it.
        """
        try:
            with lock(self._folder / "lock", 0):
                self._ledger.set_stopping(on=False)
                self._recover()
                workers = [
                    threading.Thread(target=self._work, args=(driver,), daemon=True)
                    for _ in range(at_once)
                    for driver in self._drivers
                ]
                for worker in workers:
                    worker.start()
                while any(worker.is_alive() for worker in workers):
                    self.is_stopping = self.is_stopping or self._ledger.is_stopping
                    time.sleep(FLEET_LOOK.seconds)
        except TimeoutError:
            raise CodeloopError(
                "This fleet is worked on already. `codeloop fleet status` shows it, `codeloop fleet stop` ends it."
            ) from None

    def stop(self) -> None:
        """Have every job that runs ended, and start no more; they wait for another time."""
        self.is_stopping = True

    def _recover(self) -> None:
        """End the programs of a coordinator that was killed; what they finished counts, the rest waits again."""
        for orphan in self._ledger.list_orphans():
            if orphan.child:
                end_program(orphan.child, orphan.child_started)
            for driver in self._drivers:
                driver.end_left(orphan.job_id, orphan.attempt)
            self._ledger.give_back(orphan.job_id)
        shutil.rmtree(self._folder / "attempts", ignore_errors=True)

    def _work(self, driver: Driver) -> None:
        failures = 0
        while not self.is_stopping and driver.name not in self.lost:
            with self._claims:
                row = self._ledger.claim()
                if row is None and not self._running:
                    return
                self._running += row is not None
            if row is None:  # one that runs may be given back
                time.sleep(FLEET_LOOK.seconds)
                continue
            try:
                reason = self._do(row, driver)
            finally:
                with self._claims:
                    self._running -= 1
            failures = failures + 1 if reason else 0
            if failures == FLEET_LOST.value:
                self.lost[driver.name] = reason
            elif failures:
                self._rest(FLEET_LOST_WAIT.seconds * 2**failures)

    def _rest(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.is_stopping:
            time.sleep(FLEET_LOOK.seconds)

    def _do(self, row: LedgerRow, driver: Driver) -> str:
        """Do one job; returns why its driver was lost, or ""."""
        task = JobTask(row.job, row.attempt, self._folder / "attempts" / f"{row.job.id}.{row.attempt}", self._flags)
        attempt = JobAttempt(self._folder, driver, task)
        try:
            result = attempt.run(
                lambda child: self._ledger.note_child(row.job.id, row.attempt, child), lambda: self.is_stopping
            )
            driver.forget(row.job.id)
        except (Stopped, DriverLost) as error:
            attempt.discard()
            self._ledger.give_back(row.job.id)
            return str(error) if isinstance(error, DriverLost) else ""
        except (CodeloopError, OSError) as error:
            result = {"reason": "error", "exitCode": 1, "message": str(error)}
            attempt.discard()
        if result.get("exitCode") == INTERRUPTED:  # by a user, who stops everything
            self.is_stopping = True
            self._ledger.give_back(row.job.id)
            return ""
        state = "failed" if result.get("exitCode") else "done"
        if self._ledger.finish(row.job.id, row.attempt, state, result):
            self._tell(row, result)
        return ""


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
