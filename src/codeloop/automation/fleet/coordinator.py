"""Runs the jobs of a fleet: up to a given number at once with each driver,
each job in a separate clone.
"""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codeloop.automation.fleet.driver import (
    OUTPUT_NAME,
    Driver,
    DriverLost,
    FleetStopped,
    JobTask,
    get_cost,
    read_cost,
)
from codeloop.automation.fleet.end_programs import end_programs
from codeloop.automation.fleet.job_attempt import INTERRUPTED_EXIT_CODE, JobAttempt, read_result
from codeloop.automation.fleet.ledger import Ledger, LedgerRow
from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import lock
from codeloop.schema.bounds.automation import (
    FLEET_CLEANUP_TIME,
    FLEET_DRIVER_LOSSES,
    FLEET_DRIVER_RETRY,
    FLEET_ORPHANS,
    FLEET_POLL,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

# Called with each finished job and its result, from any thread.
ResultListener = Callable[[LedgerRow, JSON], object]


class _DriverState:
    """A driver, the number of its running jobs, and whether it may get more."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.running_jobs = 0
        self._losses = 0
        self._last_loss = 0.0
        self._retry_at = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether the driver gets no more jobs, because it was lost too often in a row."""
        return self._losses >= FLEET_DRIVER_LOSSES.value

    @property
    def is_available(self) -> bool:
        """Whether the driver may get a job now. It may not for some seconds after it was lost."""
        return not self.is_lost and time.monotonic() >= self._retry_at

    def record_job_end(self, began: float, *, has_lost_job: bool) -> None:
        """Record the end of a job that started at `began` (monotonic seconds).
        `has_lost_job`: as DriverLost says.
        """
        if not has_lost_job:
            self._losses = 0
        # When a machine fails, all of its jobs are lost;
        # those that began before the last loss do not count again.
        elif began > self._last_loss:
            self._losses += 1
            self._last_loss = time.monotonic()
            self._retry_at = self._last_loss + FLEET_DRIVER_RETRY.seconds * 2**self._losses


class Coordinator:
    """Runs the jobs of one fleet. In one folder, only one coordinator runs at a time."""

    def __init__(
        self,
        folder: Path,
        ledger: Ledger,
        flags: Sequence[str],
        drivers: Sequence[Driver],
        on_result: ResultListener,
    ) -> None:
        """`folder`: the folder of the fleet. `flags`: flags of `codeloop run`."""
        self._folder = folder
        self._flags = flags
        self._drivers = [_DriverState(driver) for driver in drivers]
        self._on_result = on_result
        self._ledger = ledger
        self._job_threads: dict[str, threading.Thread] = {}
        # The jobs that a stop interrupted. They are requeued together, in one transaction.
        self._stopped_rows: list[LedgerRow] = []
        self._job_ended = threading.Event()
        self.is_stopping = False
        """Whether running jobs are being ended, and no more are started."""
        self.lost_drivers: dict[str, str] = {}
        """For each driver that gets no more jobs: its name and the reason."""

    def run_jobs(self, jobs_per_driver: int) -> None:
        """Run all waiting jobs until none remains, the fleet is stopped, or all drivers are lost.

        `jobs_per_driver`: how many jobs each driver gets at a time. Raises CodeloopError if another
        coordinator works in this folder, or the table can't be reached.
        """
        try:
            with lock(self._folder / "lock", 0):
                self._ledger.set_stopping(on=False)
                self._requeue_orphans()
                remove_tree(self._folder / "attempts")
                try:
                    self._dispatch_jobs(jobs_per_driver)
                finally:
                    self.is_stopping = self.is_stopping or bool(self._job_threads)
                    for thread in list(self._job_threads.values()):
                        thread.join()
                    self._requeue_stopped()
                # Again, because git processes of a killed coordinator may have written
                # after the first removal.
                if not self.is_stopping:
                    remove_tree(self._folder / "attempts")
        except TimeoutError:
            raise CodeloopError(
                "This fleet is worked on already. `codeloop fleet status` shows it, `codeloop fleet stop` ends it."
            ) from None

    def stop(self) -> None:
        """End all running jobs, and start no more.
        Signal handlers call this, so it only sets a flag.
        """
        self.is_stopping = True

    def _dispatch_jobs(self, jobs_per_driver: int) -> None:
        """Start jobs while drivers have room, until all jobs are finished or no driver remains."""
        next_check = time.monotonic() + FLEET_ORPHANS.seconds
        while True:
            self.is_stopping = self.is_stopping or self._ledger.is_stopping
            can_start = not self.is_stopping and not all(state.is_lost for state in self._drivers)
            if can_start:
                if time.monotonic() > next_check:
                    self._requeue_orphans()
                    next_check = time.monotonic() + FLEET_ORPHANS.seconds
                self._start_jobs(jobs_per_driver)
            if not self._job_threads and not (can_start and self._ledger.is_open):
                return
            self._job_ended.wait(FLEET_POLL.seconds)
            self._job_ended.clear()

    def _start_jobs(self, jobs_per_driver: int) -> None:
        """Start waiting jobs while drivers have room, one for each driver in turn,
        each in a thread of its own.
        """
        while available_states := [
            state
            for state in self._drivers
            if state.running_jobs < jobs_per_driver and state.is_available
        ]:
            for state in available_states:
                row = self._ledger.claim_job()
                if row is None:
                    return
                state.running_jobs += 1
                thread = threading.Thread(target=self._run_job, args=(row, state), daemon=True)
                self._job_threads[row.job.id] = thread
                thread.start()

    def _requeue_orphans(self) -> None:
        """End the programs of ended coordinators, and set their unfinished jobs to waiting."""
        orphans = self._ledger.list_orphans(list(self._job_threads))
        if not orphans:
            return
        end_programs((orphan.child, orphan.child_started) for orphan in orphans)
        for orphan in orphans:
            for state in self._drivers:
                state.driver.end_remote_processes(orphan.job_id, orphan.attempt)
            self._record_cost(orphan.job_id, orphan.attempt)
        self._ledger.requeue(*((orphan.job_id, orphan.attempt) for orphan in orphans))

    def _requeue_stopped(self) -> None:
        """Set the jobs that a stop interrupted to waiting,
        and remove their folders as far as time allows.
        """
        if self._stopped_rows:
            self._ledger.requeue(*((row.job.id, row.attempt) for row in self._stopped_rows))
        deadline = time.monotonic() + FLEET_CLEANUP_TIME.seconds
        for row in self._stopped_rows:
            # The next run removes the rest.
            if time.monotonic() < deadline:
                remove_tree(self._make_attempt_path(row.job.id, row.attempt))

    def _make_attempt_path(self, job_id: str, attempt: int) -> Path:
        return self._folder / "attempts" / f"{job_id}.{attempt}"

    def _record_cost(self, job_id: str, attempt: int) -> None:
        """Record what an attempt has cost that ends without a result,
        as far as its output tells.
        """
        self._ledger.record_cost(
            job_id, attempt, read_cost(self._make_attempt_path(job_id, attempt) / OUTPUT_NAME)
        )

    def _run_job(self, row: LedgerRow, state: _DriverState) -> None:
        """Run one job. This is the body of its thread."""
        began = time.monotonic()
        try:
            reason = self._run_attempt(row, state.driver)
            state.record_job_end(began, has_lost_job=bool(reason))
            if state.is_lost:
                self.lost_drivers[state.driver.name] = reason
        # The table can't be reached. The main thread gets the same error, and reports it.
        except CodeloopError:
            self.is_stopping = True
        finally:
            state.running_jobs -= 1
            del self._job_threads[row.job.id]
            self._job_ended.set()

    def _run_attempt(self, row: LedgerRow, driver: Driver) -> str:
        """Make one attempt at a job, and store its result;
        return why the driver was lost, or "".
        """
        job = row.job
        final_folder = self._folder / "jobs" / job.id
        stored_result = read_result(final_folder)
        # The same result in the folder and the table: `codeloop fleet retry` has requeued the job.
        # Another result in the folder: a coordinator finished the job,
        # and was killed before it could update the table.
        if stored_result is not None and stored_result == row.result:
            earlier_folder = self._folder / "earlier" / f"{job.id}.{row.attempt - 1}"
            earlier_folder.parent.mkdir(exist_ok=True)
            final_folder.rename(earlier_folder)
        task = JobTask(
            job=job,
            attempt=row.attempt,
            folder=self._make_attempt_path(job.id, row.attempt),
            flags=self._flags,
        )
        attempt = JobAttempt(self._folder, driver, task)
        try:
            result = attempt.run(
                record_child=lambda child: self._ledger.record_child(job.id, row.attempt, child),
                is_stopping=lambda: self.is_stopping,
            )
            driver.remove_remains(job.id)
        except FleetStopped:
            self._record_cost(job.id, row.attempt)
            self._stopped_rows.append(row)
            return ""
        except DriverLost as error:
            self._record_cost(job.id, row.attempt)
            attempt.discard()
            self._ledger.requeue((job.id, row.attempt))
            return str(error)
        except (CodeloopError, OSError) as error:
            cost = read_cost(task.folder / OUTPUT_NAME)
            result = {"reason": "error", "exitCode": 1, "message": str(error), "cost": cost}
            attempt.discard()
        # Somebody has interrupted the agent: this counts as a stop of the whole fleet.
        if result.get("exitCode") == INTERRUPTED_EXIT_CODE:
            self.is_stopping = True
            self._ledger.record_cost(job.id, row.attempt, get_cost(result))
            self._ledger.requeue((job.id, row.attempt))
            return ""
        state = "done" if result.get("exitCode") == 0 else "failed"
        if self._ledger.finish_attempt(job.id, row.attempt, state, result):
            self._on_result(row, result)
        return ""
