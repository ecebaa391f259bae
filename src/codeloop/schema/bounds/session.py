"""What bounds sessions: rows of the table in `limits.py`, and printed with them."""

from codeloop.kit.limit import Limit

SESSION_FOUND = Limit("session.found", 10_000, "count", "places of a text in one session; more are left out")
BUDGETS = Limit("session.budgets", 1_000, "count", "shared budgets that a server remembers; the oldest are forgotten")


def rows() -> dict[str, object]:
    """Return the rows of this module, by name."""
    return globals()
