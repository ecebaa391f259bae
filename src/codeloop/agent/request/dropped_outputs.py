"""Decides whether dropping superseded tool outputs is worth breaking the prompt cache,
given the model's prices. Pure.

Dropping an output changes the request from there on: the rest is written to the cache again once,
and every later step reads less from it. The saving must pay for the rewrite within a quarter of the
steps taken so far in this turn, because many turns end soon after.
"""

from collections.abc import Collection

from codeloop.agent.request.window import DROP_CHECK_STEPS, estimate_size
from codeloop.model.chat import Prices
from codeloop.schema.part import ToolPart, ToolStateCompleted
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, find_context_start
from codeloop.tool.superseded_outputs import find_superseded

# The rewrite must pay within the steps taken so far, divided by this.
_PAYBACK_DIVISOR = 4
# A turn of N bits of steps is checked each 2 ** (N - this) steps: at least eight times
# while its length doubles.
_RARENESS = 4


def select_outputs_to_drop(
    conversation: Conversation, dropped: Collection[str], prices: Prices, now: int
) -> list[ToolPart]:
    """Return the tool parts whose outputs requests omit from now on,
    each with `now` as its time of compaction.

    The list is empty where dropping them does not pay.
    `dropped`: the ids of parts whose outputs are omitted already.
    `now`: ms since the epoch.
    """
    steps = _count_steps(conversation)
    if not prices.is_known or not _is_check_due(steps):
        return []
    entries = conversation.entries[find_context_start(conversation.entries) :]
    ids = find_superseded(entries).keys() - set(dropped)
    indices = [
        index for index, entry in enumerate(entries) if any(part.id in ids for part in entry.parts)
    ]
    if not indices:
        return []
    parts = [
        part
        for index in indices
        for part in entries[index].parts
        if isinstance(part, ToolPart) and part.id in ids
    ]
    states = [
        (part, part.state)
        for part in parts
        if isinstance(part.state, ToolStateCompleted) and part.state.time.compacted is None
    ]
    saved = sum(len(state.output) for _, state in states)
    rewritten_size = sum(map(estimate_size, entries[indices[0] :])) - saved
    write = prices.cache_write or prices.input
    if (
        rewritten_size * (write - prices.cache_read)
        >= saved * prices.cache_read * steps / _PAYBACK_DIVISOR
    ):
        return []
    return [
        replace(part, state=replace(state, time=replace(state.time, compacted=now)))
        for part, state in states
    ]


def _is_check_due(steps: int) -> bool:
    """Return whether it is checked after so many steps of a turn: every 8,
    and more rarely the longer the turn is.

    A check goes through all entries, so checks at a fixed distance would make each
    step of a long turn dearer.
    """
    interval = max(DROP_CHECK_STEPS, 1 << max(steps.bit_length() - _RARENESS, 0))
    return steps > 0 and steps % interval == 0


def _count_steps(conversation: Conversation) -> int:
    """Return the number of steps taken so far in the current turn."""
    prompt = conversation.find_newest_prompt()
    if prompt is None:
        return 0
    # A summary answers a prompt of its own, so it is the first of the answers if there is one.
    return sum(
        not entry.info.summary for entry in conversation.entries[prompt + 1 : prompt + 2]
    ) + max(len(conversation.entries) - prompt - 2, 0)
