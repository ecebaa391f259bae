"""The budgets of the configuration, as they are checked before each request."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from codeloop.agent.request.shared_budget import format_dollars
from codeloop.config.paths import Paths
from codeloop.schema.config import SpendingConfig

if TYPE_CHECKING:
    from codeloop.schema.api.session_reports import BudgetUse


class ConfiguredBudget:
    """The budgets of a project's configuration: for all projects, and for this one.

    What was spent is read anew for each check, so that what other sessions and processes
    spend meanwhile counts.
    """

    def __init__(
        self, budget: SpendingConfig, paths: Paths, database: Path, directory: str | None
    ) -> None:
        """`database`: the project's. `directory`: only its sessions in there are the project's;
        None: all are.
        """
        self._budget = budget
        self._paths = paths
        self._database = database
        self._directory = directory
        self.refusal = ""
        """Why no further request may be made, as of the last check; "": there is something left."""

    async def check(self) -> str:
        """Read what was spent, and return `refusal`."""
        budgets = await self.read()
        tightest = min(budgets, key=lambda each: each.limit - each.spent, default=None)
        self.refusal = ""
        if tightest is not None and tightest.spent >= tightest.limit:
            spent = f"{format_dollars(tightest.spent)} of {format_dollars(tightest.limit)} spent"
            advice = "`codeloop stats` shows what was spent; the configuration has the limit"
            self.refusal = f"`budget.{tightest.name}` is used up: {spent}. {advice}."
        return self.refusal

    async def read(self) -> "list[BudgetUse]":
        """Return each budget with the dollars spent since its day or month began (local time)."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> "list[BudgetUse]":
        # Imported late: most configurations have no budget.
        from codeloop.agent.request.spending_sums import SpendingSums
        from codeloop.schema.api.session_reports import BudgetUse

        budget, project_budget = self._budget, self._budget.project
        has_budget = budget.day is not None or budget.month is not None
        has_project_budget = project_budget.day is not None or project_budget.month is not None
        sums = SpendingSums(self._paths.cache / "spending.json")
        everything = sums.add_up(self._paths.find_databases() if has_budget else [], None)
        project = sums.add_up([self._database] if has_project_budget else [], self._directory)
        sums.store()
        rows = (
            ("day", budget.day, everything.today),
            ("month", budget.month, everything.this_month),
            ("project.day", project_budget.day, project.today),
            ("project.month", project_budget.month, project.this_month),
        )
        return [
            BudgetUse(name=name, limit=limit, spent=cost)
            for name, limit, cost in rows
            if limit is not None
        ]
