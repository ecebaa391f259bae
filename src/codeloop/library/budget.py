"""`Budget`: an amount of dollars that several sessions share;
also its forms for prompts and for the engine.
"""

from uuid import uuid4

from codeloop.agent.request.shared_budget import SharedBudget, SharedBudgets
from codeloop.schema.api.session_inputs import BudgetShare


class Budget:
    """The dollars that all sessions of the projects opened with this budget may spend together.

    A request is only sent if the cost of the most expensive request to that model so far still fits
    into the budget, along with the requests that are running. So the budget is exceeded at most by
    the amount by which a request costs more than those before it. The first request to a model runs
    alone. A turn that no longer fits raises `LimitReached`.
    """

    def __init__(self, cost: float) -> None:
        self.shared = SharedBudget(cost)
        self.id = uuid4().hex

    def __repr__(self) -> str:
        """Return the dollars spent, and the budget."""
        return f"<Budget ${self.spent:.4f} of ${self.cost:.2f}>"

    @property
    def cost(self) -> float:
        """The budget, in dollars."""
        return self.shared.limit

    @property
    def spent(self) -> float:
        """The dollars spent so far; turns on a server are counted when they have ended."""
        return self.shared.spent


def make_budget_share(budget: Budget | None) -> BudgetShare | None:
    """Return the reference to a budget that a prompt carries; None: there is no budget."""
    return None if budget is None else BudgetShare(id=budget.id, cost=budget.cost)


def make_budget_registry(budget: Budget | None) -> SharedBudgets:
    """Return the registry of budgets for an engine in this process, with this budget,
    if there is one.
    """
    return SharedBudgets({} if budget is None else {budget.id: budget.shared})


def add_cost(budget: Budget, cost: float) -> None:
    """Add the cost of a turn on a server, in dollars."""
    budget.shared.pay(cost)
