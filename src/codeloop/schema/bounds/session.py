"""What bounds sessions."""

from codeloop.kit.limit import Limit

SESSION_FOUND = Limit("session.found", 10_000, "count", "places of a text in one session; more are left out")
BUDGETS = Limit("session.budgets", 1_000, "count", "shared budgets that a server remembers; the oldest are forgotten")
