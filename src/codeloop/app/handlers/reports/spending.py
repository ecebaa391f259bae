"""The budgets of the configuration: what was spent of each, and which one bounds a turn."""

import asyncio
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from codeloop.app.handlers.reports.databases import find_databases, own_directory
from codeloop.app.project import Project
from codeloop.schema.api.session_requests import BudgetUse
from codeloop.schema.config import SpendingConfig
from codeloop.store.database import StoreError
from codeloop.store.queries import ALL, SessionFilter, open_queries


async def read_budgets(project: Project) -> list[BudgetUse]:
    """Return the dollars spent of each budget since its day or month began, local time; [] where none is set."""
    budget = project.settings.config.budget
    own = budget.project
    if budget == SpendingConfig():
        return []
    everywhere = find_databases(project) if budget.day is not None or budget.month is not None else []
    here = [project.store.path] if own.day is not None or own.month is not None else []
    directory = own_directory(project)

    def read() -> list[BudgetUse]:
        of_all, of_project = _sum_spending(everywhere, None), _sum_spending(here, directory)
        rows = (
            ("day", budget.day, of_all[0]),
            ("month", budget.month, of_all[1]),
            ("project.day", own.day, of_project[0]),
            ("project.month", own.month, of_project[1]),
        )
        return [BudgetUse(name=name, limit=limit, spent=spent) for name, limit, spent in rows if limit is not None]

    return await asyncio.to_thread(read)


def least_left(budgets: Iterable[BudgetUse]) -> BudgetUse | None:
    """Return the budget of which the fewest dollars are left."""
    return min(budgets, key=lambda each: each.limit - each.spent, default=None)


def _sum_spending(paths: Iterable[Path], directory: str | None) -> tuple[float, float]:
    """Return the dollars of today and of this month, of the sessions of a directory or of all."""
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    day, month = int(today.timestamp() * 1000), int(today.replace(day=1).timestamp() * 1000)
    of_day = of_month = 0.0
    for path in paths:
        with suppress(StoreError), closing(open_queries(path)) as queries:
            steps = queries.steps(month)
            if steps and directory is not None:
                own = {each.id for each in queries.sessions(SessionFilter(directory=directory, limit=ALL))}
                steps = [each for each in steps if each.session_id in own]
            of_month += sum(each.cost for each in steps)
            of_day += sum(each.cost for each in steps if each.created >= day)
    return of_day, of_month
