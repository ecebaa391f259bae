"""Runs the jobs of a fleet: up to a given number at once with each driver,
each job in a separate clone.
"""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import lock
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON
from codeloop_automation.bounds import (
    FLEET_CLEANUP_TIME,
    FLEET_DRIVER_LOSSES,
    FLEET_DRIVER_OUTAGES,
    FLEET_DRIVER_RETRY,
    FLEET_DRIVER_WORKED,
    FLEET_ORPHANS,
    FLEET_POLL,
)
from codeloop_automation.fleet.driver import (
    OUTPUT_NAME,
    Driver,
    DriverLost,
    FleetStopped,
    JobTask,
    Spending,
    drop_diff,
    get_cost,
    read_spending,
)
from codeloop_automation.fleet.end_programs import end_programs
from codeloop_automation.fleet.job_attempt import (
    INTERRUPTED_EXIT_CODE,
    PROVIDER_EXIT_CODE,
    JobAttempt,
    read_result,
)
from codeloop_automation.fleet.ledger import Ledger
from codeloop_automation.fleet.ledger_rows import LedgerRow
from codeloop_automation.fleet.limits import FleetLimits, LimitWatch, Outage

# Called with each finished job and its result, from any thread.
ResultListener = Callable[[LedgerRow, JSON], object]


class FleetReports(NamedTuple):
    """What a coordinator tells: the result of each job, and lines for the user."""

    on_result: ResultListener
    notify: Callable[[str], object]


