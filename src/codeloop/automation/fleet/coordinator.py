"""Works on a fleet's jobs: so many at once by each driver, each in a clone of its own."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codeloop.automation.fleet.attempt import INTERRUPTED, JobAttempt, read_result
from codeloop.automation.fleet.driver import Driver, DriverLost, JobTask, Stopped
from codeloop.automation.fleet.ledger import Ledger, LedgerRow
from codeloop.automation.fleet.local import end_programs
from codeloop.kit.small_files import lock, remove_tree
from codeloop.schema.bounds.automation import FLEET_LOOK, FLEET_LOST, FLEET_LOST_WAIT, FLEET_ORPHANS, FLEET_TIDY
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

Tell = Callable[[LedgerRow, JSON], object]
"""Is told of each job that has ended, from any thread."""


class _Place:
    """A driver, how many jobs it does now, and whether it can be reached."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.running = 0
        self._losses = 0
        self._last_loss = 0.0
        self._rest_until = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether it gets no more jobs."""
        return self._losses >= FLEET_LOST.value

    @property
    def is_resting(self) -> bool:
        """Whether it is waited before the next job, because the last one was lost."""
        return time.monotonic() < self._rest_until

    def note(self, began: float, *, is_lost: bool) -> None:
        """Count how a job that began then has ended; several that were lost together count once."""
        if not is_lost:
            self._losses = 0
        elif began > self._last_loss:
            self._losses += 1
            self._last_loss = time.monotonic()
            self._rest_until = self._last_loss + FLEET_LOST_WAIT.seconds * 2**self._losses


class Coordinator:
    """See the module. One works in a folder at a time; one that takes its place first ends what that one left."""

    def __init__(
        self, folder: Path, ledger: Ledger, flags: Sequence[str], drivers: Sequence[Driver], tell: Tell
    ) -> None:
        """Take the fleet in `folder`; `flags`: of `codeloop run`."""
        self._folder = folder
        self._flags = flags
        self._places = [_Place(driver) for driver in drivers]
        self._tell = tell
        self._ledger = ledger
        self._active: dict[str, threading.Thread] = {}
        self._stopped: list[LedgerRow] = []
        """Those whose work was ended by a stop; they are given back together, however many there are."""
        self._has_ended = threading.Event()
        self.is_stopping = False
        """Whether no more jobs are started, and those that run are ended."""
        self.lost: dict[str, str] = {}
        """Drivers that were given up, and why."""

    def work(self, at_once: int) -> None:
        """Do all jobs that wait, `at_once` by each driver, until none is left or the fleet is stopped.

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
        """Have every job that runs ended, and start no more; they wait for another time."""
        self.is_stopping = True

    def _schedule(self, at_once: int) -> None:
        """Start jobs as there is room, until no job is open or none can be done any more."""
        look = time.monotonic() + FLEET_ORPHANS.seconds
        while True:
            self.is_stopping = self.is_stopping or self._ledger.is_stopping
            can_start = not self.is_stopping and not all(place.is_lost for place in self._places)
            if can_start:
                if time.monotonic() > look:
                    self._take_orphans()
                    look = time.monotonic() + FLEET_ORPHANS.seconds
                self._start_jobs(at_once)
            if not self._active and not (can_start and self._ledger.is_open):
                return
            self._has_ended.wait(FLEET_LOOK.seconds)
            self._has_ended.clear()

    def _start_jobs(self, at_once: int) -> None:
        """Start a thread for each job that waits, in turn at each place, while there is room."""
        while free := [place for place in self._places if place.running < at_once and _is_free(place)]:
            for place in free:
                row = self._ledger.claim()
                if row is None:
                    return
                place.running += 1
                thread = threading.Thread(target=self._work, args=(row, place), daemon=True)
                self._active[row.job.id] = thread
                thread.start()

    def _take_orphans(self) -> None:
        """End the programs of coordinators that are gone; what they finished counts, the rest waits again."""
        orphans = self._ledger.list_orphans(list(self._active))
        if not orphans:
            return
        end_programs((orphan.child, orphan.child_started) for orphan in orphans)
        for orphan in orphans:
            for place in self._places:
                place.driver.end_left(orphan.job_id, orphan.attempt)
        self._ledger.give_back(*((orphan.job_id, orphan.attempt) for orphan in orphans))

    def _give_back_stopped(self) -> None:
        """Let the jobs wait again that the stop has ended. What takes long to remove is left to the next run."""
        if self._stopped:
            self._ledger.give_back(*((row.job.id, row.attempt) for row in self._stopped))
        deadline = time.monotonic() + FLEET_TIDY.seconds
        for row in self._stopped:
            if time.monotonic() < deadline:
                remove_tree(self._attempt_folder(row))

    def _attempt_folder(self, row: LedgerRow) -> Path:
        return self._folder / "attempts" / f"{row.job.id}.{row.attempt}"

    def _work(self, row: LedgerRow, place: _Place) -> None:
        """Do one job, in a thread of its own."""
        began = time.monotonic()
        try:
            reason = self._do(row, place.driver)
            place.note(began, is_lost=bool(reason))
            if place.is_lost:
                self.lost[place.driver.name] = reason
        except CodeloopError:  # the table is away: the main thread meets the same, and says so
            self.is_stopping = True
        finally:
            place.running -= 1
            del self._active[row.job.id]
            self._has_ended.set()

    def _do(self, row: LedgerRow, driver: Driver) -> str:
        """Do one job; returns why its driver was lost, or ""."""
        job = row.job
        final = self._folder / "jobs" / job.id
        if (known := read_result(final)) is not None and known == row.result:  # it has counted, and is to be done anew
            kept = self._folder / "earlier" / f"{job.id}.{row.attempt - 1}"
            kept.parent.mkdir(exist_ok=True)
            final.rename(kept)
        task = JobTask(job, row.attempt, self._attempt_folder(row), self._flags)
        attempt = JobAttempt(self._folder, driver, task)
        try:
            result = attempt.run(
                lambda child: self._ledger.note_child(job.id, row.attempt, child), lambda: self.is_stopping
            )
            driver.forget(job.id)
        except Stopped:
            self._stopped.append(row)
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


def _is_free(place: _Place) -> bool:
    return not place.is_lost and not place.is_resting
