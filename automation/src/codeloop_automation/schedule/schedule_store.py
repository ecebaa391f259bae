"""The file of the user's data folder that stores all schedules,
with the results of their last runs.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import create_private_folder, lock, write_atomically
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import now_ms
from codeloop.schema.wire import DECODE_ERRORS
from codeloop_automation.bounds import SCHEDULE_RESULTS, SCHEDULE_WAIT
from codeloop_automation.schedule.cron import parse_cron, to_local_time

RUNNING_STATE = "running"


class ScheduledRun(Struct, frozen=True, kw_only=True):
    """One run of a schedule. `state`: `running`, `done` or `failed`.
    `due` and `started`: in ms since the epoch.

    `text`: the start of the answer or the error; `cost` in dollars.
    """

    due: int
    started: int
    state: str = RUNNING_STATE
    session_id: str = ""
    text: str = ""
    cost: float = 0.0
    steps: int = 0
    duration_ms: int = 0


class Schedule(Struct, frozen=True, kw_only=True):
    """A prompt, and the times at which it runs (`when`, a cron expression).
    `flags`: flags of `codeloop run`.

    `timeout`: the limit of a run, in seconds. `timer`: `systemd` or `cron`.
    `environment`: variables for its runs.
    `last_due`: the due time (ms since the epoch) up to which runs were made.
    """

    id: str
    when: str
    prompt: str
    directory: str
    flags: list[str]
    timeout: float
    timer: str
    environment: dict[str, str]
    last_due: int
    runs: list[ScheduledRun] = []

    def find_latest_due_time(self, now: datetime) -> int | None:
        """Return the latest due time without a run, in ms since the epoch; None: no run is due."""
        latest = parse_cron(self.when).find_latest_due_time(to_local_time(self.last_due), now)
        return int(latest.timestamp() * 1000) if latest is not None else None

    def find_next_due_time(self, now: datetime) -> datetime:
        """Return the first due time after `now`."""
        return parse_cron(self.when).find_next_due_time(now)


class ScheduleStore:
    """Reads and changes the file with all schedules,
    in a folder that is removed with the last schedule.
    """

    def __init__(self, data: Path) -> None:
        self.folder = data / "schedule"
        # The process that makes runs holds this lock for as long as they take. Changes of the file
        # take another one, so that schedules can be added meanwhile.
        self.run_lock = self.folder / "run.lock"
        self._file = self.folder / "schedules.json"

    def list_all(self) -> list[Schedule]:
        """Return the schedules, oldest first. Raises CodeloopError."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=list[Schedule])
        except FileNotFoundError:
            return []
        except (OSError, *DECODE_ERRORS) as error:
            raise CodeloopError(
                f"What is scheduled can't be read: {self._file}: {error}. Repair the file."
            ) from None

    def find(self, schedule_id: str) -> Schedule:
        """Return the schedule with this id. Raises UsageProblem."""
        schedule = next((each for each in self.list_all() if each.id == schedule_id), None)
        if schedule is None:
            raise UsageProblem(
                f"Nothing is scheduled as {schedule_id}. `codeloop schedule list` shows what is."
            )
        return schedule

    def add(self, schedule: Schedule) -> None:
        """Add a schedule. Raises UsageProblem if its id is taken."""

        def append_schedule(schedules: list[Schedule]) -> list[Schedule]:
            if any(each.id == schedule.id for each in schedules):
                raise UsageProblem(
                    f"{schedule.id} is scheduled already. Choose another --name, or remove it first."
                )
            return [*schedules, schedule]

        create_private_folder(self.folder)
        # Another process may remove the folder meanwhile, with what it took for the last schedule.
        while not self._change(append_schedule):
            create_private_folder(self.folder)

    def remove(self, schedule_id: str) -> None:
        """Remove a schedule; after the last one also the folder, unless a process makes runs."""
        others = self._change(
            lambda schedules: [each for each in schedules if each.id != schedule_id]
        )
        if not others:
            # A process that makes runs has its lock in the folder;
            # it then stays until the next removal.
            with (
                suppress(TimeoutError, FileNotFoundError),
                lock(self.run_lock, 0),
                lock(self.folder, 0),
            ):
                # Another process may have added a schedule since.
                if not self.list_all():
                    remove_tree(self.folder)

    def begin_run(self, now: datetime, schedule_id: str | None = None) -> Schedule | None:
        """Store that the first due schedule begins a run, and return that schedule;
        None: none is due.

        A schedule that missed several due times is run once.
        `schedule_id`: begin this schedule, due or not.
        """
        started: Schedule | None = None

        def add_run(schedules: list[Schedule]) -> list[Schedule]:
            nonlocal started
            for position, each in enumerate(schedules):
                if schedule_id is None:
                    latest_due = each.find_latest_due_time(now)
                    if latest_due is None:
                        continue
                    due = last_due = latest_due
                elif each.id == schedule_id:
                    due, last_due = now_ms(), each.last_due
                else:
                    continue
                runs = [*each.runs, ScheduledRun(due=due, started=now_ms())][
                    -SCHEDULE_RESULTS.value :
                ]
                started = msgspec.structs.replace(each, runs=runs, last_due=last_due)
                return [*schedules[:position], started, *schedules[position + 1 :]]
            return schedules

        self._change(add_run)
        return started

    def end_run(self, schedule_id: str, run: ScheduledRun) -> None:
        """Store the result of a schedule's last run, unless the schedule was removed meanwhile."""

        def replace_last_run(schedules: list[Schedule]) -> list[Schedule]:
            return [
                msgspec.structs.replace(each, runs=[*each.runs[:-1], run])
                if each.id == schedule_id and each.runs
                else each
                for each in schedules
            ]

        self._change(replace_last_run)

    def is_running(self) -> bool:
        """Return whether a process makes runs now."""
        if not self.run_lock.exists():
            return False
        try:
            with lock(self.run_lock, 0):
                return False
        except TimeoutError:
            return True

    def _change(self, change: Callable[[list[Schedule]], list[Schedule]]) -> list[Schedule]:
        """Replace the schedules by the result of `change`, under a lock, and return it.
        Raises CodeloopError.

        Without the folder nothing is scheduled, and `change` is not called.
        """
        if not self.folder.exists():
            return []
        try:
            with lock(self.folder, SCHEDULE_WAIT.seconds):
                # Another process may have removed it while this one waited.
                if not self.folder.exists():
                    return []
                changed = change(self.list_all())
                write_atomically(self._file, msgspec.json.encode(changed), sync=True)
                return changed
        except TimeoutError:
            raise CodeloopError(
                "Another process holds the list of what is scheduled. Try again."
            ) from None
        except OSError as error:
            raise CodeloopError(f"What is scheduled can't be stored: {error}.") from None
