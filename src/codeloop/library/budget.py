"""Dollars that several sessions may spend in all: how a program names them, and how engines and servers find them."""

from uuid import uuid4

from codeloop.agent.request.budget import SharedBudget, SharedBudgets
from codeloop.schema.api.session_inputs import BudgetShare


class Budget:
    """Dollars that all sessions of all projects that are opened with it may spend in all.

    Before each request to a model, what the dearest one so far has cost must still fit, beside the requests that are
    under way. So the sum passes the budget only by what a request costs more than any before it. The first request to a
    model runs alone. A turn for which there is no room raises `LimitReached`.
    """

    def __init__(self, cost: float) -> None:
        self.shared = SharedBudget(cost)
        self.id = uuid4().hex

    def __repr__(self) -> str:
        """Return the dollars spent, and those in all."""
        return f"<Budget ${self.spent:.4f} of ${self.cost:.2f}>"

    @property
    def cost(self) -> float:
        """All of it, in dollars."""
        return self.shared.cost

    @property
    def spent(self) -> float:
        """Dollars spent; of turns on a server, those that have ended."""
        return self.shared.spent


def share_of(budget: Budget | None) -> BudgetShare | None:
    """Return how a prompt names a budget."""
    return None if budget is None else BudgetShare(id=budget.id, cost=budget.cost)


def registry_of(budget: Budget | None) -> SharedBudgets:
    """Return the budgets that an engine of this process knows from its start: this one."""
    return SharedBudgets({} if budget is None else {budget.id: budget.shared})


def add_cost(budget: Budget, cost: float) -> None:
    """Count what a turn on a server has cost."""
    budget.shared.pay(cost)
