"""Runs the jobs of a fleet: up to a given number at once with each driver, each job in a separate clone."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codeloop.automation.fleet.driver import Driver, DriverLost, JobTask, Stopped
from codeloop.automation.fleet.job_attempt import INTERRUPTED, JobAttempt, read_result
from codeloop.automation.fleet.ledger import Ledger, LedgerRow
from codeloop.automation.fleet.local_driver import end_programs
from codeloop.kit.small_files import lock, remove_tree
from codeloop.schema.bounds.automation import (
    FLEET_CLEANUP_TIME,
    FLEET_DRIVER_LOSSES,
    FLEET_DRIVER_RETRY,
    FLEET_ORPHANS,
    FLEET_POLL,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

Tell = Callable[[LedgerRow, JSON], object]
"""Called with each job that has ended and its result, from any thread."""


class _DriverState:
    """A driver, the number of its running jobs, and whether it is lost or must wait."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.running = 0
        self._losses = 0
        self._last_loss = 0.0
        self._rest_until = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether the driver gets no more jobs: it was lost too often."""
        return self._losses >= FLEET_DRIVER_LOSSES.value

    @property
    def is_resting(self) -> bool:
        """Whether the driver gets no job for some seconds, because it lost its last one."""
        return time.monotonic() < self._rest_until

    def count_end(self, began: float, *, is_lost: bool) -> None:
        """Count the end of a job that started at `began` (monotonic seconds); jobs lost together count once."""
        if not is_lost:
            self._losses = 0
        elif began > self._last_loss:
            self._losses += 1
            self._last_loss = time.monotonic()
            self._rest_until = self._last_loss + FLEET_DRIVER_RETRY.seconds * 2**self._losses


class Coordinator:
    """Runs the jobs of one fleet. Only one runs in a folder at a time; it first ends programs of earlier ones."""

    def __init__(
        self, folder: Path, ledger: Ledger, flags: Sequence[str], drivers: Sequence[Driver], tell: Tell
    ) -> None:
        """`folder`: of the fleet; `flags`: of `codeloop run`; `tell`: called with each finished job."""
        self._folder = folder
        self._flags = flags
        self._drivers = [_DriverState(driver) for driver in drivers]
        self._tell = tell
        self._ledger = ledger
        self._active: dict[str, threading.Thread] = {}
        self._stopped_rows: list[LedgerRow] = []
        """The jobs that a stop interrupted. They are set to waiting together, in one transaction."""
        self._has_ended = threading.Event()
        self.is_stopping = False
        """Whether running jobs are being ended and no more jobs are started."""
        self.lost_drivers: dict[str, str] = {}
        """The reason by driver, of the drivers that get no more jobs."""

    def work(self, at_once: int) -> None:
        """Run all waiting jobs, `at_once` by each driver, until none remains or the fleet is stopped.

        Raises CodeloopError: another coordinator works in this folder, or the table can't be reached.
        """
        try:
            with lock(self._folder / "lock", 0):
                self._ledger.set_stopping(on=False)
                self._take_orphans()
                remove_tree(self._folder / "attempts")
                try:
                    self._schedule(at_once)
                finally:
                    self.is_stopping = self.is_stopping or bool(self._active)
                    for thread in list(self._active.values()):
                        thread.join()
                    self._give_back_stopped()
                if not self.is_stopping:  # a git of a killed coordinator may have gone on for a while
                    remove_tree(self._folder / "attempts")
        except TimeoutError:
            raise CodeloopError(
                "This fleet is worked on already. `codeloop fleet status` shows it, `codeloop fleet stop` ends it."
            ) from None

    def stop(self) -> None:
        """End all running jobs, which are set to waiting, and start no more."""
        self.is_stopping = True

    def _schedule(self, at_once: int) -> None:
        """Start jobs while drivers have room, until all jobs are finished or no driver remains."""
        next_check = time.monotonic() + FLEET_ORPHANS.seconds
        while True:
            self.is_stopping = self.is_stopping or self._ledger.is_stopping
            can_start = not self.is_stopping and not all(state.is_lost for state in self._drivers)
            if can_start:
                if time.monotonic() > next_check:
                    self._take_orphans()
                    next_check = time.monotonic() + FLEET_ORPHANS.seconds
                self._start_jobs(at_once)
            if not self._active and not (can_start and self._ledger.is_open):
                return
            self._has_ended.wait(FLEET_POLL.seconds)
            self._has_ended.clear()

    def _start_jobs(self, at_once: int) -> None:
        """Start a thread for each waiting job, for one driver after the other, while they have room."""
        while free := [state for state in self._drivers if state.running < at_once and _is_free(state)]:
            for state in free:
                row = self._ledger.claim()
                if row is None:
                    return
                state.running += 1
                thread = threading.Thread(target=self._work, args=(row, state), daemon=True)
                self._active[row.job.id] = thread
                thread.start()

    def _take_orphans(self) -> None:
        """End the programs of ended coordinators, and set their unfinished jobs to waiting."""
        orphans = self._ledger.list_orphans(list(self._active))
        if not orphans:
            return
        end_programs((orphan.child, orphan.child_started) for orphan in orphans)
        for orphan in orphans:
            for state in self._drivers:
                state.driver.end_leftovers(orphan.job_id, orphan.attempt)
        self._ledger.give_back(*((orphan.job_id, orphan.attempt) for orphan in orphans))

    def _give_back_stopped(self) -> None:
        """Set the jobs that a stop interrupted to waiting. Folders that take long to remove stay for the next run."""
        if self._stopped_rows:
            self._ledger.give_back(*((row.job.id, row.attempt) for row in self._stopped_rows))
        deadline = time.monotonic() + FLEET_CLEANUP_TIME.seconds
        for row in self._stopped_rows:
            if time.monotonic() < deadline:
                remove_tree(self._attempt_folder(row))

    def _attempt_folder(self, row: LedgerRow) -> Path:
        return self._folder / "attempts" / f"{row.job.id}.{row.attempt}"

    def _work(self, row: LedgerRow, state: _DriverState) -> None:
        """Run one job; the body of its thread."""
        began = time.monotonic()
        try:
            reason = self._do(row, state.driver)
            state.count_end(began, is_lost=bool(reason))
            if state.is_lost:
                self.lost_drivers[state.driver.name] = reason
        except CodeloopError:  # the table is away: the main thread meets the same, and says so
            self.is_stopping = True
        finally:
            state.running -= 1
            del self._active[row.job.id]
            self._has_ended.set()

    def _do(self, row: LedgerRow, driver: Driver) -> str:
        """Run one job; return why its driver was lost, "" if it was not."""
        job = row.job
        final = self._folder / "jobs" / job.id
        if (
            stored := read_result(final)
        ) is not None and stored == row.result:  # an earlier attempt is finished, and the job is run again
            earlier = self._folder / "earlier" / f"{job.id}.{row.attempt - 1}"
            earlier.parent.mkdir(exist_ok=True)
            final.rename(earlier)
        task = JobTask(job, row.attempt, self._attempt_folder(row), self._flags)
        attempt = JobAttempt(self._folder, driver, task)
        try:
            result = attempt.run(
                lambda child: self._ledger.note_child(job.id, row.attempt, child), lambda: self.is_stopping
            )
            driver.forget(job.id)
        except Stopped:
            self._stopped_rows.append(row)
            return ""
        except DriverLost as error:
            attempt.discard()
            self._ledger.give_back((job.id, row.attempt))
            return str(error)
        except (CodeloopError, OSError) as error:
            result = {"reason": "error", "exitCode": 1, "message": str(error)}
            attempt.discard()
        if result.get("exitCode") == INTERRUPTED:  # by a user, who stops everything
            self.is_stopping = True
            self._ledger.give_back((job.id, row.attempt))
            return ""
        state = "failed" if result.get("exitCode") else "done"
        if self._ledger.finish(job.id, row.attempt, state, result):
            self._tell(row, result)
        return ""


def _is_free(state: _DriverState) -> bool:
    return not state.is_lost and not state.is_resting
