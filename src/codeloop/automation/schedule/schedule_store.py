"""Stores the schedules and the results of their runs, in one file of the user's data folder."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.automation.schedule.cron import local_time, parse_cron
from codeloop.kit.small_files import lock, make_private, write_atomically
from codeloop.schema.bounds.automation import SCHEDULE_RESULTS, SCHEDULE_WAIT
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import now_ms

RUNNING = "running"


class ScheduledRun(Struct, frozen=True, kw_only=True):
    """One run of a schedule. `state`: `running`, `done` or `failed`. `due` and `started`: in ms since the epoch.

    `text`: the start of the answer or the error; `cost` in dollars.
    """

    due: int
    started: int
    state: str = RUNNING
    session_id: str = ""
    text: str = ""
    cost: float = 0.0
    steps: int = 0
    duration_ms: int = 0


class Schedule(Struct, frozen=True, kw_only=True):
    """A prompt and the times at which it runs (`when`, a cron expression). `flags`: of `codeloop run`.

    `timeout`: of a run, in seconds. `timer`: `systemd` or `cron`. `environment`: the variables of its runs.
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

    def latest_due(self, now: datetime) -> int | None:
        """Return the latest due time without a run, in ms since the epoch; None: no run is due."""
        latest = parse_cron(self.when).latest_due(local_time(self.last_due), now)
        return int(latest.timestamp() * 1000) if latest is not None else None

    def next_due(self, now: datetime) -> datetime:
        """Return the next due time."""
        return parse_cron(self.when).next_due(now)


class ScheduleStore:
    """The file with all schedules. Processes change the file under a lock; there is no file without schedules."""

    def __init__(self, data: Path) -> None:
        self.folder = data / "schedule"
        self.run_lock = self.folder / "run.lock"
        """The lock of the process that makes runs."""
        self._file = self.folder / "schedules.json"

    def list_all(self) -> list[Schedule]:
        """Return the schedules, oldest first. Raises CodeloopError."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=list[Schedule])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as error:
            raise CodeloopError(f"What is scheduled can't be read: {self._file}: {error}. Repair the file.") from None

    def find(self, schedule_id: str) -> Schedule:
        """Return the schedule with this id. Raises UsageProblem."""
        schedule = next((each for each in self.list_all() if each.id == schedule_id), None)
        if schedule is None:
            raise UsageProblem(f"Nothing is scheduled as {schedule_id}. `codeloop schedule list` shows what is.")
        return schedule

    def add(self, schedule: Schedule) -> None:
        """Add a schedule. Raises UsageProblem if its id is taken."""

        def append(schedules: list[Schedule]) -> list[Schedule]:
            if any(each.id == schedule.id for each in schedules):
                raise UsageProblem(f"{schedule.id} is scheduled already. Choose another --name, or remove it first.")
            return [*schedules, schedule]

        make_private(self.folder)
        self._change(append)

    def remove(self, name: str) -> None:
        """Remove a schedule; after the last one also the folder, unless a process makes runs."""
        others = self._change(lambda schedules: [each for each in schedules if each.id != name])
        if not others:
            with suppress(TimeoutError, FileNotFoundError), lock(self.run_lock, 0):
                shutil.rmtree(self.folder)

    def begin(self, now: datetime, name: str | None = None) -> Schedule | None:
        """Store that the next due schedule begins a run, and return that schedule; None: none is due.

        A schedule that missed several due times is run once. `name`: begin this schedule, due or not.
        """
        started_schedules: list[Schedule] = []

        def note(schedules: list[Schedule]) -> list[Schedule]:
            changed: list[Schedule] = []
            for each in schedules:
                is_wanted = each.id == name if name else each.latest_due(now) is not None
                if started_schedules or not is_wanted:
                    changed.append(each)
                    continue
                due = now_ms() if name else each.latest_due(now) or 0
                runs = [*each.runs, ScheduledRun(due=due, started=now_ms())][-SCHEDULE_RESULTS.value :]
                last = each.last_due if name else due
                started_schedules.append(msgspec.structs.replace(each, runs=runs, last_due=last))
                changed.append(started_schedules[0])
            return changed

        self._change(note)
        return started_schedules[0] if started_schedules else None

    def end(self, name: str, run: ScheduledRun) -> None:
        """Store the result of a schedule's last run, unless the schedule was removed meanwhile."""

        def note(schedules: list[Schedule]) -> list[Schedule]:
            return [
                msgspec.structs.replace(each, runs=[*each.runs[:-1], run]) if each.id == name and each.runs else each
                for each in schedules
            ]

        self._change(note)

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
        if not self.folder.exists():
            return []
        try:
            with lock(self.folder, SCHEDULE_WAIT.seconds):
                changed = change(self.list_all())
                write_atomically(self._file, msgspec.json.encode(changed), sync=True)
                return changed
        except TimeoutError:
            raise CodeloopError("Another process holds the list of what is scheduled. Try again.") from None
        except OSError as error:
            raise CodeloopError(f"What is scheduled can't be stored: {error}.") from None
