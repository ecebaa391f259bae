"""Reads how much of each configured budget was spent, and finds the budget that limits a turn."""

import asyncio
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import date, datetime, time
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from codeloop.app.handlers.reports.databases import find_databases, find_directory_filter
from codeloop.app.project import Project
from codeloop.kit.small_files import write_atomically
from codeloop.schema.api.session_reports import BudgetUse
from codeloop.schema.config import SpendingConfig
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.store.database import StoreError
from codeloop.store.queries import NO_LIMIT, SessionFilter, open_queries


async def read_budgets(project: Project) -> list[BudgetUse]:
    """Return the spent dollars of each configured budget since its day or month began (local time)."""
    budget = project.settings.config.budget
    project_budget = budget.project
    if budget == SpendingConfig():
        return []
    databases = find_databases(project) if budget.day is not None or budget.month is not None else []
    has_project_budget = project_budget.day is not None or project_budget.month is not None
    project_databases = [project.store.path] if has_project_budget else []
    directory, path = find_directory_filter(project), project.settings.paths.cache / "spending.json"

    def read_spent() -> list[BudgetUse]:
        sums = _SpendingSums(path)
        all_spending = sums.add_up(databases, None)
        project_spending = sums.add_up(project_databases, directory)
        sums.store()
        rows = (
            ("day", budget.day, all_spending.today),
            ("month", budget.month, all_spending.this_month),
            ("project.day", project_budget.day, project_spending.today),
            ("project.month", project_budget.month, project_spending.this_month),
        )
        return [BudgetUse(name=name, limit=limit, spent=cost) for name, limit, cost in rows if limit is not None]

    return await asyncio.to_thread(read_spent)


def find_tightest_budget(budgets: Iterable[BudgetUse]) -> BudgetUse | None:
    """Return the budget with the fewest dollars left; None without budgets."""
    return min(budgets, key=lambda each: each.limit - each.spent, default=None)


class DailySums(Struct):
    """The dollars spent in a database by day (ordinal) since the start of a `month` (ms since the epoch).

    `state`: the times and sizes of the database's files when it was read.
    """

    state: list[int]
    month: int
    days: dict[int, float]


class _Spending(NamedTuple):
    """Dollars spent."""

    today: float
    this_month: float


_decode_sums = msgspec.json.Decoder(dict[str, DailySums]).decode


def find_day_start(day: date) -> int:
    """Return when a day began in local time (ms since the epoch)."""
    # Without a time zone it means local time as it was on that day, also before a change of the clocks.
    return int(datetime.combine(day, time.min).timestamp() * 1000)


class _SpendingSums:
    """The sums of databases, cached in a file: budgets are checked for each prompt, and reading a database is slow."""

    def __init__(self, file: Path) -> None:
        self._file = file
        today = datetime.now().astimezone().date()
        self._today = today.toordinal()
        self._month_start = find_day_start(today.replace(day=1))
        self._stored: dict[str, DailySums] = {}
        """The sums in the file, by the path of the database and the directory whose sessions count."""
        with suppress(OSError, *DECODE_ERRORS):
            self._stored = _decode_sums(file.read_bytes())
        self._used: dict[str, DailySums] = {}
        """The sums that were asked for, which are up to date."""

    def add_up(self, paths: Iterable[Path], directory: str | None) -> _Spending:
        """Add up the spending in databases, for the sessions of a directory or for all."""
        today = this_month = 0.0
        for path in paths:
            state = _read_state(path)
            written_ns, _, log_written_ns, _ = state
            # Nothing was written since the month began.
            if max(written_ns, log_written_ns) // 1_000_000 < self._month_start:
                continue
            key = f"{path}\n{directory or ''}"
            sums = self._stored.get(key)
            if sums is None or sums.state != state or sums.month != self._month_start:
                sums = DailySums(state, self._month_start, self._read_days(path, directory))
            self._used[key] = sums
            this_month += sum(sums.days.values())
            today += sums.days.get(self._today, 0.0)
        return _Spending(today, this_month)

    def store(self) -> None:
        """Write the sums to the file if they have changed."""
        # Sums of other databases stay too: another project may have stored them. Those of earlier months are dropped.
        daily_sums = {key: sums for key, sums in self._stored.items() if sums.month == self._month_start} | self._used
        if daily_sums != self._stored:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._file, msgspec.json.encode(daily_sums))

    def _read_days(self, path: Path, directory: str | None) -> dict[int, float]:
        days: dict[int, float] = {}
        with suppress(StoreError), closing(open_queries(path)) as queries:
            costs = queries.list_request_costs(self._month_start)
            if costs and directory is not None:
                ids = {each.id for each in queries.find_sessions(SessionFilter(directory=directory, limit=NO_LIMIT))}
                costs = [(session_id, created, cost) for session_id, created, cost in costs if session_id in ids]
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
        else:
            # Opening a database for reading creates an empty log, which is not a change.
            values += [status.st_mtime_ns, status.st_size] if status.st_size else [0, 0]
    return values
