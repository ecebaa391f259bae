"""How long a service should cache the start of requests: an hour where that costs less. Pure."""

from collections.abc import Sequence

from codeloop.model.chat import ModelInfo
from codeloop.schema.message import AssistantMessage
from codeloop.store.conversation import Entry

FIVE_MINUTES_MS, HOUR_MS = 5 * 60_000, 60 * 60_000
"""The two lifetimes of a prompt cache, from the last request that used it."""


def saves_with_hour_cache(entries: Sequence[Entry], info: ModelInfo) -> bool:
    """Return whether the session's requests so far would have cost less with a cache
    that is kept for an hour.

    Writing to such a cache costs more for every token; it saves writing the whole conversation
    again after a pause of more than five minutes. A session with one such pause will have others.
    """
    prices = info.prices
    if prices.hour_write <= prices.cache_write:
        return False
    savings = extra_costs = 0.0
    last_request_at = last_context = 0
    for entry in entries:
        answer = entry.info
        if not isinstance(answer, AssistantMessage) or not answer.tokens.context:
            continue
        if FIVE_MINUTES_MS < answer.time.created - last_request_at <= HOUR_MS:
            savings += last_context * (prices.cache_write - prices.cache_read)
        extra_costs += max(answer.tokens.context - last_context, 0) * (
            prices.hour_write - prices.cache_write
        )
        last_request_at, last_context = answer.time.created, answer.tokens.context
    return savings > extra_costs
