"""Limits of what a turn may spend: dollars and tokens of its own,
and the budget that it shares with others. Pure.
"""

from codeloop.agent.engine import TurnSettings
from codeloop.agent.request.shared_budget import format_dollars
from codeloop.schema.message import Session, count_used_tokens


def find_spending_limit(session: Session, settings: TurnSettings) -> str:
    """Return the words on the limit of dollars or tokens that a turn has reached, for the user;
    "": none is.
    """
    if settings.shared_budget is not None and settings.shared_budget.refusal:
        return settings.shared_budget.refusal
    if settings.max_cost == 0:
        return "Nothing is left of the limit of cost, so no request was made."
    cost = (session.cost or 0.0) - settings.cost_before
    if settings.max_cost is not None and cost >= settings.max_cost:
        return f"The limit of {format_dollars(settings.max_cost)} is reached: {format_dollars(cost)} spent."
    used = count_used_tokens(session) - settings.tokens_before
    if settings.max_tokens is not None and used >= settings.max_tokens:
        noun = "token" if settings.max_tokens == 1 else "tokens"
        return f"The limit of {settings.max_tokens} {noun} is reached: {used} used."
    return ""