class _DriverState:
    """A driver, the number of its running jobs, and whether it may get more."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.running_jobs = 0
        self._losses = 0
        self._last_loss = 0.0
        self._retry_at = 0.0
        # An outage of minutes is waited for; a place that never worked is a mistake in its name.
        self._has_worked = False

    @property
    def is_lost(self) -> bool:
        """Whether the driver gets no more jobs, because it was lost too often in a row."""
        limit = FLEET_DRIVER_OUTAGES if self._has_worked else FLEET_DRIVER_LOSSES
        return self._losses >= limit.value

    @property
    def is_available(self) -> bool:
        """Whether the driver may get a job now. It may not for some seconds after it was lost."""
        return not self.is_lost and time.monotonic() >= self._retry_at

    def record_job_end(self, began: float, *, has_lost_job: bool) -> float:
        """Record the end of a job that started at `began` (monotonic seconds).
        `has_lost_job`: as DriverLost says.

        Return after how many seconds it is tried again; 0: nothing new.
        """
        held = time.monotonic() - began
        self._has_worked |= not has_lost_job or held > FLEET_DRIVER_WORKED.seconds
        if not has_lost_job:
            self._losses = 0
        # When a machine fails, all of its jobs are lost;
        # those that began before the last loss do not count again.
        elif began > self._last_loss:
            self._losses += 1
            self._last_loss = time.monotonic()
            pause = FLEET_DRIVER_RETRY.seconds * 2**self._losses
            self._retry_at = self._last_loss + pause
            return pause
        return 0.0


class Coordinator:
    """Runs the jobs of one fleet. In one folder, only one coordinator runs at a time."""

    def __init__(
        self,
        folder: Path,
        ledger: Ledger,
        flags: Sequence[str],
        drivers: Sequence[Driver],
        reports: FleetReports,
        limits: FleetLimits,
    ) -> None:
        """`folder`: the folder of the fleet. `flags`: flags of `codeloop run`."""
        self._folder = folder
        self._flags = flags
        self._drivers = [_DriverState(driver) for driver in drivers]
        self._reports = reports
        self._ledger = ledger
        self._limits = limits
        self._outage = Outage(folder, reports.notify)
        # The jobs that the operator has cancelled.
        self._cancelled: frozenset[str] = frozenset()
        # By id and attempt.
        self._job_threads: dict[tuple[str, int], threading.Thread] = {}
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
        Signal handlers call this, so it only sets flags.
        """
        self.is_stopping = True
        self._ledger.end_waits()

    def _dispatch_jobs(self, jobs_per_driver: int) -> None:
        """Start jobs while drivers have room, until all jobs are finished or no driver remains."""
        next_check = time.monotonic() + FLEET_ORPHANS.seconds
        watch = LimitWatch(self._limits, self._ledger.sum_cost, self._folder / "attempts")
        while True:
            has_stop_order, self._cancelled = self._ledger.read_orders()
            if not self.is_stopping and (reached := watch.find_reached()):
                self._reports.notify(f"Jobs wait: {reached}.")
                self.is_stopping = True
            self.is_stopping = self.is_stopping or has_stop_order
            can_start = not self.is_stopping and not all(state.is_lost for state in self._drivers)
            if can_start:
                if time.monotonic() > next_check:
                    self._requeue_orphans()
                    next_check = time.monotonic() + FLEET_ORPHANS.seconds
                # After an outage, one job tries whether it is over.
                if not (self._outage.is_going_on and self._job_threads):
                    self._start_jobs(1 if self._outage.is_going_on else jobs_per_driver)
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
                if not self._outage.may_start():
                    return
                row = self._ledger.claim_job(state.driver.name)
                if row is None:
                    return
                state.running_jobs += 1
                thread = threading.Thread(target=self._run_job, args=(row, state), daemon=True)
                self._job_threads[row.job.id, row.attempt] = thread
                thread.start()

    def end_orphans(self) -> bool:
        """End what a killed coordinator has left on this machine;
        return False if a coordinator works in this folder.
        """
        try:
            with lock(self._folder / "lock", 0):
                self._requeue_orphans()
                return True
        except TimeoutError:
            return False

    def _requeue_orphans(self) -> None:
        """End the programs of ended coordinators, and set their unfinished jobs to waiting."""
        orphans = self._ledger.list_orphans([job_id for job_id, _ in list(self._job_threads)])
        if not orphans:
            return
        end_programs((orphan.child, orphan.child_started) for orphan in orphans)
        for orphan in orphans:
            for state in self._drivers:
                state.driver.end_remote_processes(orphan.job_id, orphan.attempt)
            self._end_attempt(orphan.job_id, orphan.attempt, "its coordinator was killed")
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

    def _end_attempt(self, job_id: str, attempt: int, reason: str) -> None:
        """Record the end of an attempt without a result, and what it has cost,
        as far as its output tells.
        """
        output = self._make_attempt_path(job_id, attempt) / OUTPUT_NAME
        self._ledger.end_attempt(job_id, attempt, read_spending(output), reason)

    def _run_job(self, row: LedgerRow, state: _DriverState) -> None:
        """Run one job. This is the body of its thread."""
        began = time.monotonic()
        try:
            reason = self._run_attempt(row, state.driver)
            pause = state.record_job_end(began, has_lost_job=bool(reason))
            if state.is_lost:
                self.lost_drivers[state.driver.name] = reason
            elif pause:
                self._reports.notify(f"{state.driver.name} is tried again in {pause:g} s: {reason}")
        # The table can't be reached. The main thread gets the same error, and reports it.
        except CodeloopError:
            self.is_stopping = True
        finally:
            state.running_jobs -= 1
            del self._job_threads[row.job.id, row.attempt]
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
        if stored_result is not None and drop_diff(stored_result) == drop_diff(row.result):
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
                is_stopping=lambda: self.is_stopping or job.id in self._cancelled,
            )
            driver.remove_remains(job.id)
        except FleetStopped:
            if job.id in self._cancelled:
                self._end_attempt(job.id, row.attempt, "cancelled")
                attempt.discard()
            else:
                self._end_attempt(job.id, row.attempt, "stopped")
                self._stopped_rows.append(row)
            return ""
        except DriverLost as error:
            self._end_attempt(job.id, row.attempt, str(error))
            attempt.discard()
            self._ledger.requeue((job.id, row.attempt))
            return str(error)
        except (CodeloopError, OSError) as error:
            spending = read_spending(task.folder / OUTPUT_NAME)
            result = {
                "reason": "error",
                "exitCode": 1,
                "message": str(error),
                "cost": spending.cost,
                "sessionID": spending.session,
            }
            attempt.discard()
        self._store_result(row, result)
        return ""

    def _store_result(self, row: LedgerRow, result: JSON) -> None:
        """Store the result of an attempt, or let its job wait again if that is to be so."""
        job, message = row.job, str(result.get("message") or "")
        spending = Spending(get_cost(result), str(result.get("sessionID") or ""))
        # Somebody has interrupted the agent: this counts as a stop of the whole fleet.
        if result.get("exitCode") == INTERRUPTED_EXIT_CODE:
            self.is_stopping = True
            self._ledger.end_attempt(job.id, row.attempt, spending, "interrupted")
            self._ledger.requeue((job.id, row.attempt))
            return
        if result.get("exitCode") != PROVIDER_EXIT_CODE:
            self._outage.record_success()
        elif self._outage.record_failure(message):
            self._ledger.end_attempt(job.id, row.attempt, spending, message)
            # The next attempt is a new one, not the result of this one.
            remove_tree(self._folder / "jobs" / job.id)
            self._ledger.requeue((job.id, row.attempt))
            return
        state = "done" if result.get("exitCode") == 0 else "failed"
        if self._ledger.finish_attempt(job.id, row.attempt, state, result):
            self._reports.on_result(row, result)
