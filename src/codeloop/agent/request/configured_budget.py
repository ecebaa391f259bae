"""The budgets of the configuration, as they are checked before each request."""

from collections.abc import Awaitable, Callable

from codeloop.agent.request.shared_budget import format_dollars
from codeloop.schema.api.session_reports import BudgetUse


class ConfiguredBudget:
    """The budget of the configuration with the fewest dollars left, as of the last check.

    What was spent is read anew for each check, so that what other sessions and processes spend meanwhile counts.
    """

    def __init__(self, find_tightest: Callable[[], Awaitable[BudgetUse | None]]) -> None:
        self._find_tightest = find_tightest
        self.refusal = ""
        """Why no further request may be made, as of the last check; "": there is something left."""

    async def check(self) -> str:
        """Read what was spent, and return `refusal`."""
        budget = await self._find_tightest()
        self.refusal = ""
        if budget is not None and budget.spent >= budget.limit:
            spent = f"{format_dollars(budget.spent)} of {format_dollars(budget.limit)} spent"
            advice = "`codeloop stats` shows what was spent; the configuration has the limit"
            self.refusal = f"`budget.{budget.name}` is used up: {spent}. {advice}."
        return self.refusal
