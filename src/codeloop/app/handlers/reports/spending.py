"""Reads how much of each configured budget was spent, and finds the one that limits a turn."""

import asyncio
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.app.handlers.reports.databases import find_databases, find_own_directory
from codeloop.app.project import Project
from codeloop.kit.small_files import write_atomically
from codeloop.schema.api.session_requests import BudgetUse
from codeloop.schema.config import SpendingConfig
from codeloop.store.database import StoreError
from codeloop.store.queries import NO_LIMIT, SessionFilter, open_queries


async def read_budgets(project: Project) -> list[BudgetUse]:
    """Return the dollars spent of each budget since its day or month began (local time); [] if none is configured."""
    budget = project.settings.config.budget
    project_budget = budget.project
    if budget == SpendingConfig():
        return []
    databases = find_databases(project) if budget.day is not None or budget.month is not None else []
    has_project_budget = project_budget.day is not None or project_budget.month is not None
    project_databases = [project.store.path] if has_project_budget else []
    directory, path = find_own_directory(project), project.settings.paths.cache / "spending.json"

    def read() -> list[BudgetUse]:
        sums = _SpendingSums(path)
        of_all, of_project = sums.add_up(databases, None), sums.add_up(project_databases, directory)
        sums.store()
        rows = (
            ("day", budget.day, of_all[0]),
            ("month", budget.month, of_all[1]),
            ("project.day", project_budget.day, of_project[0]),
            ("project.month", project_budget.month, of_project[1]),
        )
        return [BudgetUse(name=name, limit=limit, spent=cost) for name, limit, cost in rows if limit is not None]

    return await asyncio.to_thread(read)


def find_tightest_budget(budgets: Iterable[BudgetUse]) -> BudgetUse | None:
    """Return the budget with the fewest dollars left; None without budgets."""
    return min(budgets, key=lambda each: each.limit - each.spent, default=None)


class DailySums(Struct):
    """The dollars of a database by day (ordinal) since the begin of a `month` (ms since the epoch).

    `state`: the times and sizes of the database's files when it was read.
    """

    state: list[int]
    month: int
    days: dict[int, float]


_decode = msgspec.json.Decoder(dict[str, DailySums]).decode


class _SpendingSums:
    """The sums of databases, cached in a file, so that for a prompt only changed databases are read again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        self._today, self._month = today.date().toordinal(), int(today.replace(day=1).timestamp() * 1000)
        self._sums_by_day: dict[str, DailySums] = {}
        with suppress(OSError, msgspec.MsgspecError):
            self._sums_by_day = _decode(file.read_bytes())
        self._used: dict[str, DailySums] = {}

    def add_up(self, paths: Iterable[Path], directory: str | None) -> tuple[float, float]:
        """Return the dollars of today and of this month, of the sessions of a directory or of all."""
        of_day = of_month = 0.0
        for path in paths:
            state = _read_state(path)
            if state[0] // 1_000_000 < self._month and state[2] // 1_000_000 < self._month:
                continue  # nothing was written since the month began
            key = f"{path}\n{directory or ''}"
            sums = self._sums_by_day.get(key)
            if sums is None or sums.state != state or sums.month != self._month:
                sums = DailySums(state, self._month, self._read(path, directory))
            self._used[key] = sums
            of_month += sum(sums.days.values())
            of_day += sums.days.get(self._today, 0.0)
        return of_day, of_month

    def store(self) -> None:
        """Write the sums to the file if they have changed."""
        daily_sums = {key: sums for key, sums in self._sums_by_day.items() if sums.month == self._month} | self._used
        if daily_sums != self._sums_by_day:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._file, msgspec.json.encode(daily_sums))

    def _read(self, path: Path, directory: str | None) -> dict[int, float]:
        days: dict[int, float] = {}
        with suppress(StoreError), closing(open_queries(path)) as queries:
            costs = queries.list_request_costs(self._month)
            if costs and directory is not None:
                ids = {each.id for each in queries.find_sessions(SessionFilter(directory=directory, limit=NO_LIMIT))}
                costs = [each for each in costs if each[0] in ids]
            for _, created, cost in costs:
                day = datetime.fromtimestamp(created / 1000).astimezone().date().toordinal()
                days[day] = days.get(day, 0.0) + cost
        return days


def _read_state(path: Path) -> list[int]:
    """Return the times of the last write (ns) and the sizes (bytes) of a database and its write-ahead log."""
    values: list[int] = []
    for each in (path, path.with_name(f"{path.name}-wal")):
        try:
            status = each.stat()
        except OSError:
            values += [0, 0]
        else:  # opening a database for reading creates an empty log, which is no change
            values += [status.st_mtime_ns, status.st_size] if status.st_size else [0, 0]
    return values
